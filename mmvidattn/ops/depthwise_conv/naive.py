# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: torch's convolution, channels moved to its place."""
import torch.nn.functional as F
from torch import Tensor


def naive_depthwise_conv(x: Tensor,
                         weight: Tensor,
                         bias: Tensor | None = None) -> Tensor:
    """Args and result as :func:`depthwise_conv`."""
    padding = tuple(k // 2 for k in weight.shape[2:])
    y = F.conv3d(
        x.movedim(-1, 1), weight, bias, padding=padding, groups=len(weight))
    return y.movedim(1, -1)
