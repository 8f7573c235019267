# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Task: train a detector on the frames of ``pixels.py`` and test it.

A causal network carries its state from one clip to the next. A network of
windows (:class:`FrameWindows`) has no state.

A detector such as TeSTra reads features. Its config has ``features``: the
``config`` and ``changes`` of the network that computes them. This feature
network is trained first, with half of the updates, and then frozen. The
detector is trained next, with all updates and twice as many windows per
update. Both together take about the processor time of a causal network.
"""
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModel, BaseModule
from mmengine.structures import BaseDataElement
from torch import Tensor

from mmvidattn.apis.models import load_config
from mmvidattn.online import StreamSession
from tools.data.online.cued_streams import class_names
from tools.studies.study import Training

from . import online_model, pixels, streams
from .start import train_model

SIZES = pixels.SPLITS
# Headings of the reported figures; claims compare 'score'.
METRICS = dict(
    score='test',
    now='cues',
    **{f'bin_{name}': f'{low}-{high} frames'
       for name, (low, high) in pixels.BINS.items()},
    same_by_time='same at twice the rate',
    same_by_count='same, by counting frames',
    ms='ms per frame')
# Range of the number of frames from a cue to its action, by figure.
DISTANCES = {f'bin_{name}': bounds for name, bounds in pixels.BINS.items()}
# Frames of a clip in training, and of a part of a stream in the test.
CLIP = 128
# Number of frames to time.
TIMED = 256
# Number of streams for comparing scores at two frame rates.
AGREE = 8


@MODELS.register_module()
class FrameWindows(BaseModule):
    """Backbone that encodes disjoint windows of a stream.

    A frame's features also depend on later frames of its window.

    Args:
        encoder: Config of a bidirectional backbone for clips of
            ``num_frames``.
        num_anticipation_tokens: Must be 0.
    """

    def __init__(self, encoder: dict, num_anticipation_tokens: int = 0,
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg)
        if num_anticipation_tokens:
            raise ValueError('num_anticipation_tokens must be 0, got '
                             f'{num_anticipation_tokens}')
        self.encoder = MODELS.build(encoder)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Map frames [B, 3, T, H, W] to features [B, T, D]."""
        frames, T = inputs['frames'], self.encoder.num_frames
        windows = frames.unflatten(2, (-1, T)).transpose(1, 2).flatten(0, 1)
        x = self.encoder(windows).mean(dim=(3, 4)).transpose(1, 2)
        return x.unflatten(0, (len(frames), -1)).flatten(1, 2)

    def forward_causal(self, inputs: Mapping[str, Tensor],
                       state: None = None) -> tuple[Tensor, None]:
        """Return the features of :meth:`forward` and no state."""
        return self(inputs), None


def prepare(folder: Path, sizes: dict[str, int]) -> dict[str, dict]:
    """Write the streams, and return the scores of chance and an oracle."""
    return pixels.prepare(folder, sizes)


def _normalized(model: BaseModel, frames: np.ndarray) -> Tensor:
    """Turn frames ``(B, T, 3, H, W)`` to inputs [B, 3, T, H, W]."""
    return model.data_preprocessor.normalize(
        torch.as_tensor(np.array(frames)).transpose(1, 2))


def _batches(model: BaseModel, job: Training) -> Iterator[dict[str, Any]]:
    """Yield batches of clips; each continues the clips of the last one.

    A pass over a stream begins at a random frame.
    """
    data, batch_size = pixels.read(job.folder, 'train'), job.batch_size
    rng = np.random.default_rng(job.seed)
    count, length = data.distances.shape
    number = 0
    while True:
        order = rng.permutation(count)
        for first in range(0, count - batch_size + 1, batch_size):
            chosen = order[first:first + batch_size]
            number += 1
            for start in range(int(rng.integers(CLIP)), length - CLIP + 1,
                               CLIP):
                steps = np.arange(start, start + CLIP)
                yield dict(
                    inputs=dict(frames=_normalized(
                        model, data.frames[chosen, start:start + CLIP])),
                    data_samples=[BaseDataElement(
                        metainfo=dict(video_name=f'{number}_{video}',
                                      work_indices=steps),
                        gt_action=torch.as_tensor(
                            data.targets[video, steps], dtype=torch.float32))
                        for video in chosen])


@torch.no_grad()
def features_of(model: BaseModel, frames: np.ndarray,
                elapsed: float = 1.) -> Tensor:
    """Return the features [T, D] of a stream ``(T, 3, H, W)``."""
    model.eval()
    state, parts = None, []
    for start in range(0, len(frames), CLIP):
        x = _normalized(model, frames[None, start:start + CLIP])
        x, state = model.backbone.forward_causal(
            dict(frames=x, elapsed=torch.full((1, x.shape[2]), elapsed)),
            state)
        parts.append(x[0])
    return torch.cat(parts)


