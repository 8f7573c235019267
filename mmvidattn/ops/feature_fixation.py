# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The gate that reweights the channels of queries and keys."""
import torch
from torch import Tensor

from .linear import linear

AGGREGATES = ('concat', 'add', 'mul')


def fixation_ratio(inputs: tuple[Tensor, ...],
                   weight: Tensor,
                   bias: Tensor,
                   aggregate: str = 'concat') -> Tensor:
    """Fixation ratio, Eq. 5 of the paper (Eq. 4 with a single input).

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
    if aggregate not in AGGREGATES:
        raise ValueError(
            f'aggregate must be one of {AGGREGATES}, got {aggregate!r}')
    if aggregate == 'concat':
        u = torch.cat(inputs, dim=-1)
    else:
        u, *rest = inputs
        for x in rest:
            u = u + x if aggregate == 'add' else u * x
    return torch.sigmoid(linear(u, weight, bias))


def naive_fixation_ratio(inputs: tuple[Tensor, ...],
                         weight: Tensor,
                         bias: Tensor,
                         aggregate: str = 'concat') -> Tensor:
    """The reference: Eqs. 4 and 5 of the paper as written.

    Args and result as :func:`fixation_ratio`.
    """
    if aggregate == 'concat':
        u = torch.cat(inputs, dim=-1)
    elif aggregate == 'add':
        u = torch.stack(inputs).sum(dim=0)
    else:
        u = torch.stack(inputs).prod(dim=0)
    return 1 / (1 + torch.exp(-(u @ weight.T + bias)))
