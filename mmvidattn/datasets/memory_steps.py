# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Steps that the long memory of a window takes.

A step is a row of the feature files; at 4 Hz it is a quarter of a second. The
arithmetic follows the released code of TeSTra and LSTR.
"""
import numpy as np


def dense_long_indices(work_start: int,
                       steps: int,
                       rate: int,
                       keep_phase: bool = True) -> np.ndarray:
    """Steps of the long memory in evaluation, oldest first.

    Every ``rate``-th step up to the one ``rate`` before the work memory.
    Step 0 replaces steps before the video.

    Args:
        work_start: First step of the work memory.
        steps: How far back the long memory reaches.
        rate: Every how many steps one is taken.
        keep_phase: Where the video is younger than ``steps``, count back from
            the work memory (TeSTra), instead of on from step 0 (LSTR).

    Returns:
        ``(steps // rate,)`` int64.
    """
    start = work_start - steps
    if start < 0:
        start = work_start % rate if keep_phase else 0
    known = np.arange(start, work_start, rate)
    # At the start LSTR's way has one step more than there is room for.
    known = known[-(steps // rate):] if steps else known[:0]
    return np.concatenate(
        [np.zeros(steps // rate - len(known), np.int64), known])


def training_long_indices(work_start: int,
                          steps: int,
                          rate: int,
                          stretch: bool = False) -> np.ndarray:
    """Steps of the long memory in training, oldest first.

    Spread evenly, and rounded down, over the steps before the work memory.

    Args:
        work_start: First step of the work memory.
        steps: How far back the long memory reaches.
        rate: Every how many steps one is taken.
        stretch: Where the video is younger than ``steps``, spread all of them
            over its steps (LSTR). Otherwise repeat step 0 (TeSTra).

    Returns:
        ``(steps // rate,)`` int64.
    """
    start = work_start - steps
    if stretch:
        start = max(0, start)
    spread = np.linspace(start, work_start - 1, steps // rate)
    # Towards zero, as released: -0.8 becomes 0.
    return spread.astype(np.int64).clip(min=0)


def long_padding_mask(indices: np.ndarray) -> np.ndarray:
    """Mask padded rows of the long memory: each step 0 but the last.

    Args:
        indices: ``(N,)``.

    Returns:
        bool ``(N,)``, True where padded.
    """
    mask = np.zeros(len(indices), dtype=bool)
    mask[:max(0, np.count_nonzero(indices == 0) - 1)] = True
    return mask
