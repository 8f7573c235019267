# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scorers of the steps of a source, and batches of the steps of all sources.
"""
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..apis.sliding import SlidingClassifier
from ..online import StreamSession
from .step_reader import Step


@dataclass
class _Request:
    """Arguments of :meth:`SessionPool.score`, and its result or an error."""
    session: StreamSession
    sample: Any
    has_next: bool
    result: tuple | BaseException | None = None


class SessionPool:
    """Sessions of all sources of a model, which it scores in batches.

    A thread that finds no batch in progress scores the waiting steps of all
    sources at once, and the other threads wait for their results. It first
    waits, for at most the duration of a batch, for those sources of the
    previous batch that had another step, because batches of the same sessions
    are faster.

    Args:
        session: Session that :meth:`StreamSession.spawn` copies.
        features: Function that converts the samples of n steps to the n frames
            of :meth:`StreamSession.push_many`. Defaults to no conversion.
    """

    def __init__(self, session: StreamSession,
                 features: Callable[[Sequence[Any]], Sequence] | None = None
                 ) -> None:
        self.session = session
        self._features = features
        self._changed = threading.Condition()
        self._waiting: list[_Request] = []
        self._is_busy = False
        # Sessions that are about to arrive, and the time to wait for them.
        self._expected: set[int] = set()
        self._patience = 0.

    def score(self, session: StreamSession, sample: Any, has_next: bool
              ) -> tuple[np.ndarray, bool, dict[str, float]]:
        """Score a step of a session; see :meth:`Scorer.scores`.

        Returns:
            Class probabilities, [1 + A, K]; True for a frame that is not
            finite; and the duration of the stages of the batch in seconds.
        """
        request = _Request(session, sample, has_next)
        with self._changed:
            self._waiting.append(request)
            self._changed.notify_all()
            leads = False
            try:
                self._changed.wait_for(
                    lambda: request.result is not None or not self._is_busy)
                if request.result is None:
                    leads = self._is_busy = True
                    self._changed.wait_for(self._has_all, self._patience)
            except BaseException:
                # Ctrl-C must not block the other sources.
                self._waiting = [x for x in self._waiting if x is not request]
                self._is_busy = self._is_busy and not leads
                self._changed.notify_all()
                raise
            if leads:
                # The same order in each batch.
                batch = sorted(self._waiting, key=lambda x: id(x.session))
                self._waiting.clear()
        if leads:
            start = time.monotonic()
            self._score(batch)
            with self._changed:
                self._patience = time.monotonic() - start
                self._expected = {id(each.session) for each in batch
                                  if each.has_next}
                self._is_busy = False
                self._changed.notify_all()
        if isinstance(request.result, BaseException):
            raise request.result
        return request.result

    def _has_all(self) -> bool:
        return self._expected <= {id(each.session) for each in self._waiting}

    def _score(self, batch: Sequence[_Request]) -> None:
        try:
            results = self._compute(batch)
        except BaseException as error:
            if len(batch) > 1 and isinstance(error, Exception):
                # The sample of one source may be invalid.
                for each in batch:
                    self._score([each])
                return
            results = [error] * len(batch)
        for each, result in zip(batch, results):
            each.result = result

    def _compute(self, batch: Sequence[_Request]) -> list[tuple]:
        start, seconds = time.perf_counter(), {}
        samples = [each.sample for each in batch]
        if self._features is not None:
            samples = self._features(samples)
            seconds['features'] = time.perf_counter() - start
            start = time.perf_counter()
        logits = StreamSession.push_many(
            [each.session for each in batch], samples)
        head = self.session.step.model.cls_head
        scores = head.probabilities(dict(action=torch.stack(
            [each['action'] for each in logits])))['action'].cpu().numpy()
        seconds['head'] = time.perf_counter() - start
        return [(each, bool(found['bad_frame']), seconds)
                for each, found in zip(scores, logits)]


class Scorer:
    """Scorer of the steps of one source.

    Attributes:
        session: Session of the source.
        rate: Steps per second.
        max_skip: Largest number of missing steps that the state spans.
        reach: Number of frames that clips need before the last frame of a
            step.
        num_bad: Number of steps whose features or frame were not finite.
    """
    session: StreamSession | SlidingClassifier
    rate: float
    max_skip: int
    reach = 0
    num_bad = 0

    def scores(self, step: Step, has_next: bool = False
               ) -> tuple[np.ndarray, dict[str, float]]:
        """Score a step; ``has_next`` if another step of the source is waiting.

        Returns:
            Class probabilities of this step and of the anticipated ones,
            [1 + A, K], and the duration of each stage in seconds.
        """
        raise NotImplementedError

    def skip(self, number: int) -> None:
        """Skip missing steps, at most ``max_skip``."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state of :meth:`state_dict`."""


class SessionScorer(Scorer):
    """Scorer by a ``StreamSession``.

    Args:
        pool: Sessions of the model.
        sample: Function that returns the sample of a step, and the duration of
            each stage in seconds.
        rate, max_skip, reach: See :class:`Scorer`.
        elapsed: Duration of a step in nominal frame intervals, for models of
            frames.
    """

    def __init__(self, pool: SessionPool,
                 sample: Callable[[Step], tuple[Any, dict[str, float]]],
                 rate: float, max_skip: int, reach: int = 0,
                 elapsed: float | None = None) -> None:
        self.session = pool.session.spawn()
        self.rate, self.max_skip, self.reach = rate, max_skip, reach
        self._pool, self._sample, self._elapsed = pool, sample, elapsed

    def scores(self, step: Step, has_next: bool = False
               ) -> tuple[np.ndarray, dict[str, float]]:
        sample, seconds = self._sample(step)
        scores, is_bad, more = self._pool.score(self.session, sample, has_next)
        self.num_bad += is_bad
        return scores, {
            stage: seconds.get(stage, 0.) + more.get(stage, 0.)
            for stage in {**seconds, **more}}

    def skip(self, number: int) -> None:
        self.session.skip(
            number, None if self._elapsed is None else number * self._elapsed)

    def state_dict(self) -> dict[str, Any]:
        return self.session.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.session.load_state_dict(state_dict)


class ClipScorer(Scorer):
    """Scorer of each step by the window that ends with it.

    Stateless, because a step has the frames of its window, also after missing
    steps and when a run resumes. An action may span a gap of up to ``max_gap``
    seconds.
    """

    def __init__(self, session: SlidingClassifier, max_gap: float) -> None:
        self.session = session
        self.rate = session.rate
        self.reach = session.window_frames
        # An action cannot be observed in a gap as long as a window.
        self.max_skip = min(
            int(max_gap * self.rate),
            (session.window_frames - 1) // session.stride_frames)
        self._next_frame = 0

    def scores(self, step: Step, has_next: bool = False
               ) -> tuple[np.ndarray, dict[str, float]]:
        start = time.perf_counter()
        stop = (step.number + 1) * self.session.stride_frames
        first = max(self._next_frame, stop - self.session.window_frames)
        for frame in step.frames:
            if frame.index >= first:
                self.session.add(frame.index, frame.image)
        self._next_frame = stop
        # 'features' encodes new frames, 'head' computes the part that windows
        # do not share.
        encoded = self.session.encode(stop)
        middle = time.perf_counter()
        scores = self.session.classify(encoded).numpy()[None]
        return scores, dict(
            features=middle - start, head=time.perf_counter() - middle)
