# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops import neighbor_shift, shift_plan
from ..ops.neighbor_shift import (
    causal_neighbor_shift,
    causal_plan,
    shift_memory,
)
from ..utils.arguments import Count, Fraction, check_arguments


@check_arguments
class NeighborShift(nn.Module):
    """Shift of some channels of each token to neighboring tokens.

    This is the neighborhood association of `Linear Video Transformer with
    Feature Fixation <https://arxiv.org/abs/2210.08164>`_, Sec. 4.3 and A.3.
    Some channels of a token are replaced by the same channels of its neighbors
    in time (modes 'tsm' and 'window') or in space ('cross', 'square' and
    'eight').

    Args:
        channels, mode, size, divisor, alpha, boundary: See
            :func:`mmvidattn.ops.shift_plan`.
        segment_frames: Frames of a segment; tokens are not shifted between
            segments. (The released Kinetics configuration shifts 16 frames as
            two segments of 8.) Defaults to the clip length.
        causal: Do not shift the channels that would come from later frames.
            Defaults to False.
    """

    def __init__(self,
                 channels: Count,
                 mode: str,
                 size: Count = 1,
                 divisor: Count | None = None,
                 alpha: Fraction | None = None,
                 boundary: str | None = None,
                 segment_frames: Count | None = None,
                 causal: bool = False) -> None:
        super().__init__()
        if causal and segment_frames is not None:
            raise ValueError('a causal shift does not support segment_frames, '
                             f'got {segment_frames}')
        self.mode = mode
        self.plan = shift_plan(
            mode,
            channels,
            size=size, divisor=divisor, alpha=alpha, boundary=boundary)
        if causal:
            self.plan = causal_plan(self.plan)
        self.is_causal = causal
        self.segment_frames = segment_frames

    def forward(self, x: Tensor) -> Tensor:
        """Shift tokens [B, T, H, W, *, C]."""
        return neighbor_shift(x, self.plan, self.segment_frames)

    @property
    def num_past_frames(self) -> int:
        """Number of previous frames that a causal shift reads."""
        return shift_memory(self.plan)[0]

    def forward_causal(self, x: Tensor,
                       state: Tensor) -> tuple[Tensor, Tensor]:
        """Shift the next frames of streams, [B, T, H, W, *, C].

        The shift must read no later frames. The state is that of
        :meth:`initial_state` or of the previous call.
        """
        return causal_neighbor_shift(x, self.plan, state)

    def initial_state(self, x: Tensor) -> Tensor:
        """Return the state for tokens [B, T, H, W, *, C] of any T.

        It is zero, [B, P, H, W, *, R], for R channels of P previous frames.
        """
        frames, start, stop = shift_memory(self.plan)
        return x.new_zeros(len(x), frames, *x.shape[2:-1], stop - start)

    def extra_repr(self) -> str:
        return f'mode={self.mode!r}, folds={len(self.plan)}'
