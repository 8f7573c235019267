# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check all videos of a list, and report unreadable ones."""
import argparse
import os
import sys

from mmengine.utils import ProgressBar

from ..apis.runner import one_line_errors
from ..datasets.annotations.custom.video_list import read_video_list
from ..datasets.check_files import check_files
from ..utils.printable import echo


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        rows = read_video_list(
            args.ann_file, delimiter=args.delimiter,
            multi_class=args.multi_class, num_classes=args.num_classes)
    names = {os.path.join(args.root, name): name for name, _ in rows}
    bar = ProgressBar(len(names), file=sys.stderr)
    with one_line_errors():
        bad = dict(check_files(list(names), args.workers, args.timeout,
                               not args.quick, bar.update))
    echo(file=sys.stderr)
    for path, fault in sorted(bad.items()):
        echo(f'{path}\t{fault}')
    echo(f'{len(bad)} of {len(names)} videos are unreadable')
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
