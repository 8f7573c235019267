# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: the ratio as Eqs. 4 and 5 of the paper write it."""
import torch
from torch import Tensor


def naive_fixation_ratio(inputs: tuple[Tensor, ...],
                         weight: Tensor,
                         bias: Tensor,
                         aggregate: str = 'concat') -> Tensor:
    """Args and result as :func:`fixation_ratio`."""
    if aggregate == 'concat':
        u = torch.cat(inputs, dim=-1)
    elif aggregate == 'add':
        u = torch.stack(inputs).sum(dim=0)
    else:
        u = torch.stack(inputs).prod(dim=0)
    return 1 / (1 + torch.exp(-(u @ weight.T + bias)))
