# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor


def join_qkv(tensors: dict[str, Tensor], parts: tuple[str, str, str],
             joined: str) -> dict[str, Tensor]:
    """Make one projection to Q, K and V of three.

    Args:
        tensors: Weights [C, C] and biases [C] by name, and others.
        parts: What the names of the queries', keys' and values' have where
            those of the result, [3 C, C] and [3 C], have ``joined``.
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
