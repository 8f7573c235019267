# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert published weights: ``state_dict`` to ``state_dict``.

Each converter in ``SOURCES`` takes the tensors of a checkpoint that was
released, or trained with the released code. It returns tensors with the names
of this package. A tensor that does not belong to the model raises a
``ValueError``.
"""
from collections.abc import Callable
from functools import partial

from torch import Tensor

from .dualformer import dualformer, dualformer_2d
from .image_vit import linear_ff_image, vivit_image, xvit_image
from .laps import laps, laps_image
from .linear_ff import linear_ff, xvit
from .online import mat, miniroad, testra
from .tsn import bn_inception, tsn_resnet
from .vivit import vivit_hf, vivit_scenic, vivit_videomae
from .vjepa2 import vjepa2, vjepa2_predictor

SOURCES = dict(
    bn_inception=bn_inception,
    dualformer=dualformer,
    dualformer_2d=dualformer_2d,
    laps=laps,
    laps_vit_timm=partial(laps_image, 'vit'),
    linear_ff=linear_ff,
    linear_ff_image=linear_ff_image,
    lstr=testra,
    mat=mat,
    miniroad=miniroad,
    testra=testra,
    tsn_resnet=tsn_resnet,
    rest=partial(laps_image, 'rest'),
    visformer_s_in10k=partial(laps_image, 'visformer'),
    visformer_timm=partial(laps_image, 'visformer'),
    vit_hf=linear_ff_image,
    vit_timm=linear_ff_image,
    vivit_hf=vivit_hf,
    vivit_image=vivit_image,
    vivit_scenic=vivit_scenic,
    vivit_videomae=vivit_videomae,
    vjepa2=vjepa2,
    vjepa2_predictor=vjepa2_predictor,
    xvit=xvit,
    xvit_image=xvit_image)

# Options that published files do not store. Models that differ only in these
# options have the same tensors.
UNSTORED_OPTIONS = dict(
    laps='attention, shift, shift_fraction, shift_first and pyramid (LAPS, '
    'both of its versions and its baselines load into every config with their '
    'backbone and resolution, but only give correct scores in their own)',
    lstr='decay, fusion and the positions of the memories',
    mat='groups of the long memory and fraction of the keys',
    testra='decay (box or Laplace kernel), fusion and the positions of the '
    'memories',
    vjepa2='version (2 or 2.1)',
    linear_ff='shifts, order and kernel of the attention',
    xvit='divisor and segments of the shift')


def find_converter(source: str) -> Callable[[dict[str, Tensor]], dict]:
    """Return the converter of a source.

    Raises:
        ValueError: If the source is unknown.
    """
    if source not in SOURCES:
        raise ValueError(f'source must be one of {", ".join(SOURCES)}, got '
                         f'{source!r}')
    return SOURCES[source]


def convert(source: str, state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename and reshape the tensors of a published checkpoint.

    Remarks on stderr list the tensors that were dropped or set to zero, and
    the options that the source needs. The backbone reports mismatches when it
    loads the weights.

    Args:
        source: Key of ``SOURCES``.
        state_dict: Tensors of the checkpoint.

    Returns:
        Tensors with the names of a recognizer of this package.

    Raises:
        ValueError: If the source is unknown, or a tensor does not belong to
            it.
    """
    return find_converter(source)(state_dict)


__all__ = ['SOURCES', 'UNSTORED_OPTIONS', 'convert', 'find_converter']
