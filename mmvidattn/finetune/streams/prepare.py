# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Choose the kind of model, write its data, and write the config."""
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from rich.console import Console
from rich.progress import Progress

from ...apis.models import DEFAULT, find_default, load_config
from ...datasets.annotations.custom.labeled_videos import count
from ...datasets.prepare.feature_targets import mark, named_targets, npy_bytes
from ...live.features import FeatureExtractor, VideoFeatures
from ...utils.files import write_atomically
from ...utils.frame_times import ConstantRate
from ...utils.hub import SCHEME
from ...utils.printable import echo
from ...utils.video_reader import open_video
from ..config import format_config
from ..options import FineTuneOptions
from ..training import SHARE, fit_epochs, no_prints
from .config import (
    CLIP_FRAMES,
    FEATURE_RATE,
    MAX_ROWS,
    build_config,
    checkpoint_of,
)
from .plan import StreamPlan, make_stream_plan

# Sides of the images that a network of pixels may read, the best first.
SIDES = 64, 32
# A network that reads pixels is only chosen if there is time for so many
# updates: with fewer, it learns little.
MIN_UPDATES = 300
# Largest share of the time for the extraction of features.
EXTRACTION = 0.5
# Steps of the measured batches of features.
BATCH, BATCHES = 8, 3


class Speed(NamedTuple):
    """Measured training speed of a network of pixels.

    Attributes:
        side: Side of the images.
        epochs: Number of epochs that fit.
        seconds: Seconds of an epoch.
    """
    side: int
    epochs: int
    seconds: float


class Choice(NamedTuple):
    """Chosen kind of model.

    Attributes:
        kind: ``'pixels'`` or ``'features'``.
        reason: Reason in one line.
        speed: Speed of the network of pixels; None for features.
    """
    kind: str
    reason: str
    speed: Speed | None = None


def choose(plan: StreamPlan, minutes: float, kind: str,
           time_pixels: Callable[[int], Speed],
           time_features: Callable[[], float],
           sides: Sequence[int] = SIDES) -> Choice:
    """Choose a network that reads pixels, or features of a frozen network.

    A network of pixels is chosen if the time allows enough updates of it, with
    images as large as the time allows.

    Args:
        plan: Videos of the run.
        minutes: Time for training, validation and test.
        kind: ``'pixels'`` or ``'features'`` to choose it in any case, or
            ``'auto'``.
        time_pixels: Function that measures training on images of a side.
        time_features: Function that returns the seconds for extracting the
            features of all videos.
        sides: Sides of images to try, the best first.
    """
    if kind == 'features':
        return Choice(kind, '--model says so')
    for side in sides:
        speed = time_pixels(side)
        updates = count_updates(plan, speed, minutes)
        fits = (f'{updates} updates of a network of pixels ({side} x {side}) '
                f'fit into {minutes:g} minutes')
        if updates >= MIN_UPDATES:
            return Choice('pixels', f'{fits}, and {MIN_UPDATES} are enough',
                          speed)
    text = f'only {fits}, of {MIN_UPDATES} that are enough'
    pixels = minutes * MIN_UPDATES / max(1, updates)
    if kind == 'pixels':
        return Choice(kind, f'{text}: use --minutes {math.ceil(pixels)}',
                      speed)
    features = time_features() / 60
    text += f'; features of a frozen network take {features:.1f} minutes'
    if features <= EXTRACTION * minutes:
        return Choice('features', text)
    # Neither fits: choose the one that needs less time.
    features /= EXTRACTION
    text += (f'; both are too slow: use --minutes '
             f'{math.ceil(min(pixels, features))}')
    return (Choice('pixels', text, speed) if pixels <= features else
            Choice('features', text))


def count_updates(plan: StreamPlan, speed: Speed, minutes: float) -> int:
    """Return the number of updates that fit, also if no epoch fits."""
    rows = min(MAX_ROWS, len(plan.splits['train']))
    steps = max(1., plan.frames / CLIP_FRAMES / rows)
    return math.floor(
        steps * SHARE * 60 * minutes / max(speed.seconds, 1e-3))


def time_features(plan: StreamPlan, extractor: FeatureExtractor) -> float:
    """Return the seconds for extracting the features of all videos."""
    path = Path(plan.root, plan.splits['train'][0])
    extract = VideoFeatures(extractor, FEATURE_RATE, batch_size=BATCH)
    reader = ConstantRate(open_video(path))
    seconds = math.inf
    for batch in range(BATCHES):
        start = time.monotonic()
        extractor.features([
            extract.clip(reader, step, reader.fps)
            for step in range(batch * BATCH, (batch + 1) * BATCH)])
        seconds = min(seconds, time.monotonic() - start)
    return seconds / BATCH * FEATURE_RATE * plan.seconds(*plan.splits)


