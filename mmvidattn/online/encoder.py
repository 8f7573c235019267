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
        x = None
        # A dropout of its own for each of the batch.
        batch = len(memory[0][0]) if self.training else 1
        for i, (queries, stage) in enumerate(zip(self.queries, self.stages)):
            if i:
                memory, key_mask = stage.keys_values(x), None
            x = stage(
                queries.expand(batch, -1, -1),
                memory,
                key_mask=key_mask,
                decay=1. if i else self.decay)
        return x
