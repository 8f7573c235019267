# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kernel functions that map queries and keys to non-negative numbers."""
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

FeatureMap = Literal['relu', 'elu+1', 'sigmoid', 'identity']
FEATURE_MAPS = get_args(FeatureMap)


def feature_map(x: Tensor, kind: str = 'relu', offset: float = 0.) -> Tensor:
    """Apply a kernel function of linear attention, Sec. 3.2 and Table 5.

    Args:
        x: Queries or keys, of any shape.
        kind: 'relu', 'elu+1' (Linear Transformer), 'sigmoid' or 'identity'.
            Defaults to 'relu'.
        offset: Constant added to the result. The released code adds
            ``D ** -0.5`` (D is the head width) to ReLU, so that no row of Q
            or K is all zero; the paper's equations do not. Defaults to 0.

    Returns:
        Mapped tensor, in the shape of ``x``.

    Raises:
        ValueError: If ``kind`` is unknown.
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
