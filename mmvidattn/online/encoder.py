# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .block import OnlineTransformer


class MemoryEncoder(nn.Module):
    """Compresses a long memory in stages of learned queries.

    The queries of a stage attend to what the one before it made; those of
    the first to the long memory, under a temporal kernel. Their
    self-attention does not depend on the memory, and is computed once for a
    batch in testing.

    Args:
        stages: Of each stage ``dict(num_queries=..., num_layers=...)``.
        embed_dims: Channels C.
        decay: Weight of a sample of the long memory relative to the next
            newer one: 1 for the box kernel, less for the Laplace kernel.
        **kwargs: Of :class:`~mmvidattn.online.block.OnlineBlock`.
    """

    def __init__(self,
                 stages: Sequence[dict[str, int]],
                 embed_dims: int,
                 decay: float = 1.,
                 **kwargs) -> None:
        super().__init__()
        if not 0 < decay <= 1:
            raise ValueError(f'decay must be in (0, 1], got {decay}')
        if not stages or any(
                set(stage) != {'num_queries', 'num_layers'}
                for stage in stages):
            raise ValueError(
                'encoder must be a list of dict(num_queries=..., '
                f'num_layers=...), got {stages}')
        self.decay = decay
        self.queries = nn.ParameterList(
            torch.randn(stage['num_queries'], embed_dims) for stage in stages)
        self.stages = nn.ModuleList(
            OnlineTransformer(stage['num_layers'], embed_dims, **kwargs)
            for stage in stages)

    def keys_values(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What :meth:`forward` needs of a long memory [*, N, C].

        That of a sample depends on nothing but the sample.
        """
        return self.stages[0].keys_values(memory)

    def forward(self,
                memory: list[tuple[Tensor, Tensor]],
                key_mask: Tensor | None = None) -> Tensor:
        """Compress.

        Args:
            memory: Of :meth:`keys_values`, of B memories of N samples, oldest
                first.
            key_mask: Bool, [B, N], True where a sample counts.

        Returns:
            [B, M, C], M being the queries of the last stage.
        """
        # A dropout of its own for each of the batch.
        batch = len(memory[0][0]) if self.training else 1
        x = self.stages[0](
            self.queries[0].expand(batch, -1, -1),
            memory,
            key_mask=key_mask,
            decay=self.decay)
        for queries, stage in zip(self.queries[1:], self.stages[1:]):
            x = stage(queries.expand(batch, -1, -1), stage.keys_values(x))
        return x

    def begin(self) -> list[tuple[Tensor, Tensor]]:
        """What the stages compute before they meet a memory.

        Returns:
            Of each stage, what its first block's ``begin`` makes of its
            queries: [1, Q, C] and [1, Q, G, D].
        """
        return [
            stage.blocks[0].begin(queries[None])
            for queries, stage in zip(self.queries, self.stages)
        ]

    def finish(self, y: Tensor,
               begun: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Compress, from what the first stage's queries attended to.

        The first stage must have one block: the queries of a second one are
        not the same for all memories.

        Args:
            y: The attention to the long memory, [B, Q, G, D].
            begun: Of :meth:`begin`.

        Returns:
            [B, M, C], as :meth:`forward`.
        """
        stage, *rest = self.stages
        block, = stage.blocks
        y = block.memory_attn.proj(y.flatten(-2))
        x = stage.norm(block.feed_forward(block.add_memory(begun[0][0], y)))
        for (queries, q), stage in zip(begun[1:], rest):
            x = stage(queries, stage.keys_values(x), begun=(queries, q))
        return x
