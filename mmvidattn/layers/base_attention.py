# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

from torch import Tensor, nn


class BaseAttention(nn.Module):
    """An attention without its projections, for :class:`VideoSelfAttention`.

    A subclass is registered in MODELS, and its name is the one word of a
    config that puts it into a backbone.

    Args:
        head_dims: Width D of a head.
        num_heads: Heads G.
        seq_shape: Shape of the sequences that the model is built for, as
            many axes as the tokens have: (T, ) in time, (H, W) in space,
            (T, H, W) of whole clips. An attention with tables sizes them by
            it; the others take sequences of any shape.

    Attributes:
        takes_shapes: Whether :meth:`forward` is given the axes of the
            sequences, for an attention that computes with them.
    """
    takes_shapes = False

    def __init__(self, head_dims: int, num_heads: int,
                 seq_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.head_dims = head_dims
        self.num_heads = num_heads
        self.seq_shape = tuple(seq_shape)

    def feature_map(self, x: Tensor) -> Tensor:
        """Map queries or keys [*, D], before fixation and :meth:`forward`."""
        return x

    def fused(self, qkv: Tensor, pattern: str, shifts: Sequence[nn.Module],
              fixation: nn.Module | None) -> Tensor | None:
        """Compute everything between a layer's two projections by one op.

        Called only if the keys and values are shifted before fixation, and no
        part has a hook, which the op would skip.

        Args:
            qkv: Projected queries, keys and values, [B, T, H, W, 3C].
            pattern: Pattern of :class:`VideoSelfAttention`.
            shifts: Its :class:`NeighborShift` modules.
            fixation: Its :class:`FeatureFixation`, or None.

        Returns:
            [B, T, H, W, C], or None without such an op: the layer then runs
            shifts, :meth:`feature_map`, fixation and :meth:`forward`.
        """
        return None

    def forward(self, q: Tensor, k: Tensor, v: Tensor,
                *shapes: tuple[int, ...]) -> Tensor:
        """Attention of mapped, perhaps reweighted, queries and keys.

        Args:
            q: [*, N, G, D].
            k: [*, M, G, D].
            v: [*, M, G, D].
            *shapes: With ``takes_shapes`` two of them, the axes that N and M
                are made of, in row-major order.

        Returns:
            [*, N, G, D].
        """
        raise NotImplementedError
