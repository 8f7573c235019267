# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from ..ops.temporal_smoothing import sample_scores
from .block import OnlineTransformer, Reader


class MemoryEncoder(nn.Module):
    """Compresses a long memory in stages of learned queries.

    The queries of a stage attend to the output of the one before it; those of
    the first to the long memory, under a temporal kernel. Their
    self-attention does not depend on the memory, and is computed once for a
    batch in testing. A stage without queries of its own, of LSTR's code,
    is self-attention of what the one before it made.

    Args:
        stages: Of each stage ``dict(num_queries=..., num_layers=...)``;
            ``num_queries=None`` for a stage, but the first, without queries.
        embed_dims: Channels C.
        decay: Weight of a sample of the long memory relative to the next
            newer one: 1 for the box kernel, less for the Laplace kernel.
        **kwargs: Of :class:`~mmvidattn.online.block.OnlineBlock`.
    """

    def __init__(self,
                 stages: Sequence[dict[str, int | None]],
                 embed_dims: int,
                 decay: float = 1.,
                 **kwargs) -> None:
        super().__init__()
        if not stages or any(
                set(stage) != {'num_queries', 'num_layers'}
                for stage in stages):
            raise ValueError(
                'encoder must be a list of dict(num_queries=..., '
                f'num_layers=...), got {stages}')
        if stages[0]['num_queries'] is None:
            raise ValueError(
                'the first stage of encoder compresses the long memory and '
                f'takes num_queries, got {stages[0]}')
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
        """Samples of the long memory [*, C] to rows [*, R], each by itself."""
        return self.stages[0].project(x)

    def reader(self,
               rows: Tensor,
               padding_mask: Tensor | None = None) -> Reader:
        """Read windows of the long memory, under the temporal kernel.

        Args:
            rows: Of :meth:`project`, [B, N, R], oldest first.
            padding_mask: Bool, [B, at most N], True where the oldest are
                padding.

        Returns:
            What :meth:`forward` takes.
        """
        key_mask = None
        if padding_mask is not None:
            newer = rows.shape[1] - padding_mask.shape[1]
            key_mask = nn.functional.pad(~padding_mask, (0, newer), value=True)
        return self.stages[0].reader(rows, key_mask=key_mask, decay=self.decay)

    def prefix(
        self, batch_size: int = 1
    ) -> Iterator[tuple[Tensor, Tensor] | tuple[None, None]]:
        """Compute the stages as far as they depend on no memory.

        In training each of a batch has a dropout of its own.

        Yields:
            Of each stage, its Q learned queries after their self-attention
            and the queries of the memory that they make, each [B, Q, C]; of
            one without queries None and None.
        """
        for x, stage in zip(self.queries, self.stages):
            yield (None, None) if x is None else _attend_first(
                stage, x.expand(batch_size, -1, -1))

    def score(self, rows: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
        """Samples to scores and values, where the queries are always the same.

        That holds in testing, if the first stage has one block.

        Args:
            rows: Of :meth:`project`, [*, R].
            q: The first stage's, of :meth:`prefix`, [1, Q, C].

        Returns:
            [*, Q, G] and [*, G, D].
        """
        attention = self.stages[0].blocks[0].memory_attn
        k, v = map(attention.heads, rows.chunk(2, dim=-1))
        return sample_scores(attention.heads(q)[0], k), v

    def forward(
        self, read: Reader,
        prefix: Iterable[tuple[Tensor, Tensor] | tuple[None, None]]
    ) -> Tensor:
        """Compress.

        Args:
            read: Reads B long memories: of :meth:`reader`, for one.
            prefix: Of :meth:`prefix`.

        Returns:
            [B, M, C], M being the queries of the last stage that has any.
        """
        y = None
        for stage, (x, q) in zip(self.stages, prefix):
            if x is None:
                y = stage(*_attend_first(stage, y), None)
                continue
            if y is not None:
                read = stage.reader(stage.project(y))
            y = stage(x, q, read)
        return y


def _attend_first(stage: OnlineTransformer,
                  x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Run the first self-attention of a stage: see ``OnlineBlock.attend``."""
    block = stage.blocks[0]
    return block.attend(x, block.self_attn.q(x), block.self_attn.kv(x))
