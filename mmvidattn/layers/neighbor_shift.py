# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops import neighbor_shift, shift_plan
from ..utils.arguments import Count, Fraction, check_arguments


@check_arguments
class NeighborShift(nn.Module):
    """Neighborhood association, Sec. 4.3 and A.3 of the paper.

    Some channels of a token come from its neighbors in time (modes 'tsm' and
    'window') or in space ('cross', 'square' and 'eight').

    Args:
        channels, mode, size, divisor, alpha, boundary: See
            :func:`mmvidattn.ops.shift_plan`.
        segment_frames: Length of independent segments of the clip. (The
            released Kinetics configuration shifts 16 frames as two segments
            of 8.) Defaults to the clip length.
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
        """Shift tokens [B, T, H, W, *, C]."""
        return neighbor_shift(x, self.plan, self.segment_frames)

    def extra_repr(self) -> str:
        return f'mode={self.mode!r}, folds={len(self.plan)}'
