# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the regions that a prediction depends on, with Grad-CAM.

    mmvidattn grad-cam VIDEO --config CONFIG:CHECKPOINT ...

Writes an image with frames of the video for each model and class, like Fig. 6
of DualFormer, and ``grad_cam.json``. It supports every backbone whose tokens
keep their positions. The default layer is the input of the last attention,
because models that classify a class token have no gradients at the patches of
later layers.

Needs the package grad-cam: pip install "mmvidattn[cam]".
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_cfg_options, add_device, parser_of

METHODS = 'GradCAM', 'GradCAMPlusPlus', 'HiResCAM', 'LayerCAM'


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('video', type=Path, help='video file')
    parser.add_argument(
        '--config', action='append', required=True,
        metavar='CONFIG[:CHECKPOINT]',
        help='config file or name of a model, with its checkpoint; repeat the '
        'option to compare models')
    parser.add_argument(
        '--classes', nargs='+', type=int, metavar='INDEX',
        help="indices of classes (default: the model's prediction)")
    parser.add_argument(
        '--layer', help='name of a layer in the backbone (default: the input '
        'of the last attention)')
    parser.add_argument(
        '--method', choices=METHODS, default=METHODS[0],
        help='method (default: %(default)s)')
    add_cfg_options(parser)
    parser.add_argument(
        '--out', type=Path, default=Path('grad_cam'), metavar='FOLDER',
        help='folder to write to (default: %(default)s)')
    add_device(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import grad_cam
    grad_cam.run(args)
