# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check all videos of a list, and report unreadable ones."""
import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mmengine.utils import ProgressBar

from ..apis.runner import one_line_errors
from ..corpus.folder import open_folder
from ..corpus.job import Job
from ..corpus.manifest import Item, open_manifest
from ..corpus.run import exit_with_faults, run_corpus
from ..datasets.annotations.custom.video_list import read_video_list
from ..datasets.broken_files.check import check_file, check_files
from ..utils.printable import echo
from ..utils.video_readers import (
    default_video_backend,
    require_video_backend,
)


def make_check(every_frame: bool) -> Callable[[Item], dict[str, Any]]:
    """Return the function of an item, which raises the fault of its video."""

    def check(item: Item) -> dict[str, Any]:
        check_file(item.source, every_frame)
        return {}

    return check


def check_corpus(args: argparse.Namespace, names: Mapping[str, str]
                 ) -> dict[str, str] | None:
    """Check the videos in shards.

    Args:
        args: Options of the command.
        names: Names of the videos, by their paths.

    Returns:
        Faults by path, or None if shards of other programs are left.
    """
    with one_line_errors():
        open_folder(args.out, 'checks.json', dict(
            root=os.path.abspath(args.root), timeout=args.timeout,
            quick=args.quick, backend=default_video_backend()), 'check-videos')

        def plan(_: Sequence[str]) -> dict[str, str]:
            return {os.path.abspath(path): name
                    for path, name in names.items()}

        manifest = open_manifest(args.out, [args.ann_file], args.shard_size,
                                 plan)
    job = Job('Checking', partial(make_check, not args.quick), {},
              args.workers, pool=dict(timeout=args.timeout, silent=True))
    return run_corpus(args.out, manifest, job, args.engine, args.shard,
                      args.lease)


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        rows = read_video_list(
            args.ann_file, delimiter=args.delimiter,
            multi_class=args.multi_class, num_classes=args.num_classes)
        require_video_backend(default_video_backend())
    names = {os.path.join(args.root, name): name for name, _ in rows}
    if args.engine is not None:
        bad = check_corpus(args, names)
        if bad is None:
            return
        bad = {path: bad[os.path.abspath(path)] for path in names
               if os.path.abspath(path) in bad}
    else:
        bar = ProgressBar(len(names), file=sys.stderr)
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
    if args.engine is not None:
        exit_with_faults(bad)
    raise SystemExit(bool(bad))
