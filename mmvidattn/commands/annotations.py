# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert and check annotations of long videos, and count their classes."""
import argparse

from ..apis.runner import one_line_errors
from ..datasets.annotations.formats import (
    FORMATS,
    read_annotations,
    summarize,
    write_annotations,
)
from ..utils.printable import echo


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        if args.out is not None and args.out.resolve() == \
                args.source.resolve():
            raise ValueError(f'OUT must differ from IN, got {args.out}')
        found = read_annotations(args.source, args.source_format,
                                 videos=args.videos, fps=args.fps,
                                 columns=args.columns)
        echo(f'{FORMATS[found.format].title}:', *summarize(found), sep='\n')
        for remark in found.remarks:
            echo(f'note: {remark}')
        if args.out is not None:
            for loss in write_annotations(
                    found.segments, args.out, args.to, videos=found.videos,
                    fps=args.fps, url=args.url):
                echo(f'note: {loss}')
            echo(f'written: {args.out}')
    for problem in found.problems:
        echo(f'problem: {problem}')
    raise SystemExit(bool(found.problems))