def build_extractor(network: str, weights: str | None) -> FeatureExtractor:
    """Build a frozen network.

    Raises:
        ValueError: If its weights are missing.
    """
    if weights is None and not network.startswith(SCHEME):
        raise ValueError(f'--features {network} needs --weights, because the '
                         'package has no weights of this network')
    init_default_scope('mmaction')
    return FeatureExtractor(network, weights, get_device())


def stream_name(video: str) -> str:
    """Return the name of a video's files, as ``extract-features`` does."""
    path = Path(video).with_suffix('')
    return '_'.join(path.relative_to(path.anchor).parts)


def write_features(plan: StreamPlan, extractor: FeatureExtractor,
                   folder: Path) -> float:
    """Write the features, the targets and the lists of all videos.

    Features that exist already, from an earlier run, are kept.

    Args:
        plan: Videos of the run.
        extractor: The frozen network.
        folder: Folder of the data.

    Returns:
        Seconds that the extraction took.

    Raises:
        ValueError: If two videos would have the same file of features.
    """
    began = time.monotonic()
    kind, = named_targets(plan.classes)
    extract = VideoFeatures(extractor, FEATURE_RATE)
    videos = [video for side in plan.splits.values() for video in side]
    names: dict[str, str] = {}
    for video in videos:
        other = names.setdefault(stream_name(video), video)
        if other != video:
            raise ValueError(f'the features of {other} and {video} would have '
                             f'the same name, {stream_name(video)}.npy: '
                             'rename one of them')
    for name in 'rgb', kind.folder:
        (folder / name).mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    with Progress(console=console, transient=True,
                  disable=not console.is_terminal) as bar:
        for video in bar.track(videos, description='Extracting features'):
            path = folder / f'rgb/{stream_name(video)}.npy'
            if not path.is_file():
                write_atomically(path, npy_bytes(extract(plan.root / video)))
            events = [one for one in plan.segments if one.video == video]
            targets = mark(events, len(np.load(path, mmap_mode='r')), kind,
                           FEATURE_RATE)
            write_atomically(folder / f'{kind.folder}/{path.name}',
                             npy_bytes(targets))
    for split, side in plan.splits.items():
        lines = [*map(stream_name, side), '']
        write_atomically(folder / f'{split}_features.txt',
                         '\n'.join(lines).encode())
    seconds = time.monotonic() - began
    echo(f'features of {len(videos)} videos: {seconds:.0f} s')
    return seconds


def complete_options(options: FineTuneOptions) -> FineTuneOptions:
    """Choose the weights of the frozen network."""
    weights = options.weights
    if str(weights) == 'auto':
        weights = None
        with suppress(ValueError, FileNotFoundError):
            find_default(options.features)
            weights = DEFAULT
    return replace(options, weights=None if weights == 'none' else weights)


def prepare(options: FineTuneOptions, command: str,
            dry_run: bool = False) -> dict:
    """Check the videos, choose the model, and write lists and config.

    Returns:
        Content of ``finetune.json``, which is written when training begins.
    """
    out = options.out
    plan = make_stream_plan(options)
    if dry_run:
        echo('note: the model is chosen by measurements before the training')
        cfg = build_config('pixels', options, plan, 1, SIDES[0])
        echo(f'\n{format_config(cfg, command)}', end='')
        return {}
    plan.write_lists(out / 'data')

    def write(kind: str, size: int, epochs: int = 1) -> Config:
        cfg = build_config(kind, options, plan, epochs, size)
        path = out / 'config.py'
        write_atomically(path, format_config(cfg, command).encode())
        return load_config(path)

    def measure(kind: str, size: int, minutes: float) -> tuple[int, float]:
        with no_prints():
            return fit_epochs(write(kind, size), minutes)

    build = partial(build_extractor, options.features, checkpoint_of(options))
    choice = choose(
        plan, options.minutes, options.model,
        lambda side: Speed(side, *measure('pixels', side, options.minutes)),
        lambda: time_features(plan, build()))
    echo(f'model: {choice.kind}, because {choice.reason}')
    if choice.kind == 'pixels':
        size, epochs = choice.speed.side, choice.speed.epochs
    else:
        extractor = build()
        spent = write_features(plan, extractor, out / 'data') / 60
        size, epochs = extractor.width, options.epochs
        if epochs == 'auto':
            # An interrupted extraction may have taken longer than the rest.
            epochs, _ = measure('features', size, max(
                options.minutes - spent, EXTRACTION * options.minutes))
    if options.epochs != 'auto':
        epochs = options.epochs
    write(choice.kind, size, epochs)
    echo(count(epochs, 'epoch'))
    return dict(options=options.fixed(), videos=len(plan.segments),
                kind=choice.kind, reason=choice.reason)
