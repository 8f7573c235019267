# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of the live models of feature streams and of clips."""
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from torch import nn

from ..apis.labels import find_labels
from ..apis.models import get_model, load_config
from ..online.event_detector import EventDetector, merge_event_options
from ..online.event_thresholds import read_thresholds


class BaseLiveModel:
    """Base class of models that several runs can share at the same time.

    It has no state of a stream: each :class:`Run` has a separate session and
    event detector.

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
        device: Device to compute on.
        cfg: The config.
        online: ``online`` of the config.
        model: The mmaction2 model.
        extractors: A :class:`FeatureExtractor` for each modality; empty for a
            clip model.
        classes: Names of the K classes.
        ignore: Indices of classes that are not actions.
        video_backend: Video reader that the config names, if any.
    """
    #: Keys that ``online`` of the config may have.
    online_keys: tuple[str, ...]
    #: True if an unnamed first class is called 'background'.
    has_background: bool

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 *,
                 events: dict | None = None,
                 thresholds: str | Path | Mapping | None = None,
                 device: str | torch.device = 'cpu',
                 cfg_options: dict[str, Any] | None = None) -> None:
        self.device = device
        self.cfg = load_config(config, cfg_options)
        self.check_config(self.cfg, config)
        self.online = self.cfg.get('online', {})
        self.video_backend = self.cfg.get('video_backend')
        self.model = get_model(config, checkpoint, device, cfg_options)
        self.classes = _class_names(self.model, self.has_background)
        self.ignore: set[int] = set()
        self.extractors: dict = {}
        events = dict(events or {})
        if thresholds is not None:
            events['thresholds'] = (
                thresholds if isinstance(thresholds, Mapping)
                else read_thresholds(thresholds).classes)
        self._event_options = merge_event_options(
            self.online.get('events', {}), events)

    def check_config(self, cfg: Config, name: str | Path) -> None:
        """Raise a ``ValueError`` if a config is not for this class."""
        unknown = sorted(set(cfg.get('online', {})) - set(self.online_keys))
        if unknown:
            raise ValueError(f'online of {name} may have '
                             f'{" and ".join(self.online_keys)}, got '
                             f'{", ".join(unknown)}')

    def new_scorer(self, fps: float) -> Any:
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
