# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sizes of grids, also those that stand for any in an exported program."""
import torch


def is_any_size(n: int) -> bool:
    """Whether a size stands for many, in a program that is exported.

    A question about such a size, whether it is divisible or large enough,
    makes the program one for the sizes with that answer.
    """
    return isinstance(n, torch.SymInt)


def num_blocks(n: int, size: int) -> int:
    """Blocks that cover an axis, the last of which may be incomplete."""
    return (n + size - 1) // size
