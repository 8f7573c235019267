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
from collections.abc import Sequence
from pathlib import Path


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
    from ..commands import feature_cache
    feature_cache.run(args)
