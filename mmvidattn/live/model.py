# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models of feature streams, for live detection."""
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from torch import Tensor, nn

from ..apis.compiling import compile_in_place
from ..apis.labels import find_labels
from ..apis.models import get_model, load_config
from ..online import StreamSession
from .events import EventDetector
from .feature_extractor import FeatureExtractor
from .steps import Step

ONLINE = 'OnlineActionDetector'
RATES = 'feature_rate', 'long_rate', 'work_rate'
ONLINE_KEYS = 'extractors', 'events'
# Options of an extractor that belong to its network.
OF_NETWORK = 'checkpoint', 'cfg_options', 'layer', 'input', 'clip_len'


class LiveModel:
    """A model of streams of features, and the extractors of its features.

    It holds nothing of any stream: each :class:`Run` has its own session and
    events, and any number of them may run at a time.

    Args:
        config: Config of an ``OnlineActionDetector``, or its name. Its
            ``test_dataloader.dataset`` has the rates; ``online`` may have
            ``extractors`` and ``events``, as below.
        checkpoint: Its weights.
        extractors: For each modality the arguments of
            :class:`FeatureExtractor`, the same as those that made the
            features the model was trained on. They update the config's.
        events: Arguments of :class:`EventDetector`. They update the config's.
        device: Where to compute.
        compile_step: Compile the model's step, which takes a minute; each
            step is faster then.
        cfg_options: Changes to the config, by dotted keys.

    Raises:
        ValueError: If the config, the checkpoint and the extractors do not
            fit together.

    Attributes:
        model: The ``OnlineActionDetector``.
        extractors: A :class:`FeatureExtractor` for each modality.
        classes: Names of the K classes.
        ignore: Indices of those that are not actions: the background, and
            those the dataset ignores.
        rate: Steps a second.
        video_backend: What the config says that decodes files; None if it
            does not.
        memory_steps: Steps after which nothing is left in the memories.
    """

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 extractors: Mapping[str, dict] | None = None,
                 events: dict | None = None,
                 device: str | torch.device = 'cpu',
                 compile_step: bool = False,
                 cfg_options: dict[str, Any] | None = None) -> None:
        cfg = load_config(config, cfg_options)
        dataset = _check_config(cfg, config)
        online = cfg.get('online', {})
        self.video_backend = cfg.get('video_backend')
        self._event_options = {**online.get('events', {}), **(events or {})}
        self.ignore = {0, dataset.get('ignore_index')} - {None}
        self.rate = float(dataset['feature_rate'])
        self.model = get_model(config, checkpoint, device, cfg_options)
        self.classes = class_names(self.model, background=True)
        backbone = self.model.backbone
        self.memory_steps = (
            backbone.long_memory_length * dataset['long_rate'] +
            backbone.work_memory_length * dataset['work_rate'])
        self._session = StreamSession(
            self.model, dataset['long_rate'], dataset['work_rate'],
            stretch_long_memory=dataset.get('stretch_long_memory'))
        if compile_step:
            compile_in_place(self._session.step)
            # Its first call compiles it.
            self.new_session().push({
                name: torch.zeros(channels)
                for name, channels in backbone.in_channels.items()
            })
        self.extractors = _build_extractors(
            backbone.in_channels, online.get('extractors', {}),
            extractors or {}, device)

    def new_session(self) -> StreamSession:
        """A session for a stream of its own."""
        return self._session.spawn()

    def new_scorer(self, fps: float) -> 'FeatureScorer':
        """What scores the steps of a source of ``fps`` frames a second."""
        return FeatureScorer(self, fps)

    def new_event_detector(self) -> EventDetector:
        """An event detector for a stream of its own."""
        return EventDetector(self.classes, self.ignore, **self._event_options)


