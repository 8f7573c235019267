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


def rename_all(state_dict: dict[str, Tensor],
               rules: Sequence[tuple[str, str]], model: str,
               unused: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """Rename the tensors of a checkpoint to our recognizer's names.

    Args:
        state_dict: Tensors by their published names.
        rules: See :func:`rename`.
        model: Name of the published model, for the error.
        unused: Prefixes of published names to leave out.

    Raises:
        ValueError: If a new name begins with neither ``backbone.`` nor
            ``cls_head.``.
    """
    out = {}
    for name, value in state_dict.items():
        if name.startswith(unused):
            continue
        new = rename(name, rules)
        if not new.startswith(('backbone.', 'cls_head.')):
            raise ValueError(f'{name} is no tensor of {model}')
        out[new] = value
    return out


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
