# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops import neighbor_shift, shift_plan


class NeighborShift(nn.Module):
    """Neighborhood association: channels taken from nearby tokens.

    Paper Sec. 4.3 and A.3.

    Args:
        channels: Channels of a token, all heads together.
        mode: In time 'tsm' or 'window', in space 'cross', 'square' or
            'eight': see :func:`mmvidattn.ops.shift_plan`, also for ``size``,
            ``divisor``, ``alpha`` and ``boundary``.
        segment_frames: Treat the clip as clips of so many frames, between
            which nothing is shifted. (The released Kinetics configuration
            shifts 16 frames as two clips of 8.)
    """

    def __init__(self,
                 channels: int,
                 mode: str,
                 size: int = 1,
                 divisor: int | None = None,
                 alpha: float | None = None,
                 boundary: str | None = None,
                 segment_frames: int | None = None) -> None:
        super().__init__()
        self.mode = mode
        self.plan = shift_plan(
            mode,
            channels,
            size=size,
            divisor=divisor,
            alpha=alpha,
            boundary=boundary)
        self.segment_frames = segment_frames

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, H, W, *, C] to the same shape."""
        if self.segment_frames is None:
            return neighbor_shift(x, self.plan)
        B, T = x.shape[:2]
        if T % self.segment_frames:
            raise ValueError(
                f'a clip of {T} frames cannot be shifted in segments of '
                f'segment_frames={self.segment_frames}')
        x = x.reshape(-1, self.segment_frames, *x.shape[2:])
        return neighbor_shift(x, self.plan).unflatten(0, (B, -1)).flatten(
            1, 2)

    def extra_repr(self) -> str:
        return f'mode={self.mode!r}, folds={len(self.plan)}'


# The old name.
NeighbourShift = NeighborShift
