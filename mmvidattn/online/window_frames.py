# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Which frames of a stream its newest window holds, at any age.

Full windows have the steps of :mod:`mmvidattn.datasets.memory_steps`.
"""
import torch
from torch import Tensor


def work_memory_start(step: Tensor, length: int,
                      rate: int) -> tuple[Tensor, Tensor]:
    """First frame of the work memory of frame ``step``, and its padding.

    That of a young stream is shorter, and as in the first windows of a video.

    Args:
        step: int64, [B].
        length: Samples L of a work memory.
        rate: Every how many frames it takes one.

    Returns:
        int64, [B] each.
    """
    num_padded = (length - 1 - step // rate).clamp(min=0)
    return step - rate * (length - 1 - num_padded), num_padded


def long_memory_frames(start: Tensor, length: int, rate: int,
                       stretch: bool) -> tuple[Tensor, Tensor]:
    """Frames of the long memories in front of work memories.

    Args:
        start: First frames of the work memories, int64 [B].
        length: Samples N of a long memory.
        rate: Every how many frames it takes one.
        stretch: While a stream is young, its samples are those from frame 0
            on.

    Returns:
        int64 [B, N], oldest first, where there is no such frame 0; and bool
        [B, N], False where frame 0 stands in for nothing.
    """
    end = start
    if stretch:
        end = (start + rate - 1) // rate * rate
        end = end.where(start < length * rate, start)
    ago = torch.arange(length, 0, -1, device=start.device)
    frames = end[:, None] - rate * ago
    # Where there is none, frame 0 stands in, once.
    mask = (frames > -rate) | (ago == 1)
    return frames.clamp(min=0), mask
