# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live models of features, of frames and of clips.

:class:`BaseLiveModel` is the interface that a :class:`StreamRun` needs.
"""
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from torch import Tensor, nn

from ..apis.config import load_config, name_of
from ..apis.labels import find_labels
from ..apis.models import get_model
from ..apis.sliding import FramePipeline, SlidingClassifier
from ..online import StreamSession
from ..online.event_detector import EventDetector, merge_event_options
from ..online.event_thresholds import read_thresholds
from ..sources import MAX_GAP
from ..utils.arguments import Positive, check_type
from .features import FeatureExtractor
from .scorers import ClipScorer, Scorer, SessionPool, SessionScorer
from .step_reader import Step, frame_indices

ONLINE, BACKBONE = 'OnlineActionDetector', 'OnlineVideoEncoder'
# Options of an extractor that depend on its network.
NETWORK_OPTIONS = 'checkpoint', 'cfg_options', 'layer', 'input', 'clip_len'
# Frame rate to check the config before the rate of the source is known.
TRIAL_FPS = 25.


class BaseLiveModel:
    """Base class of models that score the steps of live sources.

    Several runs can share a model at the same time, because it stores no
    state of a stream: each :class:`StreamRun` creates a scorer and an event
    detector.

    Args:
        config: Config file or name.
        checkpoint: Weights. None for random ones.
        events: Arguments of :class:`EventDetector`. They update
            ``online.events`` of the config (:func:`merge_event_options`).
        thresholds: ``thresholds`` of :class:`EventDetector`, or a file of
            ``mmvidattn tune-thresholds``. Defaults to the config's.
        device: Device to compute on. Defaults to 'cpu'.
        cfg_options: Changes to the config, by dotted keys.

    Raises:
        ValueError: If the config is for another kind of model, or the
            checkpoint does not fit it.

    Attributes:
        cfg: The config.
        online: ``online`` of the config.
        max_gap: Longest gap in seconds that the state of a stream and an
            action may span, ``online.max_gap`` of the config. Defaults to 10.
        model: The mmaction2 model.
        extractors: A :class:`FeatureExtractor` for each modality of a model of
            features; otherwise empty.
        classes: Names of the K classes.
        ignore: Indices of classes that are not actions.
    """
    #: Keys that ``online`` of the config may have.
    online_keys: tuple[str, ...] = ('events', 'max_gap')
    #: True if the first class is the background, not an action.
    has_background = True

    def __init__(self,
                 config: str | Path | Config,
                 checkpoint: str | Path | None,
                 *,
                 events: dict | None = None,
                 thresholds: str | Path | Mapping | None = None,
                 device: str | torch.device = 'cpu',
                 cfg_options: dict[str, Any] | None = None) -> None:
        self.device = device
        self.model = get_model(config, checkpoint, device, cfg_options)
        self.cfg = self.model.cfg
        self.online = self.cfg.get('online', {})
        self.max_gap = self.online.get('max_gap', MAX_GAP)
        unknown = sorted(set(self.online) - set(self.online_keys))
        if unknown:
            raise ValueError(f'online of {name_of(config)} may have '
                             f'{" and ".join(self.online_keys)}, got '
                             f'{", ".join(unknown)}')
        check_type(f'online.max_gap of {name_of(config)}', self.max_gap,
                   Positive)
        self.classes = _class_names(self.model, self.has_background)
        self.ignore: set[int] = set()
        if self.has_background:
            dataset = self.cfg.test_dataloader.dataset
            self.ignore = {0, dataset.get('ignore_index')} - {None}
        self.extractors: dict[str, FeatureExtractor] = {}
        events = dict(events or {})
        if thresholds is not None:
            events['thresholds'] = (
                thresholds if isinstance(thresholds, Mapping)
                else read_thresholds(thresholds).classes)
        self._event_options = merge_event_options(
            self.online.get('events', {}), events)

    def dataset_values(self, config: str | Path, **needed: str) -> list:
        """Return values of the test data set by key.

        Raises a ``ValueError`` with the meaning of each missing key.
        """
        dataset = (self.cfg.get('test_dataloader') or {}).get('dataset') or {}
        missing = [f'{key} ({meaning})' for key, meaning in needed.items()
                   if dataset.get(key) is None]
        if missing:
            raise ValueError(
                f'test_dataloader.dataset of {name_of(config)} lacks '
                f'{" and ".join(missing)}')
        return [dataset[key] for key in needed]

    def new_scorer(self, fps: float) -> Scorer:
        """Create the scorer of a source with ``fps`` frames per second."""
        raise NotImplementedError

    def new_event_detector(self) -> EventDetector:
        """Create the event detector of a source."""
        return EventDetector(self.classes, self.ignore, **self._event_options)


def _class_names(model: nn.Module, has_background: bool) -> Sequence[str]:
    number = model.cls_head.num_classes
    names = find_labels(model)
    if names and len(names) != number:
        raise ValueError(f'the dataset must name the {number} classes of the '
                         f'model, got {len(names)} names')
    if not names:
        names = [f'class {i}' for i in range(number)]
        if has_background:
            names[0] = 'background'
    return names


class FeatureStreamModel(BaseLiveModel):
    """Online detector with the extractors that compute its features.

    ``test_dataloader.dataset`` of the config has the rates. See
    :class:`BaseLiveModel` for the other arguments and attributes.

    Args:
        extractors: For each modality, arguments of
            :class:`FeatureExtractor`. They must match the extraction of the
            model's training features. They update the config's.

    Attributes:
        rate: Steps per second.
        memory_steps: Number of steps after which the memories do not depend on
            an earlier step.
    """
    online_keys = 'extractors', *BaseLiveModel.online_keys

    def __init__(self,
                 config: str | Path | Config,
                 checkpoint: str | Path | None,
                 extractors: Mapping[str, dict] | None = None,
                 **options: Any) -> None:
        super().__init__(config, checkpoint, **options)
        rate, long_rate, work_rate = self.dataset_values(
            config, feature_rate='steps per second',
            long_rate='steps per sample of the long memory',
            work_rate='steps per sample of the work memory')
        self.rate = float(rate)
        backbone = self.model.backbone
        self.memory_steps = (backbone.long_memory_length * long_rate
                             + backbone.work_memory_length * work_rate)
        self._pool = SessionPool(StreamSession(
            self.model, long_rate, work_rate,
            stretch_long_memory=self.cfg.test_dataloader.dataset.get(
                'stretch_long_memory')), self._features)
        self.extractors = _build_extractors(
            backbone.in_channels, self.online.get('extractors', {}),
            extractors or {}, self.device)

    def new_scorer(self, fps: float) -> SessionScorer:
        return SessionScorer(
            self._pool, partial(self._sample, fps=fps), self.rate,
            min(int(self.max_gap * self.rate), self.memory_steps - 1),
            max(extractor.reach(fps)
                for extractor in self.extractors.values()))

    def _sample(self, step: Step, fps: float
                ) -> tuple[dict[str, Any], dict[str, float]]:
        samples, seconds = {}, dict(flow=0., features=0.)
        for name, extractor in self.extractors.items():
            indices = extractor.frame_indices(step.number, fps, self.rate)
            start = time.perf_counter()
            clip = extractor.clip(step.images_at(indices))
            middle = time.perf_counter()
            samples[name] = extractor.prepare(clip)
            seconds['flow'] += middle - start
            seconds['features'] += time.perf_counter() - middle
        return samples, seconds

    def _features(self, samples: Sequence[Mapping[str, Any]]
                  ) -> list[dict[str, Tensor]]:
        rows = {name: extractor.features_of([each[name] for each in samples])
                for name, extractor in self.extractors.items()}
        return [dict(zip(rows, row)) for row in zip(*rows.values())]


def _build_extractors(in_channels: Mapping[str, int],
                      defaults: Mapping[str, dict],
                      changes: Mapping[str, dict],
                      device: str | torch.device
                      ) -> dict[str, FeatureExtractor]:
    """Build an extractor for each modality, and check it on a clip."""
    options = {name: _merge(defaults.get(name, {}), changes.get(name, {}))
               for name in {**defaults, **changes}}
    unknown = sorted(set(options) - set(in_channels))
    if unknown:
        raise ValueError(
            f'extractors must be for the modalities {", ".join(in_channels)} '
            f'of the model, got {", ".join(unknown)}')
    extractors = {}
    for name, channels in in_channels.items():
        if 'config' not in options.get(name, {}):
            raise ValueError(
                f'extractors.{name} must name the config and the checkpoint '
                f'of the network that computes the features {name!r}')
        extractor = FeatureExtractor(device=device, **options[name])
        if extractor.width != channels:
            raise ValueError(
                f'extractors.{name} must give the {channels} channels that '
                f'the model reads, and {extractor.name} gives '
                f'{extractor.width}')
        extractors[name] = extractor
    return extractors


def _merge(default: Mapping[str, Any], change: Mapping[str, Any]
           ) -> dict[str, Any]:
    """Update options; drop the network options if the network differs."""
    if change.get('config', default.get('config')) != default.get('config'):
        default = {key: value for key, value in default.items()
                   if key not in NETWORK_OPTIONS}
    return {**default, **change}


class LiveVideoModel(BaseLiveModel):
    """Online detector that reads frames directly, without extractors.

    Its backbone is an ``OnlineVideoEncoder``. ``test_dataloader.dataset`` of
    the config has ``frame_rate``, in frames per second. See
    :class:`BaseLiveModel` for the arguments and other attributes. A source
    with fewer frames per second than the model expects has a step for each
    frame, and the state ages by the time between frames.

    Attributes:
        frame_rate: Frames per second that the model was trained with.
    """

    def __init__(self, config: str | Path | Config,
                 checkpoint: str | Path | None, **options: Any) -> None:
        super().__init__(config, checkpoint, **options)
        rate, = self.dataset_values(config, frame_rate='frames per second')
        self.frame_rate = float(rate)
        self._pipeline = FramePipeline(self.cfg)
        self._pool = SessionPool(StreamSession(self.model))

    def new_scorer(self, fps: float) -> SessionScorer:
        rate = min(self.frame_rate, fps)
        elapsed = self.frame_rate / rate
        return SessionScorer(
            self._pool,
            partial(self._sample, fps=fps, rate=rate, elapsed=elapsed), rate,
            int(self.max_gap * rate), elapsed=elapsed)

    def _sample(self, step: Step, fps: float, rate: float, elapsed: float
                ) -> tuple[dict[str, Any], dict[str, float]]:
        start = time.perf_counter()
        image, = step.images_at(frame_indices(step.number, fps, rate, 1, 1))
        frame = self._pipeline.prepare(image)
        return dict(frames=frame, elapsed=elapsed), dict(
            features=time.perf_counter() - start)


class LiveClipModel(BaseLiveModel):
    """Clip model that runs on a sliding window of each source.

    A step has the length of one stride. A run keeps the frames of a window, so
    that a window after a dropped step still contains all of its frames.
    See :class:`BaseLiveModel` for the other arguments and the attributes.

    Args:
        seconds, stride: See :class:`SlidingClassifier`. Default to ``online``
            of the config.
    """
    online_keys = *BaseLiveModel.online_keys, 'seconds', 'stride'
    has_background = False

    def __init__(self,
                 config: str | Path | Config,
                 checkpoint: str | Path | None,
                 seconds: float | None = None,
                 stride: float | None = None,
                 **options: Any) -> None:
        super().__init__(config, checkpoint, **options)
        self._session = SlidingClassifier(
            self.model, fps=TRIAL_FPS,
            seconds=self.online.get('seconds') if seconds is None else seconds,
            stride=self.online.get('stride') if stride is None else stride)

    def new_scorer(self, fps: float) -> ClipScorer:
        return ClipScorer(self._session.spawn(fps), self.max_gap)


def load_live_model(config: str | Path, checkpoint: str | Path | None,
                    **options: Any) -> BaseLiveModel:
    """Load a model of feature streams, frames or clips.

    ``config`` determines the kind of model: :class:`FeatureStreamModel`,
    :class:`LiveVideoModel` or :class:`LiveClipModel`, whose arguments these
    are. Those of another kind of model must be None.

    Raises:
        ValueError: If an option is for another kind of model, or config,
            checkpoint and options do not fit together.
    """
    cfg = load_config(config, options.pop('cfg_options', None))
    kind = cfg.get('model', {}).get('type')
    build, unused = LiveClipModel, ['extractors']
    if kind == ONLINE:
        build, unused = FeatureStreamModel, ['seconds', 'stride']
        if cfg.model.backbone.get('type') == BACKBONE:
            build, unused = LiveVideoModel, ['extractors', *unused]
    for name in unused:
        value = options.pop(name, None)
        if value is not None:
            raise ValueError(f'{name} is not an option of {name_of(config)}, '
                             f'which is a {build.__name__}; got {value!r}')
    return build(cfg, checkpoint, **options)
