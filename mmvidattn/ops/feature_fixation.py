# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The gate that reweights the channels of queries and keys."""
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .linear import linear

Aggregate = Literal['concat', 'add', 'mul']
AGGREGATES = get_args(Aggregate)


class Gate(NamedTuple):
    """The linear maps of feature fixation, for n inputs of width D.

    Attributes:
        q_weight: Of the ratio of queries, [D, n D] for 'concat', else [D, D].
        q_bias: [D].
        k_weight: Of the ratio of keys; None if that of queries serves both.
        k_bias: Likewise.
        inputs: What the ratios come from: 'qkv', 'qk', or 'own' for queries
            from queries and keys from keys.
        aggregate: How the inputs cooperate: 'concat', 'add' or 'mul'.
    """
    q_weight: Tensor
    q_bias: Tensor
    k_weight: Tensor | None = None
    k_bias: Tensor | None = None
    inputs: str = 'qkv'
    aggregate: str = 'concat'


def fixate(q: Tensor, k: Tensor, v: Tensor,
           gate: Gate) -> tuple[Tensor, Tensor]:
    """Feature fixation, Secs. 4.1 and 4.2 of the paper.

    Args:
        q: Mapped queries, [*, D].
        k: Mapped keys, [*, D].
        v: Values, [*, D].
        gate: What reweights them.

    Returns:
        Reweighted queries and keys, [*, D] each.
    """
    q_weight, q_bias, k_weight, k_bias, inputs, aggregate = gate
    if inputs == 'own':
        return (q * fixation_ratio((q, ), q_weight, q_bias),
                k * fixation_ratio((k, ), k_weight, k_bias))
    parts = (q, k, v)[:len(inputs)]
    of_q = of_k = fixation_ratio(parts, q_weight, q_bias, aggregate)
    if k_weight is not None:
        of_k = fixation_ratio(parts, k_weight, k_bias, aggregate)
    return q * of_q, k * of_k


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
