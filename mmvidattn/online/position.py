# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import torch
from torch import Tensor


def sinusoidal_positions(length: int, embed_dims: int) -> Tensor:
    """Return sinusoidal position embeddings, sine and cosine in turn.

    `Attention is all you need <https://arxiv.org/abs/1706.03762>`_, 3.5.

    Args:
        length: Number of positions.
        embed_dims: Channels C, an even number.

    Returns:
        float32, [length, C].

    Raises:
        ValueError: If ``embed_dims`` is odd.
    """
    if embed_dims % 2:
        raise ValueError(f'embed_dims must be even, got {embed_dims}')
    rates = torch.exp(
        torch.arange(0, embed_dims, 2) * (-math.log(1e4) / embed_dims))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
