# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Names of tensors in published checkpoints, turned into ours."""
import re
from collections.abc import Sequence

import torch
from torch import Tensor


def rename(name: str, rules: Sequence[tuple[str, str]]) -> str:
    """Apply rules, each a regular expression and what takes its place."""
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def join_qkv(tensors: dict[str, Tensor], parts: tuple[str, str, str],
             joined: str) -> dict[str, Tensor]:
    """Join the projections to Q, K and V into one.

    Args:
        tensors: Weights [C, C] and biases [C] by name, and others.
        parts: Part of the names of the queries, keys and values; the result,
            [3 C, C] and [3 C], has ``joined`` in its place.
        joined: See ``parts``.

    Raises:
        ValueError: If one of the three is not there.
    """
    out = {}
    for name, value in tensors.items():
        part = next((part for part in parts if part in name), None)
        if part is None:
            out[name] = value
            continue
        names = [name.replace(part, other) for other in parts]
        for other in names:
            if other not in tensors:
                raise ValueError(f'there is {name}, but no {other}')
        if name == names[0]:
            out[name.replace(part, joined)] = torch.cat(
                [tensors[other] for other in names])
    return out
