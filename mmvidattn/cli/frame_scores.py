# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw the scores of each frame of a video, like Fig. 4 of LAPS.

    mmvidattn frame-scores VIDEO \\
        --model laps_visformer_base2d_k400:A.pth \\
        --model laps_visformer_k400:B.pth --label 'skipping rope' \\
        --out frame_scores.png

The image shows the frames of a clip in a row above a curve for each model: the
probability of the class, from the logits of each frame. The config's
validation pipeline samples one clip of the video. A .json file beside the
image contains the scores. Without a checkpoint, a model has random weights,
and its scores are meaningless.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_cfg_options, add_device, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('video', type=Path, help='video file')
    parser.add_argument(
        '--model', action='append', required=True,
        metavar='CONFIG[:CHECKPOINT]',
        help='config file or name of a model, with its checkpoint; repeat the '
        'option to compare models')
    parser.add_argument(
        '--label',
        help="name or number of the class (default: the last model's "
        'prediction)')
    add_cfg_options(parser)
    parser.add_argument(
        '--out', type=Path, default=Path('frame_scores.png'), metavar='FILE',
        help='.png file to write (default: %(default)s)')
    add_device(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import frame_scores
    frame_scores.run(args)
