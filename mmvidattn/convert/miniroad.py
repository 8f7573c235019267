# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert the released weights of MiniROAD.

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
    """Convert a checkpoint, which is a plain state dict.

    Returns:
        Tensors that load strictly into an ``OnlineActionDetector`` with
        ``MiniROAD`` and ``OnlineActionHead``.
    """
    return rename_all(state_dict, _RENAMES, 'the released MiniROAD')
