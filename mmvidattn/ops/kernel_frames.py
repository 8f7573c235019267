# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterator


def kernel_frames(size: int,
                  num_frames: int) -> Iterator[tuple[int, slice, slice]]:
    """What each frame of a kernel, but the middle one, adds to a clip.

    Args:
        size: Frames of the kernel, odd; there are zeros around the clip.
        num_frames: Frames of the clip.

    Yields:
        The frame of the kernel, the frames of the result that it adds to,
        and those of the clip that it reads for them.
    """
    for k in range(size):
        shift = k - size // 2
        if 0 < abs(shift) < num_frames:
            yield (k, slice(max(-shift, 0), num_frames - max(shift, 0)),
                   slice(max(shift, 0), num_frames - max(-shift, 0)))
