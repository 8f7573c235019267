# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Turn videos into feature streams with any network.

    mmvidattn extract-features VIDEOS data/mine/rgb CONFIG \\
        --checkpoint CHECKPOINT --rate 4

CONFIG is a recognizer of mmaction2, or `timm://NAME`,
`hf://OWNER/MODEL@REVISION` or `MODULE:CALLABLE`. Writes `<video>.npy`
`(steps, width)` for each video: a row for each 1 / rate seconds, of what the
recognizer's classifier reads, or the network gives. A row is of nothing later
than its step. A second run goes on where the first one stopped.
"""
import argparse
import copy
import hashlib
import json
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.config import DictAction
from mmengine.registry import init_default_scope
from rich.console import Console
from rich.progress import Progress

from ..apis import load_config
from ..apis.runner import one_line_errors, program_name
from ..apis.video_clips import find_videos
from ..live.feature_extractor import FeatureExtractor
from ..live.named_networks import is_network
from ..live.optical_flow import FLOWS
from ..live.recognizer_features import CLASSIFIER
from ..live.steps import num_steps
from ..utils.files import replacing
from ..utils.frame_times import ConstantRate
from ..utils.hub import SCHEME
from ..utils.printable import brief, echo, printable
from ..utils.video_readers import open_video
from ._shared import add_cfg_options, add_device, at_least, parser_of, positive


class Extractor:
    """A network, and its features of each step of a video.

    Args:
        options: The options of the command line.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        options = dict(options)
        threads = options.pop('threads')
        torch.set_num_threads(threads)
        cv2.setNumThreads(threads)
        torch.manual_seed(0)
        self.rate = options.pop('rate')
        self.every = options.pop('every', None)
        self.batch_size = options.pop('batch_size')
        self.recognizer = FeatureExtractor(**options)

    def __call__(self, video: Path) -> np.ndarray:
        """The features of a video, ``(steps, width)`` float32.

        Raises:
            ValueError: If the video has no whole step, or its features have
                nan or infinity.
        """
        reader = ConstantRate(open_video(video))
        fps = reader.fps
        rate = self.rate_of(fps)
        steps = num_steps(len(reader), fps, rate)
        if not steps:
            raise ValueError(
                f'{len(reader)} frames at {fps:g} a second are less than one '
                f'step of 1/{rate:g} s')
        rows, batch = [], []
        for step in range(steps):
            batch.append(self.clip(reader, step, fps))
            if len(batch) == self.batch_size or step == steps - 1:
                rows.append(self.recognizer.features(batch).cpu().numpy())
                batch = []
        rows = np.concatenate(rows)
        if not np.isfinite(rows).all():
            raise ValueError('the features have nan or infinity')
        return rows

    def rate_of(self, fps: float) -> float:
        """Steps a second of a video with so many frames a second."""
        if self.every is None:
            return self.rate
        return (self.recognizer.sample_fps or fps) / self.every

    def clip(self, reader: ConstantRate, step: int,
             fps: float) -> Sequence[np.ndarray]:
        """The clip of a step."""
        indices = self.recognizer.frame_indices(step, fps, self.rate_of(fps))
        images = reader.get_batch(indices.clip(max=len(reader) - 1))
        return self.recognizer.clip(list(images))


_extractor: Extractor | None = None


def start_worker(options: dict[str, Any]) -> None:
    """Build the network of a process, unless it was forked with one."""
    global _extractor
    if _extractor is None or _extractor.options != options:
        _extractor = Extractor(options)


def extract(video: Path, out: Path) -> tuple[int, int]:
    """Write the features of a video; returns their shape."""
    rows = _extractor(video)
    with replacing(out, to_disk=False) as part, part.open('wb') as file:
        np.save(file, rows)
    return rows.shape


def extract_all(jobs: dict[Path, Path], options: dict[str, Any],
                processes: int) -> dict[Path, str]:
    """Extract the features of all videos; returns what is wrong with some.

    A process that dies takes with it what the others are at; these videos
    are tried again, each in a process of its own.
    """
    # Neither CUDA nor threads of OpenMP survive a fork.
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
            for future in as_completed(waiting):
                video = waiting[future]
                try:
                    future.result()
                except BrokenProcessPool:
                    continue
                except Exception as error:
                    failed[video] = brief(error)
                    say(video)
                del left[video]
                bar.update(task, advance=1)

    def say(video):
        bar.console.print(printable(f'{video}: {failed[video]}'),
                          markup=False, highlight=False)

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task('Extracting', total=len(jobs))
        attempt(list(left), processes)
        for video in list(left):
            attempt([video], 1)
            if video in left:
                failed[video] = 'the process died while it read this video'
                say(video)
                bar.update(task, advance=1)
    return failed


