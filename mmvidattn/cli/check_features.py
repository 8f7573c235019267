# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check a dataset of feature streams, and report faults.

    mmvidattn check-features data/thumos14 \\
        --list train.txt --features rgb_kinetics_resnet50

Prints a table of folders, and the faults of each file. The exit status is 0
without faults, and 1 with faults.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('root', type=Path, help='folder of the dataset')
    parser.add_argument('--features', nargs='+', required=True,
                        metavar='FOLDER', help='folders of features')
    parser.add_argument('--targets', nargs='*', default=['target_perframe'],
                        metavar='FOLDER',
                        help='folders of targets (default: target_perframe)')
    parser.add_argument('--list', nargs='+', metavar='FILE',
                        help='lists of videos (default: all files of the '
                        'first folder)')
    parser.add_argument('--dims', nargs='+', type=int, metavar='D',
                        help='width of each folder of features')
    parser.add_argument('--classes', metavar='FILE',
                        help='file with class names, one for each column of '
                        'the targets')
    parser.add_argument('--rate', type=float,
                        help='steps per second, to check with --durations')
    parser.add_argument('--durations', type=Path, metavar='FILE.json',
                        help='duration of each video in seconds')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import check_features
    check_features.run(args)
