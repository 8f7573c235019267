# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure how well predicted events agree with annotations.

    mmvidattn score predictions.csv annotations.csv
    mmvidattn score predictions.csv annotations.json --videos FOLDER \\
        --scores SCORES --report REPORT

Both files may have any format of `mmvidattn annotations`; --columns is for the
file of annotations. Names of videos may
differ in their folders and suffixes. The table has 95 % intervals over videos.
docs/event_metrics.md explains which number answers which question.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_columns, at_least, positive

PROTOCOLS = 'activitynet', 'thumos14'


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('predictions', type=Path,
                        help='file of predicted events')
    parser.add_argument('annotations', type=Path,
                        help='file of annotated events')
    parser.add_argument(
        '--videos', type=Path, metavar='FOLDER',
        help='folder of the evaluated videos. Their lengths are used for '
        'false alarms per hour, and videos that the annotations do not list '
        'count as videos without events, unless --subset is given (default: '
        'the lengths in the annotations, or else the last end in each video)')
    parser.add_argument(
        '--fps', type=positive,
        help='frames per second, for files that count frames (default: as in '
        'the file, or else as in the videos)')
    add_columns(parser)
    parser.add_argument(
        '--subset', help='evaluate only the videos of this subset of the '
        'annotations, such as test')
    parser.add_argument(
        '--scores', type=Path, metavar='FOLDER',
        help='scores of steps from mmvidattn stream --scores, to evaluate '
        'their calibration')
    parser.add_argument(
        '--protocol', choices=PROTOCOLS, default='activitynet',
        help='evaluation code that mAP follows (default: activitynet)')
    parser.add_argument(
        '--draws', type=at_least(0), default=1000, metavar='N',
        help='bootstrap draws for the intervals (default: 1000)')
    parser.add_argument(
        '--report', type=Path, metavar='FOLDER',
        help='write the table, the values as JSON, and images: timelines, '
        'precision and recall by class, delays, calibration')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import score
    score.run(args)
