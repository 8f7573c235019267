# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The gate that reweights the channels of queries and keys."""
import torch
import torch.nn.functional as F
from torch import Tensor

AGGREGATES = ('concat', 'add', 'mul')


def fixation_ratio(inputs: tuple[Tensor, ...],
                   weight: Tensor,
                   bias: Tensor,
                   aggregate: str = 'concat') -> Tensor:
    """Fixation ratio, Eq. 5 of the paper (Eq. 4 with a single input).

    The concatenation is never formed: the weight is split by columns instead.

    Args:
        inputs: n latent representations of the tokens, each [*, D]: mapped
            queries, mapped keys, values.
        weight: [D, n D] for 'concat', else [D, D].
        bias: [D].
        aggregate: How the inputs cooperate: 'concat', 'add' or 'mul'.

    Returns:
        Ratios in (0, 1), [*, D].

    Raises:
        ValueError: If ``aggregate`` is unknown.
    """
    first, *rest = inputs
    if aggregate == 'concat':
        parts = weight.split([x.shape[-1] for x in inputs], dim=-1)
        score = F.linear(first, parts[0], bias)
        for x, part in zip(rest, parts[1:]):
            score = score + F.linear(x, part)
    elif aggregate in ('add', 'mul'):
        for x in rest:
            first = first + x if aggregate == 'add' else first * x
        score = F.linear(first, weight, bias)
    else:
        raise ValueError(
            f'aggregate must be one of {AGGREGATES}, got {aggregate!r}')
    return torch.sigmoid(score)
