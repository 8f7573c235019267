# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of MiniROAD, as its authors released them.

https://github.com/jbistanbul/MiniROAD
"""
from torch import Tensor

from .rename import rename_all

_RENAMES = (
    (r'^layer1\.0\.', 'backbone.projection.projection.'),
    (r'^layer1\.1\.', 'backbone.projection.norm.'),
    (r'^gru\.', 'backbone.gru.'),
    (r'^f_classification\.0\.', 'cls_head.fc_cls.'),
)


def miniroad(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the released names to those of our recognizer.

    Args:
        state_dict: Of a released or newly trained checkpoint, which is
            nothing else.

    Returns:
        Tensors that load strictly into an ``OnlineActionDetector`` of
        ``MiniROAD`` and ``OnlineActionHead``.

    Raises:
        ValueError: If a tensor is not one of that model.
    """
    return rename_all(state_dict, _RENAMES, 'the released MiniROAD')
