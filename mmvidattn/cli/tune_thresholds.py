# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tune the thresholds of events on annotated videos.

    mmvidattn stream VIDEO [VIDEO ...] CONFIG CHECKPOINT --scores SCORES
    mmvidattn tune-thresholds SCORES annotations.csv --out thresholds.json
    mmvidattn stream CAMERA CONFIG CHECKPOINT --thresholds thresholds.json

Each class gets the scores that start and end an event, a smoothing of its
scores, and a least duration. Use videos that the model was not trained on.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_columns, positive

OBJECTIVES = 'f1@50', 'f1@25', 'f1@10', 'recall'


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('scores', type=Path,
                        help='folder of mmvidattn stream --scores')
    parser.add_argument(
        'annotations', type=Path, help='annotated events of these videos, in '
        'any format of mmvidattn annotations')
    parser.add_argument('--out', type=Path, default=Path('thresholds.json'),
                        metavar='FILE',
                        help='file to write (default: %(default)s)')
    parser.add_argument(
        '--objective', choices=OBJECTIVES, default='f1@50',
        help='F1 at an overlap of 50, 25 or 10 %%, or the highest recall with '
        'at most --false-alarms per hour (default: %(default)s)')
    parser.add_argument(
        '--false-alarms', type=float, metavar='X',
        help='false alarms per hour that each class may have, for '
        '--objective recall')
    parser.add_argument(
        '--videos', type=Path, metavar='FOLDER',
        help='folder of the videos, to find the frame rate of annotations')
    parser.add_argument(
        '--fps', type=positive,
        help='frames per second, for annotations that count frames (default: '
        'as in the file, or else as in the videos)')
    add_columns(parser)
    args = parser.parse_args(argv)
    if (args.objective == 'recall') != (args.false_alarms is not None):
        parser.error('--objective recall and --false-alarms need each other')
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import tune_thresholds
    tune_thresholds.run(args)
