# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check all videos of a list, and report unreadable ones.

    mmvidattn check-videos data/ssv2/train.txt --root data/ssv2

Decodes all frames of each video in worker processes, so that a file that
crashes or blocks a decoder does not stop the check. The exit status is 1 if
any file is unreadable.
"""
import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from ._shared import (
    at_least,
    parser_of,
    positive,
)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('ann_file', help='list of videos and labels')
    parser.add_argument(
        '--root', default='', help="folder that the list's paths are relative "
        'to (default: the current folder)')
    parser.add_argument(
        '--delimiter', default=' ',
        help='delimiter of the list (default: a blank)')
    parser.add_argument(
        '--multi-class', action='store_true',
        help='videos may have several labels')
    parser.add_argument(
        '--num-classes', type=int, help='number of classes, to check labels')
    parser.add_argument(
        '--workers', type=at_least(1), default=os.cpu_count(),
        help='number of processes (default: one per processor)')
    parser.add_argument(
        '--timeout', type=positive, default=60,
        help='maximum number of seconds for a video (default: 60)')
    parser.add_argument(
        '--quick', action='store_true',
        help='only decode the last frame of each video')
    parser.add_argument(
        '--out', type=Path, metavar='FILE',
        help='write unreadable files and reasons to FILE, separated by tabs')
    parser.add_argument(
        '--good', type=Path, metavar='FILE',
        help='write the list without unreadable files to FILE')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import check_videos
    check_videos.run(args)
