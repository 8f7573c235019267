# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert and check annotations of long videos, and count their classes.

    mmvidattn annotations export.json --videos FOLDER
    mmvidattn annotations export.json mine.csv --videos FOLDER
    mmvidattn annotations mine.csv tasks.json --to label-studio --fps 25

The formats are csv, activitynet, label-studio, cvat, via, elan and boris; see
docs/annotations.md. With --videos, lengths and frame rates are compared with
the videos. The exit status is 1 if a video is missing or does not fit.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import ANNOTATION_FORMATS, positive


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        'source', type=Path, metavar='IN',
        help='file of annotations, or a folder of files of one format')
    parser.add_argument(
        'out', type=Path, nargs='?', metavar='OUT',
        help='file to write; a folder for several videos in cvat and elan, '
        'which have a file for each video (default: only check and count)')
    parser.add_argument(
        '--from', dest='source_format', choices=ANNOTATION_FORMATS,
        help='format of IN (default: recognized by its content)')
    parser.add_argument(
        '--to', choices=ANNOTATION_FORMATS,
        help='format of OUT (default: by its suffix: .csv, .xml for cvat, '
        '.eaf for elan, .boris)')
    parser.add_argument(
        '--videos', type=Path, metavar='FOLDER',
        help='folder of the videos; OUT has their paths in this folder')
    parser.add_argument(
        '--fps', type=positive,
        help='frames per second, for files that count frames (default: as in '
        'IN, or else as in the videos)')
    parser.add_argument(
        '--url', help='start of the addresses of videos in Label Studio '
        '(default: /data/local-files/?d=)')
    args = parser.parse_args(argv)
    if args.out is None and (args.to or args.url):
        parser.error('--to and --url need OUT')
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import annotations
    annotations.run(args)
