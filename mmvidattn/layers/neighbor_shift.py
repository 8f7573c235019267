# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops import neighbor_shift, shift_plan
from ..utils.arguments import Count, Fraction, check_arguments


@check_arguments
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
                 channels: Count,
                 mode: str,
                 size: Count = 1,
                 divisor: Count | None = None,
                 alpha: Fraction | None = None,
                 boundary: str | None = None,
                 segment_frames: Count | None = None) -> None:
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
        return neighbor_shift(x, self.plan, self.segment_frames)

    def extra_repr(self) -> str:
        return f'mode={self.mode!r}, folds={len(self.plan)}'
