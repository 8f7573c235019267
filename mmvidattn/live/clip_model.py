# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models of clips, for live detection."""
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..apis.models import get_model, load_config
from ..apis.sliding import SlidingClassifier
from .events import EventDetector
from .model import check_online_keys, class_names
from .steps import Step

ONLINE_KEYS = 'events', 'seconds', 'stride'
# Some rate, to try the config before there is a source.
TRIAL_FPS = 25.


class LiveClipModel:
    """A recognizer of clips on the last seconds of each source.

    It holds nothing of any stream: each :class:`Run` has a session
    (:class:`mmvidattn.SlidingClassifier`) and events of its own, and any
    number of them may run at a time.

    A step is a stride. Of steps that were dropped, as the machine was too
    slow, the frames are still there for the windows that follow; for that a
    run holds the frames of a window as they came.

    Args:
        config: Config of a recognizer, or its name. ``online`` of it may have
            ``seconds``, ``stride`` and ``events``, as below.
        checkpoint: Its weights.
        seconds: Length of the window, see :class:`SlidingClassifier`, as for
            ``stride``. They update the config's.
        stride: Seconds from a step to the next.
        events: Arguments of :class:`EventDetector`. They update the config's.
        device: Where to compute.
        cfg_options: Changes to the config, by dotted keys.

    Raises:
        ValueError: If the config is none of clips, or an option is out of
            its range.

    Attributes:
        model: The recognizer.
        extractors: None, an empty dict.
        classes: Names of the K classes.
        ignore: Indices of those that are not actions: none.
        video_backend: What the config says that decodes files; None if it
            does not.
    """

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 seconds: float | None = None,
                 stride: float | None = None,
                 events: dict | None = None,
                 device: str | torch.device = 'cpu',
                 cfg_options: dict[str, Any] | None = None) -> None:
        cfg = load_config(config, cfg_options)
        check_online_keys(cfg, config, ONLINE_KEYS)
        self.video_backend = cfg.get('video_backend')
        online = cfg.get('online', {})
        self._event_options = {**online.get('events', {}), **(events or {})}
        self.ignore: set[int] = set()
        self.extractors: dict = {}
        self.model = get_model(config, checkpoint, device, cfg_options)
        self.classes = class_names(self.model, background=False)
        self._session = SlidingClassifier(
            self.model, fps=TRIAL_FPS,
            seconds=online.get('seconds') if seconds is None else seconds,
            stride=online.get('stride') if stride is None else stride)

    def new_session(self, fps: float) -> SlidingClassifier:
        """A session for a stream of its own, of ``fps`` frames a second."""
        return self._session.spawn(fps)

    def new_scorer(self, fps: float) -> 'ClipScorer':
        """What scores the steps of a source of ``fps`` frames a second."""
        return ClipScorer(self.new_session(fps))

    def new_event_detector(self) -> EventDetector:
        """An event detector for a stream of its own."""
        return EventDetector(self.classes, self.ignore, **self._event_options)


class ClipScorer:
    """Scores the steps of one source, by the window that ends with each.

    Args:
        session: The source's session.

    Attributes:
        session: The session.
        rate: Steps a second.
        reach: Frames that a window reaches back from its step's last one.
        num_bad: Steps whose features were not finite, which none are here.
    """
    num_bad = 0

    def __init__(self, session: SlidingClassifier) -> None:
        self.session = session
        self.rate = session.rate
        self.reach = session.window_frames
        self._next_frame = 0

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the frames of a window are read again."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where another scorer of this model was."""

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step.

        Returns:
            Probabilities of the classes, [1, K], and the seconds of each
            stage: 'features' is the encoding of new frames, 'head' all that
            is computed of each window anew.
        """
        start = time.perf_counter()
        stop = (step.number + 1) * self.session.stride_frames
        first = max(self._next_frame, stop - self.session.window_frames)
        for frame in step.frames:
            if frame.index >= first:
                self.session.add(frame.index, frame.image)
        self._next_frame = stop
        encoded = self.session.encode(stop)
        middle = time.perf_counter()
        scores = self.session.classify(encoded).numpy()[None]
        return scores, dict(
            features=middle - start, head=time.perf_counter() - middle)

    def skip(self, num_steps: int) -> bool:
        """Pass over steps; False if they are as long as a window."""
        session = self.session
        return num_steps * session.stride_frames < session.window_frames
