# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of an image DualFormer, to start training from.

https://github.com/sail-sg/dualformer
"""
import torch
from torch import Tensor

from .dualformer import dualformer

_HEADS = 'head.', 'cls_head.'
# The two convolutions of a coarse level.
_FIRST, _SECOND = '.attn.lr.0.', '.attn.lr.3.'


def dualformer_2d(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the authors' image model to the backbone of ours.

    Kernels stay those of images: the backbone repeats them over its frames
    and divides by their number. Whatever the checkpoint holds, the second
    convolution of a coarse level becomes a mean, as released: here a kernel
    of one place, which the backbone spreads. Differs from the released code:
    it is the mean for any number of frames; theirs divides by the size of 32
    frames always. The classifier is left out.

    Args:
        state_dict: Tensors of an image model, with or without the prefix
            'backbone.'.

    Raises:
        ValueError: If a tensor is not one of that model.
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
