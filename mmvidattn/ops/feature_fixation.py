# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature fixation: gates that reweight the channels of queries and keys."""
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

Aggregate = Literal['concat', 'add', 'mul']
AGGREGATES = get_args(Aggregate)


def fixation_ratio(inputs: tuple[Tensor, ...], weight: Tensor, bias: Tensor,
                   aggregate: str = 'concat') -> Tensor:
    """Compute the ratio, from 0 to 1, that each channel is multiplied by.

    This is Eq. 5, and with one input Eq. 4, of `Linear Video Transformer with
    Feature Fixation <https://arxiv.org/abs/2210.08164>`_. Training of linear
    attention computes it in ``fused_feature_fixation.py``, with its gradient.

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
    return torch.sigmoid(F.linear(u, weight, bias))


def naive_fixation_ratio(inputs: tuple[Tensor, ...], weight: Tensor,
                         bias: Tensor, aggregate: str = 'concat') -> Tensor:
    """Reference of :func:`fixation_ratio`: Eqs. 4 and 5 as written."""
    if aggregate == 'concat':
        u = torch.cat(inputs, dim=-1)
    elif aggregate == 'add':
        u = torch.stack(inputs).sum(dim=0)
    else:
        u = torch.stack(inputs).prod(dim=0)
    return 1 / (1 + torch.exp(-(u @ weight.T + bias)))
