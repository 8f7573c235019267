# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Choose the kind of model by the measured speed of the machine."""
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ...live.feature_extractor import FeatureExtractor
from ...live.video_features import VideoFeatures
from ...utils.frame_times import ConstantRate
from ...utils.video_reader import open_video
from ..epochs import SHARE
from .config import CLIP_FRAMES, FEATURE_RATE, MAX_ROWS
from .plan import StreamPlan

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
