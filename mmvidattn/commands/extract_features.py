# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Extract feature streams from videos with any network."""
import argparse
import copy
import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.registry import init_default_scope

from ..apis import load_config
from ..apis.runner import one_line_errors, program_name
from ..corpus.folder import open_folder
from ..corpus.job import Job
from ..corpus.manifest import Item, open_manifest, plan_videos
from ..corpus.progress import Meter
from ..corpus.run import exit_with_faults, run_corpus
from ..corpus.shards import values_of
from ..live.feature_extractor import FeatureExtractor
from ..live.named_networks import is_network
from ..live.recognizer_features import CLASSIFIER
from ..live.video_features import VideoFeatures
from ..utils.files import map_numbers, replacing
from ..utils.hub import SCHEME
from ..utils.interrupts import one_line_stop
from ..utils.printable import echo
from ..utils.remote_files import local_file
from ..utils.worker_pool import WorkerPool, start_method_for


class Extractor(VideoFeatures):
    """Extractor of the features of each step of a video.

    Args:
        options: Options of the command line.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        options = dict(options)
        threads = options.pop('threads')
        torch.set_num_threads(threads)
        cv2.setNumThreads(threads)
        torch.manual_seed(0)
        steps = dict(rate=options.pop('rate'),
                     every=options.pop('every', None),
                     batch_size=options.pop('batch_size'))
        super().__init__(FeatureExtractor(**options), **steps)


_extractor: Extractor | None = None
# Options that do not change the features.
IRRELEVANT = 'batch_size', 'device', 'threads'
# Columns of the catalog, and of parts with features.
COLUMNS = dict(shape='list<int64>', file='string')
VALUES = dict(shape='list<int64>', values='list<float>')


def start_worker(options: dict[str, Any]) -> None:
    """Build the extractor of a process, unless it was forked."""
    global _extractor
    if _extractor is None or _extractor.options != options:
        _extractor = Extractor(options)


def make_extract(options: dict[str, Any], out: Path, store: str
                 ) -> Callable[[Item], dict[str, Any]]:
    """Return :func:`extract` for a worker process."""
    start_worker(options)
    return partial(extract, out=out, store=store)


def extract(item: Item, out: Path, store: str) -> dict[str, Any]:
    """Extract the features of a video, and write them to ``<name>.npy``.

    An existing file is kept.

    Args:
        item: The video.
        out: Folder to write to.
        store: 'npy', or 'parquet' to return the features instead.

    Returns:
        Results with the columns ``COLUMNS`` or ``VALUES``.
    """
    if store == 'parquet':
        with local_file(item.source) as video:
            return values_of(_extractor(video))
    path = out / f'{item.name}.npy'
    if path.is_file():
        return dict(shape=[*map_numbers(path).shape], file=path.name)
    with local_file(item.source) as video:
        rows = _extractor(video)
    # Another program may write the same file.
    with replacing(path, to_disk=False, shared=True) as part, \
            part.open('wb') as file:
        np.save(file, rows)
    return dict(shape=[*rows.shape], file=path.name)


def extract_all(items: list[Item], out: Path, options: dict[str, Any],
                processes: int) -> dict[str, str]:
    """Extract the features of all videos; return the errors by video."""
    failed = {}
    with Meter('Extracting', len(items)) as meter, WorkerPool(
            partial(make_extract, options, out, 'npy'), processes,
            start_method=start_method_for(
                options['device'], options['threads'])) as pool:
        for done in pool.run(items):
            meter.show()
            if done is not None:
                meter.add(done.item.source, done.fault)
                if done.fault:
                    failed[done.item.source] = done.fault
        meter.show()
    return failed


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that determine the features."""
    kept = {key: value for key, value in options.items()
            if key not in IRRELEVANT}
    # For recognizers, do not add these keys, which earlier versions lack.
    if not is_network(options['config']):
        kept['layer'] = options['layer'] or CLASSIFIER
        kept['config'] = hashlib.sha256(
            str(load_config(options['config'],
                            options['cfg_options']).to_dict()).encode()
        ).hexdigest()
    return kept


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        options = copy.deepcopy(vars(args))
        for name in ('videos', 'out', 'processes', 'engine', 'lease', 'shard',
                     'shard_size', 'store'):
            del options[name]
        if args.engine is None:
            videos = plan_videos(args.videos)
        if args.checkpoint is None and not args.config.startswith(SCHEME):
            echo(f'{program_name()}: warning: without --checkpoint the '
                 'weights are random', file=sys.stderr)
        # Build the network here first, to report errors once.
        init_default_scope('mmaction')
        start_worker(options)
        echo(f'{_extractor.recognizer.width} features per step')
        # For .npy files, do not add the key, which earlier versions lack.
        stored = {} if args.store == 'npy' else dict(store=args.store)
        open_folder(args.out, 'features.json',
                    {**settings_of(options), **stored}, 'extract-features')
        if args.engine is not None:
            manifest = open_manifest(args.out, args.videos, args.shard_size)
            method = start_method_for(args.device, args.threads)
            job = Job('Extracting',
                      partial(make_extract, options, args.out, args.store),
                      COLUMNS if args.store == 'npy' else VALUES,
                      args.processes, args.device, dict(start_method=method))
            exit_with_faults(run_corpus(args.out, manifest, job, args.engine,
                                        args.shard, args.lease))
            return

    def exists(item: Item) -> bool:
        return (args.out / f'{item.name}.npy').is_file()

    left = [item for item in map(Item, videos, videos.values())
            if not exists(item)]
    with one_line_stop(lambda: (
            f' after {sum(map(exists, left))} of {len(left)} videos; the same '
            'command continues')):
        failed = extract_all(left, args.out, options, args.processes)
    echo(f'{args.out}: {len(left) - len(failed)} videos written, '
         f'{len(videos) - len(left)} existed already, {len(failed)} failed')
    if failed:
        raise SystemExit(f'{program_name()}: error: '
                         + '; '.join(f'{v}: {e}' for v, e in failed.items()))
