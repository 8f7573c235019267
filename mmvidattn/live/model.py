# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The part of live detection that all sources share."""
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from torch import nn

from ..apis.labels import find_labels
from ..apis.models import get_model, load_config
from ..online import StreamSession
from ..utils.compiling import compile_in_place
from .events import EventDetector
from .feature_extractor import FeatureExtractor

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
        self.classes = _class_names(self.model)
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

    def new_event_detector(self) -> EventDetector:
        """An event detector for a stream of its own."""
        return EventDetector(self.classes, self.ignore, **self._event_options)


def _check_config(cfg: Config, name: str | Path) -> dict:
    """Check the config of an online detector; returns that of its dataset."""
    kind = cfg.get('model', {}).get('type')
    if kind != 'OnlineActionDetector':
        raise ValueError(f'{name} is no config of an online detector: '
                         f"model.type must be 'OnlineActionDetector', got "
                         f'{kind!r}')
    unknown = sorted(set(cfg.get('online', {})) - set(ONLINE_KEYS))
    if unknown:
        raise ValueError(f'online of {name} may have '
                         f'{" and ".join(ONLINE_KEYS)}, got '
                         f'{", ".join(unknown)}')
    dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
    lacking = [key for key in RATES if dataset.get(key) is None]
    if lacking:
        raise ValueError(
            f'{name} has no rates: test_dataloader.dataset must have '
            'feature_rate (steps a second), long_rate and work_rate (a '
            f'sample every so many steps), and lacks {", ".join(lacking)}')
    return dataset


def _class_names(model: nn.Module) -> list[str]:
    """A name for each class of the model."""
    number = model.cls_head.num_classes
    names = find_labels(model)
    if names and len(names) != number:
        raise ValueError(f'there are {len(names)} names of classes, and the '
                         f'model has {number}')
    return names or ['background'] + [f'class {i}' for i in range(1, number)]


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
