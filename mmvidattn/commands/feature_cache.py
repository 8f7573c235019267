# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""List and clear the cached features of frozen networks."""
import argparse
import shutil

from ..apis.runner import one_line_errors
from ..utils.feature_cache import VIDEOS, describe_folders, megabytes
from ..utils.printable import echo


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        caches = describe_folders(args.folder)
        if not caches:
            raise ValueError(f'no cached features in {args.folder}')
        days = args.clear_unused
        kept = 0
        for folder in caches:
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
