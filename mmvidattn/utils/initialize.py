# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

from torch import nn


def initialize(model: nn.Module, std: float) -> None:
    """Initialize the layers of a model like the authors' code.

    - Linear layer: truncated normal distribution of ``std``, zero bias.
    - Convolution: normal distribution of variance 2 / fan-out, zero bias.
    - LayerNorm: zero bias.

    Parameters outside of these layers stay unchanged.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=std)
        elif isinstance(module, (nn.Conv2d, nn.Conv3d)):
            fan_out = module.weight[:, 0].numel() / module.groups
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        elif not isinstance(module, nn.LayerNorm):
            continue
        if getattr(module, 'bias', None) is not None:
            nn.init.zeros_(module.bias)