def plan_features(inputs: list[Path], out: Path) -> dict[Path, Path]:
    """The videos, and the file of features of each."""
    for path in inputs:
        if not path.exists():
            raise ValueError(f'there is no {path}')
    # Folders become part of the name.
    videos = {
        video: out / ('_'.join(video.relative_to(
            path if path.is_dir() else path.parent).with_suffix(
                '').parts) + '.npy')
        for path in inputs
        for video in (find_videos(path) if path.is_dir() else [path])
    }
    twice = {o for o in videos.values() if [*videos.values()].count(o) > 1}
    if twice:
        same = [str(v) for v, o in videos.items() if o == min(twice)]
        raise ValueError(f'{" and ".join(same)} would both be {min(twice)}')
    return videos


def open_folder(out: Path, options: dict[str, Any]) -> None:
    """Make the folder, or check that it has features of these options."""
    file = out / 'features.json'
    kept = {
        key: value for key, value in options.items()
        if key not in ('device', 'threads', 'batch_size')
    }
    # None is what folders of earlier versions have.
    if not is_network(options['config']):
        kept['layer'] = options['layer'] or CLASSIFIER
        kept['config'] = hashlib.sha256(
            str(load_config(options['config'],
                            options['cfg_options']).to_dict()).encode()
        ).hexdigest()
    if file.is_file():
        found = json.loads(file.read_text())
        differing = [
            f'{key} was {found.get(key)}, and now is {kept.get(key)}'
            for key in sorted({*found, *kept})
            if found.get(key) != kept.get(key)
        ]
        if differing:
            raise ValueError(f'{out} has features of other options: '
                             + '; '.join(differing)
                             + '. Repeat the options, or choose another '
                             'folder')
    elif out.exists() and any(out.iterdir()):
        raise ValueError(f'{out} is not empty and has no features of this '
                         'program; choose a folder that does not exist')
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=2) + '\n')


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('videos', nargs='+', type=Path, metavar='VIDEO',
                        help='video file, or a folder of them')
    parser.add_argument('out', type=Path, help='folder to write to')
    parser.add_argument('config', help='recognizer: config file, or its name; '
                        'or timm://NAME, hf://OWNER/MODEL@REVISION or '
                        'MODULE:CALLABLE')
    parser.add_argument('--checkpoint',
                        help='its weights (default: random ones, to try; '
                        'those of hf://). With timm:// also "pretrained", '
                        "which downloads timm's")
    steps = parser.add_mutually_exclusive_group()
    steps.add_argument('--rate', type=positive, default=4.,
                       help='steps a second (default: 4)')
    steps.add_argument('--every', type=at_least(1), metavar='N',
                       help='a step every N frames, instead of --rate')
    parser.add_argument('--sample-fps', type=positive, metavar='FPS',
                        help='take frames as if videos had so many a second '
                        '(default: their own)')
    parser.add_argument('--input', nargs='+', action=DictAction,
                        metavar='KEY=VALUE', help='what a network that is no '
                        'recognizer takes: takes=frames or clips, mean, std, '
                        'value_range=1 or 255, resize, crop, interpolation, '
                        'color=RGB or BGR (default: what timm or the Hub '
                        'says)')
    parser.add_argument('--flow', choices=FLOWS,
                        help='read optical flow, estimated so, instead of '
                        'frames; for recognizers of flow')
    parser.add_argument('--flow-side', type=at_least(1), default=180,
                        help='short side of the frames that flow is computed '
                        'of (default: 180)')
    parser.add_argument('--bound', type=positive, default=20.,
                        help='pixels of flow that become 0 or 255 (default: '
                        '20)')
    parser.add_argument('--clip-len', type=at_least(1),
                        help="frames, or flow fields, of a step (default: "
                        "the config's)")
    parser.add_argument('--frame-interval', type=at_least(1), default=1,
                        help='from one of these frames to the next (default: '
                        '1)')
    parser.add_argument('--layer',
                        help='the layer whose input is the features (default: '
                        f"a recognizer's {CLASSIFIER}, another network's "
                        'output)')
    parser.add_argument('--processes', type=at_least(1), default=1)
    parser.add_argument('--threads', type=at_least(1), default=1,
                        help='of each process (default: 1)')
    parser.add_argument('--batch-size', type=at_least(1), default=16,
                        help='steps at a time (default: 16)')
    add_device(parser)
    add_cfg_options(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    with one_line_errors():
        options = copy.deepcopy(vars(args))
        for name in 'videos', 'out', 'processes':
            del options[name]
        jobs = plan_features(args.videos, args.out)
        if args.checkpoint is None and not args.config.startswith(SCHEME):
            echo(f'{program_name()}: warning: without --checkpoint the '
                 'weights are random', file=sys.stderr)
        # What is wrong with network or options shows here, once.
        init_default_scope('mmaction')
        start_worker(options)
        echo(f'{_extractor.recognizer.width} features a step')
        open_folder(args.out, options)
    left = {v: o for v, o in jobs.items() if not o.is_file()}
    failed = extract_all(left, options, args.processes)
    echo(f'{args.out}: {len(left) - len(failed)} videos written, '
         f'{len(jobs) - len(left)} were there already, {len(failed)} failed')
    if failed:
        raise SystemExit(f'{program_name()}: error: '
                         + '; '.join(f'{v}: {e}' for v, e in failed.items()))
