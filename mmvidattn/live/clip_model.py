# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live models of clips."""
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..apis.sliding import SlidingClassifier
from .base_model import BaseLiveModel
from .steps import Step

# Frame rate to check the config before the rate of the source is known.
TRIAL_FPS = 25.


class LiveClipModel(BaseLiveModel):
    """Clip model that runs on a sliding window of each source.

    A step has the length of one stride. A run keeps the frames of a window, so
    that a window after a dropped step still contains all of its frames.

    Args:
        config: Config of a recognizer, or its name. ``online`` may have
            ``seconds``, ``stride`` and ``events``.
        checkpoint: Weights. None for random ones.
        seconds: Length of the window, see :class:`SlidingClassifier`.
            Defaults to the config's.
        stride: Seconds from a step to the next, see
            :class:`SlidingClassifier`. Defaults to the config's.
        **options: Other options of :class:`BaseLiveModel`.

    Raises:
        ValueError: If the config is not for a clip model, or an option is out
            of range.

    See :class:`BaseLiveModel` for the attributes.
    """
    online_keys = 'events', 'seconds', 'stride'
    has_background = False

    def __init__(self,
                 config: str | Path,
                 checkpoint: str | Path | None,
                 seconds: float | None = None,
                 stride: float | None = None,
                 **options: Any) -> None:
        super().__init__(config, checkpoint, **options)
        self._session = SlidingClassifier(
            self.model, fps=TRIAL_FPS,
            seconds=self.online.get('seconds') if seconds is None else seconds,
            stride=self.online.get('stride') if stride is None else stride)

    def new_scorer(self, fps: float) -> 'ClipScorer':
        return ClipScorer(self._session.spawn(fps))


class ClipScorer:
    """Scorer of the steps of one source, each by the window that ends with it.

    Args:
        session: Session of the source.

    Attributes:
        session: Session of the source.
        rate: Steps per second.
        reach: Number of frames before a step's last one that a window needs.
        num_bad: Number of steps whose features were not finite, always 0.
    """
    num_bad = 0

    def __init__(self, session: SlidingClassifier) -> None:
        self.session = session
        self.rate = session.rate
        self.reach = session.window_frames
        self._next_frame = 0

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state; a resumed run reads its window again."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step.

        Returns:
            Class probabilities, [1, K], and the duration of each stage in
            seconds: 'features' encodes new frames, 'head' computes the part
            that windows do not share.
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
        """Skip steps. Return False if they are as long as a window."""
        session = self.session
        return num_steps * session.stride_frames < session.window_frames
