# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
r"""Convert published weights into a checkpoint for this package.

    mmvidattn convert linear_ff RELEASED.pth CONVERTED.pth
    mmvidattn convert laps RELEASED.pth CONVERTED.pth \
        --config laps_visformer_h_k400
    mmvidattn convert vivit_videomae hf://OWNER/MODEL@REVISION CONVERTED.pth
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import parser_of

SOURCES = (
    'bn_inception', 'dualformer', 'dualformer_2d', 'laps', 'laps_vit_timm',
    'linear_ff', 'linear_ff_image', 'lstr', 'mat', 'miniroad', 'testra',
    'tsn_resnet', 'rest', 'visformer_s_in10k', 'visformer_timm', 'vit_hf',
    'vit_timm', 'vivit_hf', 'vivit_image', 'vivit_scenic', 'vivit_videomae',
    'xvit', 'xvit_image')


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('source', help=f'one of {", ".join(SOURCES)}')
    parser.add_argument(
        'src', help='.pth, .pt or .safetensors file; or '
        'hf://OWNER/MODEL@REVISION for model.safetensors, and '
        'hf://OWNER/MODEL@REVISION/FILE.safetensors for another file; for '
        'vivit_scenic, the file named checkpoint')
    parser.add_argument('dst', type=Path, help='.pth file to write')
    parser.add_argument(
        '--force', action='store_true', help='replace an existing file')
    parser.add_argument(
        '--config', help='config of the model: check that the tensors fit, '
        'and store the model options, so that configs with different options '
        'reject the checkpoint')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import convert
    convert.run(args)
