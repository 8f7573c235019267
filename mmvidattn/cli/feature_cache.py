# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""List and clear the cached features of frozen networks.

    mmvidattn feature-cache work_dirs/features
    mmvidattn feature-cache work_dirs/features --clear-unused 30

FOLDER is ``cache_dir`` of FeatureCacheHook, or ``features`` in the work
directory of ``mmvidattn finetune --cache-features``. It has a folder for each
pipeline and each frozen network, which nothing opens any more when one of them
has changed: ``settings.json`` in it says what it is of.
"""
import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..apis.runner import one_line_errors
from ..utils.feature_cache import VIDEOS, describe_folders, megabytes
from ..utils.printable import echo


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=Path, metavar='FOLDER',
                        help='of all cached features')
    parser.add_argument(
        '--clear-unused', type=float, metavar='DAYS',
        help='delete what no run has opened for so many days; 0 deletes all')
    args = parser.parse_args(argv)
    if args.clear_unused is not None and not args.clear_unused >= 0:
        parser.error('--clear-unused must be at least 0, got '
                     f'{args.clear_unused}')
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    with one_line_errors():
        found = describe_folders(args.folder)
        if not found:
            raise ValueError(f'no cached features in {args.folder}')
        days = args.clear_unused
        kept = 0
        for one in found:
            settings = one['settings']
            backbone = settings.get('backbone') or {}
            goes = days is not None and one['unused_days'] >= days
            echo(f'{"deleted " if goes else ""}{one["path"]}: '
                 f'{one["files"]} clips, {megabytes(one["size"])}, used '
                 f'{one["unused_days"]:.1f} days ago; '
                 f'{settings.get("freeze")} of {backbone.get("type")}, '
                 f'weights {str(settings.get("weights"))[:8]}')
            kept += not goes
            if goes:
                shutil.rmtree(one['path'])
        if not kept:
            shutil.rmtree(args.folder / VIDEOS, ignore_errors=True)
