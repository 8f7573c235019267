# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sizes of tensors, including symbolic sizes of an exported program."""
import torch

from .torch_private import statically_known_true


def is_any_size(n: int) -> bool:
    """Return True if a size is symbolic, as in ``torch.export``.

    A comparison of a symbolic size, such as a test of divisibility, restricts
    the exported program to sizes with the same result.
    """
    return isinstance(n, torch.SymInt)


def num_blocks(n: int, size: int) -> int:
    """Return how many blocks cover an axis, incomplete ones included."""
    return (n + size - 1) // size


def is_known(condition: bool) -> bool:
    """Return True if a condition holds for all sizes of a compiled graph."""
    if torch.compiler.is_compiling():
        return statically_known_true(condition)
    return condition
