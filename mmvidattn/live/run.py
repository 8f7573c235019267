# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection in one source."""
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from .events import EventLog
from .latency import Latency
from .model import LiveModel
from .sources import Source, open_source
from .step_queue import StepQueue
from .steps import Step, StepMaker

# Seconds that a source has to end after it was told to.
STOP_SECONDS = 5.


@dataclass(frozen=True)
class Detection:
    """The result of a step.

    Attributes:
        step: Its number, from 0. Numbers that are left out were dropped, or
            had no frames.
        time: Its end, in seconds of the source.
        scores: Probabilities of the classes now, [K]; 0 of the class that
            training ignored.
        anticipated: Those of the steps to come, nearest first, [A, K].
        events: Actions that started or ended (:class:`EventDetector`).
        images: The frames of the step itself, RGB ``(H, W, 3)``, oldest
            first.
        seconds: Duration of each stage (:class:`Latency`).
    """
    step: int
    time: float
    scores: np.ndarray
    anticipated: np.ndarray
    events: Sequence[dict]
    images: Sequence[np.ndarray]
    seconds: Mapping[str, float]


class Run:
    """One pass of a model over one source; iterate over it once.

    A thread of its own reads frames and cuts them into steps at the rate of
    the model; the extractors turn each step into features, and a
    :class:`mmvidattn.online.StreamSession` turns those into scores.

    Between the two threads is a queue of ``queue_size`` steps. When the
    machine is too slow for a live source, the oldest steps are dropped and
    counted; a recording waits. The session skips the steps that are missing;
    after a gap as long as its memory it starts again.

    Args:
        model: Shared by all its runs.
        source: See :func:`open_source`, as for ``realtime`` and ``fps``.
        events_file: File to write events to, as JSON Lines, as they happen.
        realtime: Play a recording at its own speed, as if it were live.
        fps: Frames a second.
        queue_size: Steps that may wait.

    Raises:
        ValueError: If the source cannot be opened or does not fit the model;
            while it runs, if the source breaks or hangs.

    Attributes:
        classes: See :class:`LiveModel`, as for ``ignore``, ``rate``,
            ``model`` and ``extractors``.
        source: See :func:`open_source`.
        session: The stream's :class:`mmvidattn.online.StreamSession`.
        latency: See :class:`Latency`.
        events: The latest ones (:class:`EventLog`).
    """

    def __init__(self,
                 model: LiveModel,
                 source: int | str | Path | Source,
                 events_file: str | Path | None = None,
                 realtime: bool = False,
                 fps: float | None = None,
                 queue_size: int = 4) -> None:
        self._live_model = model
        self.model = model.model
        self.extractors = model.extractors
        self.classes = model.classes
        self.ignore = model.ignore
        self.rate = model.rate
        self.source = open_source(source, realtime, fps)
        self.session = model.new_session()
        self.latency = Latency()
        self._event_detector = model.new_event_detector()
        reach = max(extractor.reach(self.source.fps)
                    for extractor in self.extractors.values())
        self._steps = StepMaker(self.source.fps, self.rate, reach)
        self._queue = StepQueue(queue_size, drop=self.source.live,
                                check=self.source.check_alive)
        self._next_step = self._num_done = 0
        self._started = False
        self._failure = ''
        # Last, so that a mistake leaves no file.
        self.events = EventLog(events_file)

    def with_source(self, source: int | str | Path | Source,
                    events_file: str | Path | None = None,
                    realtime: bool = False,
                    fps: float | None = None) -> 'Run':
        """A run of the same model on another source."""
        return Run(self._live_model, source, events_file, realtime, fps,
                   self._queue.size)

    @property
    def dropped(self) -> int:
        """Steps that were dropped because the machine was too slow."""
        return self._queue.dropped

    @property
    def missing(self) -> int:
        """Steps of which the source had no frames."""
        return self._steps.missing

    def report(self) -> dict[str, Any]:
        """The source's status, counts and latency so far."""
        return dict(
            name=self.source.name,
            status=self._failure or self.source.status,
            rate=self.rate,
            steps=self._num_done,
            dropped=self.dropped,
            missing=self.missing,
            latency=self.latency.report())

    def set_threshold(self, name: str, on: float | None) -> None:
        """Change when a class starts: :meth:`EventDetector.set_threshold`."""
        self._event_detector.set_threshold(name, on)

    def thresholds(self) -> dict[str, Any]:
        """``on`` and ``off`` of all, and of the classes that are ``changed``.
        """
        detector = self._event_detector
        return dict(on=detector.on, off=detector.off,
                    changed=detector.changed_thresholds())

    def top_actions(self, scores: np.ndarray, k: int) -> dict[str, float]:
        """The k most probable actions of scores [K], best first."""
        order = [i for i in np.argsort(-scores) if i not in self.ignore]
        return {self.classes[i]: float(scores[i]) for i in order[:k]}

    def __iter__(self) -> Iterator[Detection]:
        if self._started:
            raise RuntimeError('a detector runs once; with_source() makes '
                               'another one')
        self._started = True
        reader = threading.Thread(
            target=self._read, name=f'reads {self.source.name}', daemon=True)
        reader.start()
        try:
            for step in self._queue:
                yield self._detect(step)
        except Exception as error:
            self._failure = f'failed: {error}'
            raise
        finally:
            self.stop()
            # One that hangs is left behind.
            reader.join(STOP_SECONDS)
            self.events.write(self._end_actions())
            self.events.close()

    def stop(self) -> None:
        """End soon; from any thread."""
        self.source.stop()
        self._queue.close()

    def _read(self) -> None:
        try:
            for frame in self.source:
                for step in self._steps.add(frame):
                    if not self._queue.put(step):
                        return
        except Exception as error:
            # Raised where the queue is read.
            self._queue.close(error)
        else:
            self._queue.close()

    def _detect(self, step: Step) -> Detection:
        events = self._skip(step.number - self._next_step)
        features, seconds = self._extract(step)
        start = time.perf_counter()
        logits = self.session.push(features)
        scores = self.model.cls_head.probabilities(
            dict(action=logits['action']))['action'].cpu().numpy()
        seconds['head'] = time.perf_counter() - start
        seconds['total'] = sum(seconds.values())
        seconds['lag'] = time.monotonic() - step.frames[-1].at
        self.latency.add(seconds)
        self._next_step = step.number + 1
        self._num_done += 1
        end = self._next_step / self.rate
        events += self._event_detector.update(
            step.number / self.rate, end, scores[0])
        self.events.write(events)
        return Detection(step.number, end, scores[0], scores[1:], events,
                         [frame.image for frame in step.new_frames], seconds)

    def _extract(self, step: Step
                 ) -> tuple[dict[str, Tensor], dict[str, float]]:
        """The features of a step, and the seconds they took, by stage."""
        features = {}
        seconds = dict(
            decode=sum(frame.decode_time for frame in step.new_frames),
            flow=0., features=0.)
        for name, extractor in self.extractors.items():
            indices = extractor.frame_indices(
                step.number, self.source.fps, self.rate)
            start = time.perf_counter()
            clip = extractor.clip(step.images_at(indices))
            middle = time.perf_counter()
            features[name] = extractor.features([clip])[0]
            seconds['flow'] += middle - start
            seconds['features'] += time.perf_counter() - middle
        return features, seconds

    def _skip(self, num_steps: int) -> list[dict]:
        """Skip steps that were dropped or missing; returns ended actions."""
        if num_steps >= self._live_model.memory_steps:
            self.session.reset()
            return self._end_actions()
        if num_steps:
            self.session.skip(num_steps)
        return []

    def _end_actions(self) -> list[dict]:
        return self._event_detector.finish(self._next_step / self.rate)
