# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Published weights under our names: ``state_dict`` to ``state_dict``."""
from torch import Tensor

from .linear_ff import linear_ff
from .vit_timm import vit_timm
from .xvit import xvit, xvit_image

SOURCES = dict(
    linear_ff=linear_ff,
    vit_timm=vit_timm,
    xvit=xvit,
    xvit_image=xvit_image)


def convert(source: str, state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename and reshape the tensors of a published checkpoint.

    Args:
        source: Whose names they have: a key of ``SOURCES``.
        state_dict: The tensors.

    Returns:
        The tensors under the names of our recognizer.

    Raises:
        ValueError: If the source is unknown, or a tensor is none of its.
    """
    if source not in SOURCES:
        raise ValueError(f'source must be one of {", ".join(SOURCES)}, got '
                         f'{source!r}')
    return SOURCES[source](state_dict)


__all__ = ['SOURCES', 'convert']