@torch.no_grad()
def _scores(model: BaseModel, frames: np.ndarray,
            elapsed: float = 1.) -> np.ndarray:
    return model.cls_head.predict(
        features_of(model, frames, elapsed))['action'].numpy()


def _figures(model: BaseModel, data: pixels.Pixels,
             rate: int = 1) -> dict[str, float]:
    """Return the figures of a split, computed on every ``rate``-th frame."""
    return streams.figures(
        np.concatenate([_scores(model, frames[::rate])
                        for frames in data.frames]),
        np.concatenate(data.targets[:, ::rate]),
        np.concatenate(data.distances[:, ::rate] // rate), pixels.BINS)


def agreement(model: BaseModel, frames: np.ndarray, elapsed: float) -> float:
    """Compare the scores at the nominal and at twice the frame rate.

    Args:
        model: Causal detector.
        frames: Frames of a scene at twice the rate, ``(T, 3, H, W)``.
        elapsed: Duration of a frame at twice the rate in nominal intervals.

    Returns:
        Share of probability, in percent, that each frame's scores at both
        rates have in common.
    """
    slow = _scores(model, frames[::2])
    fast = _scores(model, frames, elapsed)[::2]
    return 100 * float(np.minimum(slow, fast).sum(axis=1).mean())


def milliseconds(run: Callable[[int], Any], frames: int) -> float:
    """Return the processor time per frame of ``run`` for frames in order."""
    for i in range(8):
        run(i)
    began = time.process_time()
    for i in range(frames):
        run(i)
    return 1e3 * (time.process_time() - began) / frames


@torch.no_grad()
def _milliseconds(model: BaseModel, data: pixels.Pixels) -> float:
    """Return the milliseconds per frame of a stream that arrives slowly."""
    model.eval()
    backbone = model.backbone
    length = backbone.encoder.num_frames if isinstance(
        backbone, FrameWindows) else 1
    x = _normalized(model, data.frames[:1, :length])
    state = backbone.forward_causal(dict(frames=x))[1]

    def run(_: int) -> None:
        y, _ = backbone.forward_causal(dict(frames=x), state)
        model.cls_head.predict(y)

    return milliseconds(run, TIMED // length) / length


def _write_features(model: BaseModel, source: Path, folder: Path) -> None:
    """Write the features of all splits as a data set of features."""
    for name in 'rgb', 'target_perframe', 'distance':
        (folder / name).mkdir()
    (folder / 'classes.txt').write_text('\n'.join(class_names()))
    for split in SIZES:
        data, rate = pixels.read(source, split), 1 + (split == 'test')
        names = [f'{split}_{i:03d}' for i in range(len(data.frames))]
        (folder / f'{split}.txt').write_text('\n'.join(names) + '\n')
        for name, frames, targets, distances in zip(names, *data):
            for part, array in (
                    ('rgb', features_of(model, frames[::rate]).numpy()),
                    ('target_perframe', targets[::rate]),
                    ('distance', distances[::rate] // rate)):
                np.save(folder / part / f'{name}.npy', array)


def train(job: Training) -> dict[str, float]:
    """Train a model, and test it on entire streams.

    Returns:
        Figures of ``METRICS``, the agreement only for causal networks;
        ``val``, the score on the validation split; and the ``loss`` of the
        last tenth of the updates.
    """
    if job.view != 'all':
        raise ValueError(f"view must be 'all' for streams, got {job.view!r}")
    if 'features' in job.config:
        return _train_features(job)
    model, loss = train_model(job, _batches)
    test = pixels.read(job.folder, 'test')
    found = dict(_figures(model, test, 2), ms=_milliseconds(model, test),
                 val=_figures(model, pixels.read(job.folder, 'val'))['score'],
                 loss=loss)
    if not isinstance(model.backbone, FrameWindows):
        for name, elapsed in (('time', .5), ('count', 1.)):
            found[f'same_by_{name}'] = float(np.mean([
                agreement(model, frames, elapsed)
                for frames in test.frames[:AGREE]]))
    return found


def _train_features(job: Training) -> dict[str, float]:
    """Train a feature network, then the detector that reads its features."""
    features = job.config['features']
    model, _ = train_model(job._replace(
        config=load_config(features['config'], features['changes']),
        reference=None, steps=max(1, job.steps // 2)), _batches)
    with TemporaryDirectory() as name:
        _write_features(model, job.folder, Path(name))
        found, detector = online_model.train_and_keep(job._replace(
            reference=None, folder=Path(name),
            batch_size=2 * job.batch_size), pixels.BINS)
    session = StreamSession(detector, long_memory_sample_rate=4)
    frame = dict(rgb=torch.zeros(detector.backbone.in_channels['rgb']))
    return dict(found, ms=milliseconds(lambda _: session.push(frame), TIMED)
                + _milliseconds(model, pixels.read(job.folder, 'test')))
