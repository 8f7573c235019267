# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of an image DualFormer to start weights.

https://github.com/sail-sg/dualformer
"""
import torch
from torch import Tensor

from .dualformer import dualformer

_HEADS = 'head.', 'cls_head.'
# The two convolutions of a coarse level.
_FIRST, _SECOND = '.attn.lr.0.', '.attn.lr.3.'


def dualformer_2d(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert the authors' image model, with or without prefix 'backbone.'.

    Kernels stay two-dimensional. The backbone repeats them over its frames,
    and divides them by the number of frames. The classifier is left out.

    As in the authors' code, the second convolution of a coarse pyramid level
    becomes a mean, whatever the checkpoint contains. The result has a 1x1
    kernel of ones, which the backbone extends to the size of the level, so
    that it is a mean for any number of frames. (The authors' code always
    divides by the size for 32 frames.)
    """
    named = {}
    for name, value in state_dict.items():
        if name.startswith(_HEADS) or _SECOND in name:
            continue
        name = f'backbone.{name.removeprefix("backbone.")}'
        named[name] = value
        if name.endswith(f'{_FIRST}bias'):
            second = name.replace(_FIRST, _SECOND)
            named[second] = torch.zeros_like(value)
            named[second.replace('bias', 'weight')] = torch.ones_like(
                value)[:, None, None, None]
    return dualformer(named)
