# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: torch's convolution, channels moved to its place."""
import torch.nn.functional as F
from torch import Tensor


def naive_patch_conv(x: Tensor,
                     weight: Tensor,
                     bias: Tensor | None = None) -> Tensor:
    """Args and result as :func:`patch_conv`."""
    y = F.conv3d(
        x.movedim(-1, 1),
        weight,
        bias,
        stride=weight.shape[2:],
        groups=x.shape[-1] // weight.shape[1])
    return y.movedim(1, -1)
