# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Features of a frozen network, and the targets of their steps."""
import time
from pathlib import Path

import numpy as np
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from rich.console import Console
from rich.progress import Progress

from ...datasets.prepare.feature_targets import (
    mark,
    named_targets,
    npy_bytes,
)
from ...live.feature_extractor import FeatureExtractor
from ...live.video_features import VideoFeatures
from ...utils.files import write_atomically
from ...utils.hub import SCHEME
from ...utils.printable import echo
from .config import FEATURE_RATE
from .plan import StreamPlan


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
