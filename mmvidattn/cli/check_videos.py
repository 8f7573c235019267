# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check every video of a list: which cannot be read, and why.

    mmvidattn check-videos data/ssv2/train.txt --root data/ssv2

Decodes each video from its first to its last frame, in processes of their
own, so that a file that crashes or stops a decoder does neither to the check.
Ends with 1 if any file is bad.
"""
import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mmengine.utils import ProgressBar

from ..apis.runner import one_line_errors
from ..datasets.annotations.custom.video_list import read_video_list
from ..datasets.broken_files.check import check_files
from ..utils.printable import echo
from ..utils.video_readers import (
    default_video_backend,
    require_video_backend,
)
from ._shared import at_least, parser_of, positive


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('ann_file', help='list of videos and labels')
    parser.add_argument(
        '--root', default='', help="what the list's paths are relative to")
    parser.add_argument('--delimiter', default=' ')
    parser.add_argument(
        '--multi-class', action='store_true', help='a video has many labels')
    parser.add_argument(
        '--num-classes', type=int, help='labels must be below it')
    parser.add_argument(
        '--workers', type=at_least(1), default=os.cpu_count(),
        help='processes (default: one for each processor)')
    parser.add_argument(
        '--timeout', type=positive, default=60,
        help='seconds that a video may take (default: 60)')
    parser.add_argument(
        '--quick', action='store_true', help='decode the last frame only')
    parser.add_argument(
        '--out', type=Path, help='write bad files here: path, tab, why')
    parser.add_argument(
        '--good', type=Path, help='write a list without the bad files here')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    with one_line_errors():
        rows = read_video_list(
            args.ann_file, delimiter=args.delimiter,
            multi_class=args.multi_class, num_classes=args.num_classes)
        require_video_backend(default_video_backend())
    names = {os.path.join(args.root, name): name for name, _ in rows}
    bar = ProgressBar(len(names), file=sys.stderr)
    bad = dict(check_files(list(names), args.workers, args.timeout,
                           not args.quick, bar.update))
    echo(file=sys.stderr)
    for path, fault in sorted(bad.items()):
        echo(f'{path}\t{fault}')
    echo(f'{len(bad)} of {len(names)} videos are bad')
    if args.out:
        args.out.write_text(''.join(
            f'{path}\t{fault}\n' for path, fault in sorted(bad.items())))
    if args.good:
        args.good.write_text(''.join(
            args.delimiter.join(
                [name, *map(str, label if args.multi_class else [label])])
            + '\n' for name, label in rows
            if os.path.join(args.root, name) not in bad))
    raise SystemExit(bool(bad))
