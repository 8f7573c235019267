# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""List and clear the cached features of frozen networks.

    mmvidattn feature-cache work_dirs/features
    mmvidattn feature-cache work_dirs/features --clear-unused 30

FOLDER is ``cache_dir`` of FeatureCacheHook, or ``features`` in the work
directory of ``mmvidattn finetune --cache-features``. It has a folder for each
pipeline and frozen network, described by ``settings.json``. When the pipeline
or the network changes, the old folder becomes unused.
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
                        help='folder of all cached features')
    parser.add_argument(
        '--clear-unused', type=float, metavar='DAYS',
        help='delete folders that no run has opened for DAYS days; 0 deletes '
        'all')
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
        for folder in found:
            settings = folder['settings']
            backbone = settings.get('backbone') or {}
            delete = days is not None and folder['unused_days'] >= days
            echo(f'{"deleted " if delete else ""}{folder["path"]}: '
                 f'{folder["files"]} clips, {megabytes(folder["size"])}, used '
                 f'{folder["unused_days"]:.1f} days ago; '
                 f'{settings.get("freeze")} of {backbone.get("type")}, '
                 f'weights {str(settings.get("weights"))[:8]}')
            kept += not delete
            if delete:
                shutil.rmtree(folder['path'])
        if not kept:
            shutil.rmtree(args.folder / VIDEOS, ignore_errors=True)
