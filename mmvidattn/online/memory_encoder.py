# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from ..ops.stream_smoothing import sample_scores
from .block import OnlineTransformer, Reader


class MemoryEncoder(nn.Module):
    """Encoder that compresses a long memory in stages of learned queries.

    The queries of the first stage attend to the long memory under a temporal
    kernel. Queries of later stages attend to the previous stage's output. A
    stage without queries, as in LSTR's code, is self-attention on the output
    of the previous stage.

    Args:
        stages: For each stage, ``dict(num_queries=..., num_layers=...)``.
            ``num_queries=None`` is a stage without queries, which cannot be
            the first one.
        embed_dims: Channels C.
        decay: Weight of a long-memory sample relative to the next newer one:
            1 for the paper's box kernel, less for its Laplace kernel. Defaults
            to 1.
        **kwargs: Arguments of
            :class:`~mmvidattn.online.block.OnlineBlock`.
    """

    def __init__(self, stages: Sequence[dict[str, int | None]],
                 embed_dims: int, decay: float = 1., **kwargs) -> None:
        super().__init__()
        if not stages or any(
                set(stage) != {'num_queries', 'num_layers'}
                for stage in stages) or stages[0]['num_queries'] is None:
            raise ValueError(
                'encoder must be a list of dict(num_queries=..., '
                'num_layers=...), whose first num_queries is a number, got '
                f'{stages}')
        self.decay = decay
        queries = [stage['num_queries'] for stage in stages]
        self.queries = nn.ParameterList(
            None if n is None else torch.randn(n, embed_dims)
            for n in queries)
        self.stages = nn.ModuleList(
            OnlineTransformer(stage['num_layers'], embed_dims,
                              with_memory=n is not None, **kwargs)
            for n, stage in zip(queries, stages))

    def project(self, x: Tensor) -> Tensor:
        """Project each sample [*, C] of the long memory to [*, R]."""
        return self.stages[0].project(x)

    def reader(self, rows: Tensor,
               padding_mask: Tensor | None = None) -> Reader:
        """Return a reader of long memories under the temporal kernel.

        Args:
            rows: Projections of the samples, [B, N, R], oldest first.
            padding_mask: Bool, [B, N' <= N], True for padding among the oldest
                N' samples.
        """
        key_mask = None
        if padding_mask is not None:
            newer = rows.shape[1] - padding_mask.shape[1]
            key_mask = nn.functional.pad(~padding_mask, (0, newer), value=True)
        return self.stages[0].reader(rows, key_mask=key_mask, decay=self.decay)

    def prefix(
        self, batch_size: int = 1
    ) -> Iterator[tuple[Tensor, Tensor] | tuple[None, None]]:
        """Compute the part of each stage that does not depend on the memory.

        Args:
            batch_size: Number of copies B. Use 1 in evaluation, and the batch
                size in training, so that dropout differs between samples.
                Defaults to 1.

        Yields:
            For each stage, results of :meth:`OnlineTransformer.attend` for its
            Q learned queries, [B, Q, C] each; (None, None) without queries.
        """
        for x, stage in zip(self.queries, self.stages):
            yield (None, None) if x is None else stage.attend(
                x.expand(batch_size, -1, -1))

    def score(self, rows: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the first stage's attention scores and values of samples.

        If the first stage has one block, its queries do not change during
        inference. A stream can therefore score each sample once.

        Args:
            rows: Projections of samples, [*, R].
            q: Queries of the first stage from :meth:`prefix`, [1, Q, C].

        Returns:
            Scores [*, Q, G] and values [*, G, D].
        """
        attention = self.stages[0].blocks[0].memory_attn
        k, v = map(attention.heads, rows.chunk(2, dim=-1))
        return sample_scores(attention.heads(q)[0], k), v

    def forward(
        self, read: Reader,
        prefix: Iterable[tuple[Tensor, Tensor] | tuple[None, None]]
    ) -> Tensor:
        """Compress long memories.

        Args:
            read: Reader of B long memories, such as :meth:`reader`.
            prefix: Result of :meth:`prefix`.

        Returns:
            Compressed memory, [B, M, C], where M is the number of queries of
            the last stage with queries.
        """
        y = None
        for stage, (x, q) in zip(self.stages, prefix):
            if x is None:
                y = stage(*stage.attend(y), None)
                continue
            if y is not None:
                read = stage.reader(stage.project(y))
            y = stage(x, q, read)
        return y
