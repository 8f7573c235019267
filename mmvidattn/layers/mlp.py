# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from ..utils.arguments import check_arguments
from .linear import Linear

Approximation = Literal['none', 'tanh', 'sigmoid']


@check_arguments
class MLP(nn.Module):
    """MLP of the video transformers, with or without a convolution inside.

    fc1, a 3x3 depth-wise convolution over each frame's grid, GELU, fc2. The
    released linear video transformer has the convolution in place of a
    position embedding; the paper does not mention it.

    Args:
        embed_dims: Channels C.
        hidden_dims: Channels between.
        with_conv: Whether there is a depth-wise convolution.
        dropout: Dropout after GELU and after fc2.
        approximate: GELU's formula: 'none', the exact one, 'tanh', or
            'sigmoid', ``x * sigmoid(1.702 x)`` (OpenAI's CLIP calls it
            QuickGELU).
    """

    def __init__(self,
                 embed_dims: int,
                 hidden_dims: int,
                 with_conv: bool = False,
                 dropout: float = 0.,
                 approximate: Approximation = 'none') -> None:
        super().__init__()
        self.approximate = approximate
        self.fc1 = Linear(embed_dims, hidden_dims)
        self.dwconv = nn.Conv2d(
            hidden_dims, hidden_dims, 3, padding=1,
            groups=hidden_dims) if with_conv else None
        self.fc2 = Linear(hidden_dims, embed_dims)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, H, W, C] to the same shape; [*, C] without a convolution."""
        x = self.fc1(x)
        if self.dwconv is not None:
            B, T = x.shape[:2]
            # Channels last already: the convolution reads the tokens as they
            # lie in memory.
            x = self.dwconv(x.flatten(0, 1).permute(0, 3, 1, 2))
            x = x.permute(0, 2, 3, 1).unflatten(0, (B, T))
        if self.approximate == 'sigmoid':
            x = x * (1.702 * x).sigmoid()
        else:
            x = F.gelu(x, approximate=self.approximate)
        return self.dropout(self.fc2(self.dropout(x)))
