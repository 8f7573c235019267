# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base classes of live models, and of their scorers."""
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
from ..online.event_detector import EventDetector, merge_event_options
from ..online.event_thresholds import read_thresholds


class BaseLiveModel:
    """Base class of models that score the steps of live sources.

    Several runs can share a model at the same time, because it stores no
    state of a stream: each :class:`Run` creates a session and an event
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
        device: Device to compute on.
        cfg: The config.
        online: ``online`` of the config.
        model: The mmaction2 model.
        extractors: A :class:`FeatureExtractor` for each modality; empty for a
            clip model.
        classes: Names of the K classes.
        ignore: Indices of classes that are not actions.
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


class LiveSessionModel(BaseLiveModel):
    """Base class of live models that score steps by a ``StreamSession``.

    A subclass calls :meth:`start_session` in its constructor.

    Attributes:
        ignore: Indices of classes that are not actions: the background, and
            the class that the dataset ignores.
        frames_on_cpu: True if the scorer pushes frames in CPU memory, False
            if they are on the device of the model.

    See :class:`BaseLiveModel` for the arguments and the other attributes.
    """
    has_background = True
    frames_on_cpu = False

    def start_session(self, compile_step: bool, *args: Any,
                      **kwargs: Any) -> None:
        """Create the session that :meth:`new_session` copies.

        Args:
            compile_step: Compile the step of all sessions.
            *args: Arguments of :class:`mmvidattn.online.StreamSession`.
            **kwargs: Keyword arguments of ``StreamSession``.
        """
        dataset = self.cfg.test_dataloader.dataset
        self.ignore = {0, dataset.get('ignore_index')} - {None}
        self._session = StreamSession(self.model, *args, **kwargs)
        if compile_step:
            step = self._session.step
            compile_in_place(step)
            # The first call compiles. Its frames are on the scorer's device.
            device = 'cpu' if self.frames_on_cpu else None
            self.new_session().push({
                name: x[0].to(device)
                for name, x in step.blank_frames(1).items()
                if name not in step.frame_defaults})

    def new_session(self) -> StreamSession:
        """Create the session of a stream."""
        return self._session.spawn()


class SessionScorer:
    """Base class of scorers of one source by a ``StreamSession``.

    Args:
        model: The model.

    Attributes:
        session: Session of the stream.
        num_bad: Number of steps whose features or frame were not finite.
    """

    def __init__(self, model: LiveSessionModel) -> None:
        self.session = model.new_session()
        self.num_bad = 0
        self._model = model

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the session."""
        return self.session.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
        self.session.load_state_dict(state_dict)

    def push(self, features: Mapping[str, Tensor | float]) -> np.ndarray:
        """Return the class probabilities of a step.

        Args:
            features: One frame for :meth:`StreamSession.push`.

        Returns:
            Probabilities of this step and of the A anticipated steps,
            [1 + A, K].
        """
        logits = self.session.push(features)
        self.num_bad += bool(logits['bad_frame'])
        return self._model.model.cls_head.probabilities(
            dict(action=logits['action']))['action'].cpu().numpy()


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
