# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Published weights under our names: ``state_dict`` to ``state_dict``."""
import sys

from torch import Tensor

from .dualformer import dualformer
from .dualformer_2d import dualformer_2d
from .laps import laps, laps_vit_timm, rest, visformer
from .linear_ff import linear_ff
from .linear_ff_image import linear_ff_image, vit_hf, vit_timm
from .mat import mat
from .miniroad import miniroad
from .start_weights import StartWeights
from .testra import testra
from .tsn import bn_inception, tsn_resnet
from .videomae import vivit_videomae
from .vivit_hf import vivit_hf, vivit_image
from .vivit_scenic import vivit_scenic
from .xvit import xvit, xvit_image

SOURCES = dict(
    bn_inception=bn_inception,
    dualformer=dualformer,
    dualformer_2d=dualformer_2d,
    laps=laps,
    laps_vit_timm=laps_vit_timm,
    linear_ff=linear_ff,
    linear_ff_image=linear_ff_image,
    lstr=testra,
    mat=mat,
    miniroad=miniroad,
    testra=testra,
    tsn_resnet=tsn_resnet,
    rest=rest,
    visformer_s_in10k=visformer,
    visformer_timm=visformer,
    vit_hf=vit_hf,
    vit_timm=vit_timm,
    vivit_hf=vivit_hf,
    vivit_image=vivit_image,
    vivit_scenic=vivit_scenic,
    vivit_videomae=vivit_videomae,
    xvit=xvit,
    xvit_image=xvit_image)

# What some files do not tell: models that differ in it have the same tensors.
UNTOLD = dict(
    laps='attention, shift, shift_fraction, shift_first and pyramid: LAPS, '
    'its baselines and both versions of it fit any of our configs of that '
    'backbone and resolution, and are right in their own',
    lstr='decay, fusion and the positions of the memories',
    mat='groups of the long memory and share of the keys',
    testra='decay (box or Laplace kernel), fusion and the positions of the '
    'memories',
    linear_ff='shifts, order and kernel of the attention',
    xvit='divisor and segments of the shift')


def convert(source: str, state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename and reshape the tensors of a published checkpoint.

    Of weights to start from it prints, to stderr, which were used, folded and
    dropped, and what was added; what a backbone has beyond them is printed
    when it loads them.

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
    out = SOURCES[source](state_dict)
    if isinstance(out, StartWeights):
        # Beside what a program writes of its own.
        print(f'{source}: {out.report()}', file=sys.stderr)
    # A plain one can be saved for torch.load(weights_only=True).
    return dict(out)


__all__ = ['SOURCES', 'UNTOLD', 'StartWeights', 'convert']
