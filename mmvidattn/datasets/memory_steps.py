# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Indices of the steps in a window's long memory.

A step is a row of the feature files. Which steps a memory has follows the
released code of TeSTra and LSTR.
"""
import numpy as np


def dense_long_indices(work_start: int, steps: int, rate: int,
                       keep_phase: bool = True) -> np.ndarray:
    """Return the steps of the long memory in evaluation, oldest first.

    The steps are ``rate`` apart, and the last one is ``rate`` steps before the
    work memory. Step 0 stands for steps before the video.

    Args:
        work_start: First step of the work memory.
        steps: Steps covered by the long memory.
        rate: Distance in steps between rows.
        keep_phase: If fewer than ``steps`` steps are available, count back
            from the work memory (TeSTra) instead of forward from step 0
            (LSTR).

    Returns:
        ``(steps // rate,)`` int64.
    """
    start = work_start - steps
    if start < 0:
        start = work_start % rate if keep_phase else 0
    known = np.arange(start, work_start, rate)
    # Near the start of the video, counting forward (LSTR) can give one step
    # too many.
    known = known[-(steps // rate):] if steps else known[:0]
    return np.concatenate(
        [np.zeros(steps // rate - len(known), np.int64), known])


def training_long_indices(work_start: int, steps: int, rate: int,
                          stretch: bool = False) -> np.ndarray:
    """Return the steps of the long memory in training, oldest first.

    The steps are spread evenly before the work memory, and rounded down.

    Args:
        work_start: First step of the work memory.
        steps: Steps covered by the long memory.
        rate: Distance in steps between rows.
        stretch: If fewer than ``steps`` steps are available, spread all rows
            over them (LSTR) instead of repeating step 0 (TeSTra).

    Returns:
        ``(steps // rate,)`` int64.
    """
    start = work_start - steps
    if stretch:
        start = max(0, start)
    spread = np.linspace(start, work_start - 1, steps // rate)
    # Rounds towards zero, as released: -0.8 becomes 0.
    return spread.astype(np.int64).clip(min=0)


def long_padding_mask(indices: np.ndarray) -> np.ndarray:
    """Mask the padding of a long memory with the steps ``indices``, ``(N,)``.

    All rows of step 0 except the last are padding.
    """
    mask = np.zeros(len(indices), dtype=bool)
    mask[:max(0, np.count_nonzero(indices == 0) - 1)] = True
    return mask
