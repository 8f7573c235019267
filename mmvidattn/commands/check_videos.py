# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check all videos of a list, and report unreadable ones.

    mmvidattn check-videos data/ssv2/train.txt --root data/ssv2

Decodes all frames of each video in worker processes, so that a file that
crashes or blocks a decoder does not stop the check. The exit status is 1 if
any file is unreadable.
"""
import argparse
import os
import sys
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import echo
from ._options import at_least, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('ann_file', help='list of videos and labels')
    add('--root', default='', help="folder that the list's paths are relative "
        'to (default: the current folder)')
    add('--delimiter', default=' ',
        help='delimiter of the list (default: a blank)')
    add('--multi-class', action='store_true',
        help='videos may have several labels')
    add('--num-classes', type=int, help='number of classes, to check labels')
    add('--workers', type=at_least(1), default=os.cpu_count(),
        help='number of processes (default: one per processor)')
    add('--timeout', type=positive, default=60,
        help='maximum number of seconds for a video (default: 60)')
    add('--quick', action='store_true',
        help='only decode the last frame of each video')
    add('--out', type=Path, metavar='FILE',
        help='write unreadable files and reasons to FILE, separated by tabs')
    add('--good', type=Path, metavar='FILE',
        help='write the list without unreadable files to FILE')


def run(args: argparse.Namespace) -> None:
    from mmengine.utils import ProgressBar

    from ..datasets.annotations.video_list import read_video_list
    from ..datasets.check_files import check_files

    with one_line_errors():
        rows = read_video_list(
            args.ann_file, delimiter=args.delimiter,
            multi_class=args.multi_class, num_classes=args.num_classes)
        names = {os.path.join(args.root, name): name for name, _ in rows}
        bar = ProgressBar(len(names), file=sys.stderr)
        bad = dict(sorted(check_files(list(names), args.workers, args.timeout,
                                      not args.quick, bar.update)))
    echo(file=sys.stderr)
    # Before the output, whose reader may be `head`.
    lines = [f'{path}\t{fault}\n' for path, fault in bad.items()]
    if args.out:
        args.out.write_text(''.join(lines))
    if args.good:
        args.good.write_text(''.join(
            args.delimiter.join(
                [name, *map(str, label if args.multi_class else [label])])
            + '\n' for name, label in rows
            if os.path.join(args.root, name) not in bad))
    echo(*lines, sep='', end='')
    hint = (f': paths of the list are relative to --root, now {args.root!r}'
            if len(bad) == len(names) else '')
    echo(f'{len(bad)} of {len(names)} videos are unreadable{hint}')
    raise SystemExit(bool(bad))
