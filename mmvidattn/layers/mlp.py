# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from ..ops.depthwise_conv import depthwise_conv
from ..utils.arguments import check_arguments

Approximation = Literal['none', 'tanh', 'sigmoid']


class FrameConv(nn.Conv2d):
    """Depth-wise convolution of the frames of tokens [B, T, H, W, C]."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolved tokens, of the same shape."""
        return depthwise_conv(x, self.weight.unsqueeze(2), self.bias)


@check_arguments
class MLP(nn.Module):
    """MLP of the video transformers, with an optional convolution.

    It consists of ``fc1``, optionally a 3x3 depth-wise convolution over the
    grid of each frame, GELU, and ``fc2``. The released linear video
    transformer uses the convolution instead of a position embedding; its paper
    does not mention the convolution.

    Args:
        embed_dims: Channels C.
        hidden_dims: Channels between fc1 and fc2.
        with_conv: Add the depth-wise convolution. Defaults to False.
        dropout: Dropout after GELU and after fc2. Defaults to 0.
        approximate: Formula of GELU: 'none' (exact), 'tanh' or 'sigmoid'
            (``x * sigmoid(1.702 x)``, QuickGELU in OpenAI's CLIP). Defaults
            to 'none'.
    """

    def __init__(self,
                 embed_dims: int,
                 hidden_dims: int,
                 with_conv: bool = False,
                 dropout: float = 0.,
                 approximate: Approximation = 'none') -> None:
        super().__init__()
        self.approximate = approximate
        self.fc1 = nn.Linear(embed_dims, hidden_dims)
        self.dwconv = FrameConv(
            hidden_dims, hidden_dims, 3, padding=1,
            groups=hidden_dims) if with_conv else None
        self.fc2 = nn.Linear(hidden_dims, embed_dims)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Apply to [*, C]; with a convolution to [B, T, H, W, C]."""
        x = self.fc1(x)
        if self.dwconv is not None:
            x = self.dwconv(x)
        if self.approximate == 'sigmoid':
            x = x * (1.702 * x).sigmoid()
        else:
            x = F.gelu(x, approximate=self.approximate)
        return self.dropout(self.fc2(self.dropout(x)))
