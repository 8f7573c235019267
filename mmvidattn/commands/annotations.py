# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert and check annotations of long videos, and count their classes.

    mmvidattn annotations export.json --videos FOLDER
    mmvidattn annotations export.json mine.csv --videos FOLDER
    mmvidattn annotations mine.csv tasks.json --to label-studio --fps 25

    mmvidattn annotations events.tsv mine.csv --columns video='Media file' \\
        start='Start (s)' end='Stop (s)' label=Behavior

The formats are csv, activitynet, label-studio and elan; --columns reads other
tables. See docs/annotations.md. With --videos, lengths are compared with the
videos. The exit status is 1 if a video is missing or does not fit.
"""
import argparse
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import echo
from ._options import add_reading


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('source', type=Path, metavar='IN',
        help='file of annotations, or a folder of files of one format')
    add('out', type=Path, nargs='?', metavar='OUT', help='file to write; a '
        'folder for several videos in elan, which has a file for each video '
        '(default: only check and count)')
    add('--from', dest='source_format', metavar='FORMAT',
        help='format of IN (default: recognized by its content)')
    add_reading(parser)
    add('--to', metavar='FORMAT',
        help='format of OUT (default: by its suffix: .csv, .eaf for elan)')
    add('--videos', type=Path, metavar='FOLDER',
        help='folder of the videos; OUT has their paths in this folder')
    add('--url', help='start of the addresses of videos in Label Studio '
        '(default: /data/local-files/?d=)')


def run(args: argparse.Namespace) -> None:
    from ..datasets.annotations import formats

    with one_line_errors():
        if args.out is None and (args.to or args.url):
            raise ValueError('--to and --url need OUT')
        if args.out is not None and args.out.resolve() == \
                args.source.resolve():
            raise ValueError(f'OUT must differ from IN, got {args.out}')
        found = formats.read_annotations(
            args.source, args.source_format, videos=args.videos, fps=args.fps,
            columns=args.columns, tiers=args.tiers)
        # Write before the reader of the output may close it, as head does.
        losses = [] if args.out is None else [*formats.write_annotations(
            found.segments, args.out, args.to, videos=found.videos,
            fps=args.fps, url=args.url)]
        echo(f'{formats.FORMATS[found.format].title}:',
             *formats.summarize(found), sep='\n')
        for remark in found.remarks:
            echo(f'note: {remark}')
        for loss in losses:
            echo(f'note: {loss}')
        if args.out is not None:
            echo(f'written: {args.out}')
    for problem in found.problems:
        echo(f'problem: {problem}')
    raise SystemExit(bool(found.problems))
