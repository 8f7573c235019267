# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The kernel functions that turn queries and keys non-negative."""
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

FeatureMap = Literal['relu', 'elu+1', 'sigmoid', 'identity']
FEATURE_MAPS = get_args(FeatureMap)


def feature_map(x: Tensor, kind: str = 'relu', offset: float = 0.) -> Tensor:
    """Kernel function of linear attention (paper Sec. 3.2 and Table 5).

    Args:
        x: Queries or keys, of any shape.
        kind: 'relu', 'elu+1' (Linear Transformer), 'sigmoid' or 'identity'.
        offset: A constant added to the result. The released code adds
            ``D ** -0.5`` to ReLU (D the head width), which no equation of
            the paper has: with it no row of Q or K is ever all zero.

    Returns:
        The mapped tensor, of the shape of ``x``.

    Raises:
        ValueError: If ``kind`` is none of the above.
    """
    if kind == 'relu':
        x = F.relu(x)
    elif kind == 'elu+1':
        x = F.elu(x) + 1
    elif kind == 'sigmoid':
        x = torch.sigmoid(x)
    elif kind != 'identity':
        raise ValueError(f'feature_map must be one of {FEATURE_MAPS}, '
                         f'got {kind!r}')
    return x + offset if offset else x
