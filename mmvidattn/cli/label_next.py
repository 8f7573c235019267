# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Find the minutes of unlabeled videos that are most useful to label.

    mmvidattn label-next VIDEO_OR_FOLDER ... BUNDLE --out FOLDER
    mmvidattn label-next VIDEO_OR_FOLDER ... CONFIG CHECKPOINT --out FOLDER
    mmvidattn label-next [VIDEO_OR_FOLDER ...] --scores SCORES --out FOLDER

The model scores all videos. The chosen minutes are those in which its scores
are least certain or change most. FOLDER gets a video of each chosen minute,
and the detected events as annotations to correct: ``tasks.json`` for Label
Studio and ``tasks.csv``. ``minutes.csv`` lists where the minutes are from,
best first.

With SCORES, a folder of stored scores, no model is needed. If the video of a
minute is not available, such as a camera's, ``minutes.csv`` lists the minute
without a video.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import (
    add_cfg_options,
    add_device,
    add_model,
    at_least,
    parser_of,
    positive,
)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('sources', nargs='*', metavar='SOURCE',
                        help='video file, or folder of video files')
    add_model(parser)
    parser.add_argument(
        '--scores', type=Path, metavar='FOLDER',
        help='use the scores in this folder instead of a model, such as '
        'scores/test in the work directory of finetune --stream')
    parser.add_argument(
        '--out', type=Path, metavar='FOLDER', default=Path('label_next'),
        help='new folder to write (default: %(default)s)')
    parser.add_argument(
        '--number', type=at_least(1), default=10, metavar='N',
        help='number of minutes (default: %(default)s)')
    parser.add_argument(
        '--per-video', type=at_least(1), metavar='N',
        help='maximum number of minutes of a video (default: twice the number '
        'in equal shares)')
    parser.add_argument(
        '--seconds', type=positive,
        help='length of the sliding window of a clip model (default: as in '
        'mmvidattn stream)')
    parser.add_argument(
        '--stride', type=positive,
        help='seconds between windows of a clip model (default: as in '
        'mmvidattn stream)')
    add_device(parser)
    add_cfg_options(parser)
    args = parser.parse_intermixed_args(argv)
    if not args.sources and args.scores is None:
        parser.error('give videos and a model, or --scores')
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import label_next
    label_next.run(args)