class FeatureScorer:
    """Scores the steps of one source, by their features.

    The extractors turn each step into features, and a
    :class:`mmvidattn.online.StreamSession` turns those into scores.

    Args:
        model: The model, its extractors, and how long it remembers.
        fps: Frames a second of the source.

    Attributes:
        session: The stream's session.
        rate: Steps a second.
        reach: Frames that a clip reaches back from its step's last one.
        num_bad: Steps whose features were not finite.
    """

    def __init__(self, model: LiveModel, fps: float) -> None:
        self._model = model
        self._fps = fps
        self.session = model.new_session()
        self.rate = model.rate
        self.reach = max(extractor.reach(fps)
                         for extractor in model.extractors.values())
        self.num_bad = 0

    def state_dict(self) -> dict[str, Any]:
        """The session's state."""
        return self.session.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where another scorer of this model was."""
        self.session.load_state_dict(state_dict)

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step.

        Returns:
            Probabilities of the classes now, then of the steps to come,
            [1 + A, K], and the seconds of each stage.
        """
        features, seconds = self._extract(step)
        start = time.perf_counter()
        logits = self.session.push(features)
        self.num_bad += bool(logits['bad_frame'])
        scores = self._model.model.cls_head.probabilities(
            dict(action=logits['action']))['action'].cpu().numpy()
        return scores, dict(seconds, head=time.perf_counter() - start)

    def skip(self, num_steps: int) -> bool:
        """Pass over steps; False if that leaves nothing in the memories."""
        if num_steps >= self._model.memory_steps:
            self.session.reset()
            return False
        self.session.skip(num_steps)
        return True

    def _extract(self, step: Step
                 ) -> tuple[dict[str, Tensor], dict[str, float]]:
        """The features of a step, and the seconds they took, by stage."""
        features, seconds = {}, dict(flow=0., features=0.)
        for name, extractor in self._model.extractors.items():
            indices = extractor.frame_indices(
                step.number, self._fps, self.rate)
            start = time.perf_counter()
            clip = extractor.clip(step.images_at(indices))
            middle = time.perf_counter()
            features[name] = extractor.features([clip])[0]
            seconds['flow'] += middle - start
            seconds['features'] += time.perf_counter() - middle
        return features, seconds


def _check_config(cfg: Config, name: str | Path) -> dict:
    """Check the config of an online detector; returns that of its dataset."""
    kind = cfg.get('model', {}).get('type')
    if kind != ONLINE:
        raise ValueError(f'{name} is no config of an online detector: '
                         f'model.type must be {ONLINE!r}, got {kind!r}')
    check_online_keys(cfg, name, ONLINE_KEYS)
    dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
    lacking = [key for key in RATES if dataset.get(key) is None]
    if lacking:
        raise ValueError(
            f'{name} has no rates: test_dataloader.dataset must have '
            'feature_rate (steps a second), long_rate and work_rate (a '
            f'sample every so many steps), and lacks {", ".join(lacking)}')
    return dataset


def check_online_keys(cfg: Config, name: str | Path,
                      allowed: Sequence[str]) -> None:
    """Raise a ``ValueError`` for other keys in ``online`` of a config."""
    unknown = sorted(set(cfg.get('online', {})) - set(allowed))
    if unknown:
        raise ValueError(f'online of {name} may have '
                         f'{" and ".join(allowed)}, got '
                         f'{", ".join(unknown)}')


def class_names(model: nn.Module, background: bool) -> list[str]:
    """A name for each class of a model.

    Args:
        model: The model.
        background: Whether the first class is none, if it has no name.
    """
    number = model.cls_head.num_classes
    names = find_labels(model)
    if names and len(names) != number:
        raise ValueError(f'there are {len(names)} names of classes, and the '
                         f'model has {number}')
    if not names:
        names = [f'class {i}' for i in range(number)]
        names[:1] = ['background'] if background else names[:1]
    return names


def _build_extractors(in_channels: Mapping[str, int],
                      defaults: Mapping[str, dict],
                      changes: Mapping[str, dict],
                      device: str | torch.device
                      ) -> dict[str, FeatureExtractor]:
    """An extractor for each modality, tried on a clip."""
    options = {name: _merge(defaults.get(name, {}), changes.get(name, {}))
               for name in {**defaults, **changes}}
    unknown = sorted(set(options) - set(in_channels))
    if unknown:
        raise ValueError(
            f'the model reads {" and ".join(in_channels)}; there is an '
            f'extractor of {", ".join(unknown)}')
    extractors = {}
    for name, channels in in_channels.items():
        if 'config' not in options.get(name, {}):
            raise ValueError(
                f'the model reads features {name!r}: extractors.{name} must '
                'name the config and the checkpoint of the network that '
                'computes them')
        extractor = FeatureExtractor(device=device, **options[name])
        if extractor.width != channels:
            raise ValueError(
                f'the model reads {channels} features {name!r}, and the '
                f'network {extractor.name} gives {extractor.width}')
        extractors[name] = extractor
    return extractors


def _merge(default: Mapping[str, Any], change: Mapping[str, Any]
           ) -> dict[str, Any]:
    """Options with changes. Another network has none of the first one's."""
    if change.get('config', default.get('config')) != default.get('config'):
        default = {key: value for key, value in default.items()
                   if key not in OF_NETWORK}
    return {**default, **change}
