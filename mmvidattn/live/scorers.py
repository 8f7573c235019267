# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scorers of the steps of a source, and batches of the steps of all sources.
"""
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import torch

from ..apis.compiling import compile_in_place
from ..apis.sliding import SlidingClassifier
from ..online import StreamSession
from .steps import Step


class SessionPool:
    """Sessions of all sources of a model, which it scores in batches.

    A thread that finds no batch in progress scores the waiting steps of all
    sources at once. The other threads wait for their results, in the order of
    their requests. So a source waits for one batch at most.

    Args:
        session: Session that :meth:`StreamSession.spawn` copies.
        features: Function that converts the samples of n steps to the n frames
            of :meth:`StreamSession.push_many`. Defaults to no conversion.
        compile_step: Compile the step of all sessions for batches of one.
        frames_on_cpu: True if samples are in CPU memory.
    """

    def __init__(self, session: StreamSession,
                 features: Callable[[Sequence[Any]], Sequence] | None = None,
                 compile_step: bool = False,
                 frames_on_cpu: bool = False) -> None:
        self.session = session
        self._features = features
        # A compiled step would compile again for each size of a batch.
        self._max_batch = 1 if compile_step else None
        self._waiting: list[tuple[StreamSession, Any, Future]] = []
        self._turn = threading.Lock()
        if compile_step:
            step = session.step
            compile_in_place(step)
            # The first call compiles.
            device = 'cpu' if frames_on_cpu else None
            session.spawn().push({
                name: x[0].to(device)
                for name, x in step.blank_frames(1).items()
                if name not in step.frame_defaults})

    def score(self, session: StreamSession, sample: Any
              ) -> tuple[np.ndarray, bool, dict[str, float]]:
        """Score a step of a session.

        Returns:
            Class probabilities of this step and of the anticipated ones,
            [1 + A, K]; True for a frame that is not finite; and the duration
            of the stages of the batch in seconds.
        """
        result: Future = Future()
        self._waiting.append((session, sample, result))
        while not result.done():
            with self._turn:
                if not result.done():
                    batch = self._waiting[:self._max_batch]
                    del self._waiting[:len(batch)]
                    self._score(batch)
        return result.result()

    def _score(self, batch: Sequence[tuple[StreamSession, Any, Future]]
               ) -> None:
        try:
            results = self._compute(*zip(*(item[:2] for item in batch)))
        except BaseException as error:
            if len(batch) > 1 and isinstance(error, Exception):
                # The sample of one source may be invalid.
                for item in batch:
                    self._score([item])
                return
            for _, _, result in batch:
                result.set_exception(error)
            return
        for (_, _, result), found in zip(batch, results):
            result.set_result(found)

    def _compute(self, sessions: Sequence[StreamSession],
                 samples: Sequence[Any]) -> list[tuple]:
        start = time.perf_counter()
        seconds = {}
        if self._features is not None:
            samples = self._features(samples)
            seconds['features'] = time.perf_counter() - start
            start = time.perf_counter()
        logits = StreamSession.push_many(sessions, samples)
        head = self.session.step.model.cls_head
        scores = head.probabilities(dict(action=torch.stack(
            [each['action'] for each in logits])))['action'].cpu().numpy()
        seconds['head'] = time.perf_counter() - start
        return [(each, bool(found['bad_frame']), seconds)
                for each, found in zip(scores, logits)]


class SessionScorer:
    """Scorer of the steps of one source by a ``StreamSession``.

    Args:
        pool: Sessions of the model.
        sample: Function that converts a step to its sample, and returns the
            duration of each stage in seconds.
        rate: Steps per second.
        max_skip: Largest number of missing steps that the state spans.
        reach: Number of frames that clips need before the last frame of a
            step.
        elapsed: Duration of a step in nominal frame intervals, for models of
            frames.

    Attributes:
        session: Session of the stream.
        num_bad: Number of steps whose features or frame were not finite.
        rate, max_skip, reach: Arguments.
    """

    def __init__(self, pool: SessionPool,
                 sample: Callable[[Step], tuple[Any, dict[str, float]]],
                 rate: float, max_skip: int, reach: int = 0,
                 elapsed: float | None = None) -> None:
        self.session = pool.session.spawn()
        self.num_bad = 0
        self.rate, self.max_skip, self.reach = rate, max_skip, reach
        self._pool, self._sample, self._elapsed = pool, sample, elapsed

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step.

        Returns:
            Class probabilities of this step and of the anticipated ones,
            [1 + A, K], and the duration of each stage in seconds.
        """
        sample, seconds = self._sample(step)
        scores, is_bad, more = self._pool.score(self.session, sample)
        self.num_bad += is_bad
        return scores, {
            stage: seconds.get(stage, 0.) + more.get(stage, 0.)
            for stage in {**seconds, **more}}

    def skip(self, number: int) -> None:
        """Skip missing steps, at most ``max_skip``."""
        self.session.skip(
            number, None if self._elapsed is None else number * self._elapsed)

    def reset(self) -> None:
        """Forget the stream until now."""
        self.session.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the session."""
        return self.session.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
        self.session.load_state_dict(state_dict)


class ClipScorer:
    """Scorer of the steps of one source, each by the window that ends with it.

    Its methods and attributes are those of :class:`SessionScorer`.

    Args:
        session: Session of the source.
        max_gap: Longest gap in seconds that an action may span.
    """
    num_bad = 0

    def __init__(self, session: SlidingClassifier, max_gap: float) -> None:
        self.session = session
        self.rate = session.rate
        self.reach = session.window_frames
        # An action cannot be observed in a gap as long as a window.
        self.max_skip = min(
            int(max_gap * self.rate),
            (session.window_frames - 1) // session.stride_frames)
        self._next_frame = 0

    def scores(self, step: Step) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step, [1, K].

        'features' encodes new frames, 'head' computes the part that windows
        do not share.
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

    def skip(self, number: int) -> None:
        """Do nothing, because the next step has the frames of its window."""

    def reset(self) -> None:
        """Forget the frames until now."""
        self.session.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return an empty state; a resumed run reads its window again."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""
