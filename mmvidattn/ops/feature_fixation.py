# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature fixation: gates that reweight the channels of queries and keys."""
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .linear import linear

Mode = Literal['separate', 'cooperative']
Inputs = Literal['qk', 'qkv']
Aggregate = Literal['concat', 'add', 'mul']
AGGREGATES = get_args(Aggregate)


class Gate(NamedTuple):
    """Linear maps of feature fixation, for n inputs of width D.

    ``mode``, ``inputs`` and ``aggregate`` are the options of
    :class:`mmvidattn.layers.FeatureFixation`. Its option ``shared`` is True
    for a gate without ``k_weight``.

    Attributes:
        q_weight: Weight of the ratio of queries, [D, n D] for 'concat', else
            [D, D].
        q_bias: Bias of the ratio of queries, [D].
        k_weight: Weight of the ratio of keys, in the shape of ``q_weight``.
            None if queries and keys share one ratio.
        k_bias: Bias of the ratio of keys, [D], or None.
        mode: 'separate' (the ratio of queries comes from queries, the ratio
            of keys from keys) or 'cooperative' (both come from ``inputs``).
        inputs: Inputs of cooperative fixation, 'qk' or 'qkv'.
        aggregate: How the inputs are combined: 'concat', 'add' or 'mul'.
    """
    q_weight: Tensor
    q_bias: Tensor
    k_weight: Tensor | None = None
    k_bias: Tensor | None = None
    mode: Mode = 'cooperative'
    inputs: Inputs = 'qkv'
    aggregate: Aggregate = 'concat'


def gate_kind(gate: Gate | None) -> str:
    """Return the name of a gate in the Triton kernels.

    ==========  =============  ==========  ================================
    name        mode           shared      ratios
    ==========  =============  ==========  ================================
    none        no gate        no gate     none
    separate    'separate'     False       two, each from its own input
    shared      'cooperative'  True        one from all inputs
    unshared    'cooperative'  False       two from all inputs
    ==========  =============  ==========  ================================
    """
    if gate is None:
        return 'none'
    if gate.mode == 'separate':
        return 'separate'
    return 'shared' if gate.k_weight is None else 'unshared'


def fixate(q: Tensor, k: Tensor, v: Tensor,
           gate: Gate) -> tuple[Tensor, Tensor]:
    """Multiply queries and keys by the ratios of feature fixation.

    Args:
        q: Mapped queries, [*, D].
        k: Mapped keys, [*, D].
        v: Values, [*, D].
        gate: Weights and options.

    Returns:
        Reweighted queries and keys, [*, D] each.
    """
    q_weight, q_bias, k_weight, k_bias, mode, inputs, aggregate = gate
    if mode == 'separate':
        return (q * fixation_ratio((q, ), q_weight, q_bias),
                k * fixation_ratio((k, ), k_weight, k_bias))
    parts = (q, k, v)[:len(inputs)]
    q_ratio = k_ratio = fixation_ratio(parts, q_weight, q_bias, aggregate)
    if k_weight is not None:
        k_ratio = fixation_ratio(parts, k_weight, k_bias, aggregate)
    return q * q_ratio, k * k_ratio


def fixation_ratio(inputs: tuple[Tensor, ...],
                   weight: Tensor,
                   bias: Tensor,
                   aggregate: str = 'concat') -> Tensor:
    """Compute the ratio, from 0 to 1, that each channel is multiplied by.

    This is Eq. 5, and with one input Eq. 4, of `Linear Video Transformer with
    Feature Fixation <https://arxiv.org/abs/2210.08164>`_.

    Args:
        inputs: n representations of the tokens, [*, D] each: mapped queries,
            mapped keys, values.
        weight: [D, n D] for 'concat', else [D, D].
        bias: [D].
        aggregate: How the inputs are combined: 'concat', 'add' or 'mul'.

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
    """Reference of :func:`fixation_ratio`: Eqs. 4 and 5 as written."""
    if aggregate == 'concat':
        u = torch.cat(inputs, dim=-1)
    elif aggregate == 'add':
        u = torch.stack(inputs).sum(dim=0)
    else:
        u = torch.stack(inputs).prod(dim=0)
    return 1 / (1 + torch.exp(-(u @ weight.T + bias)))
