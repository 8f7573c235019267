# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frame numbers of a stream's newest window.

Full windows match :mod:`mmvidattn.datasets.memory_steps`.
"""
import torch
from torch import Tensor


def work_memory_start(step: Tensor, length: int,
                      rate: int) -> tuple[Tensor, Tensor]:
    """Return the first frame of a work memory, and the size of its padding.

    A work memory is padded until the stream has enough frames.

    Args:
        step: Number of the newest frame, int64, [B].
        length: Samples L of the work memory.
        rate: Frames per sample.

    Returns:
        Number of the first frame, and number of padded samples, int64 [B].
    """
    num_padded = (length - 1 - step // rate).clamp(min=0)
    return step - rate * (length - 1 - num_padded), num_padded


def long_memory_frames(start: Tensor, length: int, rate: int,
                       stretch: bool) -> tuple[Tensor, Tensor]:
    """Return the frames of the long memories before work memories.

    Args:
        start: First frames of the work memories, int64 [B].
        length: Samples N of the long memory.
        rate: Frames per sample.
        stretch: At the start of a stream, let the samples start at frame 0.

    Returns:
        Numbers of the frames, oldest first, int64 [B, N], with 0 for padding;
        and a mask, bool [B, N], False for padding.
    """
    end = start
    if stretch:
        end = (start + rate - 1) // rate * rate
        end = end.where(start < length * rate, start)
    ago = torch.arange(length, 0, -1, device=start.device)
    frames = end[:, None] - rate * ago
    # Frame 0 stands for frames before the stream, and is masked except once.
    mask = (frames > -rate) | (ago == 1)
    return frames.clamp(min=0), mask
