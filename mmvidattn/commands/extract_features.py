# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Extract feature streams from videos with any network."""
import argparse
import copy
import hashlib
import json
import multiprocessing
import signal
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.registry import init_default_scope
from rich.console import Console
from rich.progress import Progress

from ..apis import load_config
from ..apis.runner import one_line_errors, program_name
from ..apis.video_clips import find_videos
from ..live.feature_extractor import FeatureExtractor
from ..live.named_networks import is_network
from ..live.recognizer_features import CLASSIFIER
from ..live.video_features import VideoFeatures
from ..utils.files import replacing
from ..utils.hub import SCHEME
from ..utils.interrupts import one_line_stop
from ..utils.printable import brief, echo, printable


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


def start_worker(options: dict[str, Any]) -> None:
    """Build the extractor of a worker process, unless it was forked."""
    global _extractor
    # The main process ends its workers on Ctrl-C.
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _extractor is None or _extractor.options != options:
        _extractor = Extractor(options)


def extract(video: Path, out: Path) -> tuple[int, int]:
    """Write the features of a video, and return their shape."""
    rows = _extractor(video)
    with replacing(out, to_disk=False) as part, part.open('wb') as file:
        np.save(file, rows)
    return rows.shape


def extract_all(jobs: dict[Path, Path], options: dict[str, Any],
                processes: int) -> dict[Path, str]:
    """Extract the features of all videos; return the errors by video.

    If a worker process dies, each unfinished video is retried in a new
    process.
    """
    # CUDA and OpenMP threads do not survive a fork.
    forks = (options['device'] == 'cpu' and options['threads'] == 1 and
             'fork' in multiprocessing.get_all_start_methods())
    context = multiprocessing.get_context('fork' if forks else 'spawn')
    failed, left = {}, dict(jobs)

    def attempt(videos, processes):
        with ProcessPoolExecutor(
                processes, context, start_worker, (options, )) as pool:
            waiting = {
                pool.submit(extract, video, jobs[video]): video
                for video in videos
            }
            try:
                for future in as_completed(waiting):
                    finish(waiting[future], future)
            except KeyboardInterrupt:
                # Otherwise, the pool would extract all remaining videos first.
                pool.shutdown(wait=False, cancel_futures=True)
                for child in multiprocessing.active_children():
                    child.terminate()
                raise

    def finish(video, future):
        try:
            future.result()
        except BrokenProcessPool:
            return
        except Exception as error:
            failed[video] = brief(error)
            report(video)
        del left[video]
        bar.update(task, advance=1)

    def report(video):
        bar.console.print(printable(f'{video}: {failed[video]}'),
                          markup=False, highlight=False)

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task('Extracting', total=len(jobs))
        attempt(list(left), processes)
        for video in list(left):
            attempt([video], 1)
            if video in left:
                failed[video] = 'the process died while reading this video'
                report(video)
                bar.update(task, advance=1)
    return failed


def plan_features(inputs: list[Path], out: Path) -> dict[Path, Path]:
    """Return the file of features for each video."""
    for path in inputs:
        if not path.exists():
            raise ValueError(f'{path} does not exist')
    # Subfolders become a part of the file name.
    videos = {
        video: out / ('_'.join(video.relative_to(
            path if path.is_dir() else path.parent).with_suffix(
                '').parts) + '.npy')
        for path in inputs
        for video in (find_videos(path) if path.is_dir() else [path])
    }
    clashes = [o for o, count in Counter(videos.values()).items() if count > 1]
    if clashes:
        first = min(clashes)
        same = [str(v) for v, o in videos.items() if o == first]
        raise ValueError(f'{" and ".join(same)} would both be written to '
                         f'{first}')
    return videos


def open_folder(out: Path, options: dict[str, Any]) -> None:
    """Create the folder, or check that its features have these options."""
    file = out / 'features.json'
    kept = {
        key: value for key, value in options.items()
        if key not in ('device', 'threads', 'batch_size')
    }
    # For recognizers, do not add these keys, which earlier versions lack.
    if not is_network(options['config']):
        kept['layer'] = options['layer'] or CLASSIFIER
        kept['config'] = hashlib.sha256(
            str(load_config(options['config'],
                            options['cfg_options']).to_dict()).encode()
        ).hexdigest()
    if file.is_file():
        settings = json.loads(file.read_text())
        differing = [
            f'{key} was {settings.get(key)} and now is {kept.get(key)}'
            for key in sorted({*settings, *kept})
            if settings.get(key) != kept.get(key)
        ]
        if differing:
            raise ValueError(f'the features in {out} have different options: '
                             + '; '.join(differing)
                             + '. Repeat the old options, or choose another '
                             'folder')
    elif out.exists() and any(out.iterdir()):
        raise ValueError(f'{out} is not empty and was not written by '
                         'extract-features: choose a new folder')
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=2) + '\n')


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        options = copy.deepcopy(vars(args))
        for name in 'videos', 'out', 'processes':
            del options[name]
        jobs = plan_features(args.videos, args.out)
        if args.checkpoint is None and not args.config.startswith(SCHEME):
            echo(f'{program_name()}: warning: without --checkpoint the '
                 'weights are random', file=sys.stderr)
        # Build the network here first, to report errors once.
        init_default_scope('mmaction')
        start_worker(options)
        echo(f'{_extractor.recognizer.width} features per step')
        open_folder(args.out, options)
    left = {v: o for v, o in jobs.items() if not o.is_file()}
    with one_line_stop(lambda: (
            f' after {sum(out.is_file() for out in left.values())} of '
            f'{len(left)} videos; the same command continues')):
        failed = extract_all(left, options, args.processes)
    echo(f'{args.out}: {len(left) - len(failed)} videos written, '
         f'{len(jobs) - len(left)} existed already, {len(failed)} failed')
    if failed:
        raise SystemExit(f'{program_name()}: error: '
                         + '; '.join(f'{v}: {e}' for v, e in failed.items()))
