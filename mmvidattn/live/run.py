# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection in one source."""
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.checks import check_positive
from .clip_model import LiveClipModel
from .events import EventLog, read_events
from .latency import Latency
from .model import LiveModel
from .run_state import read_state, write_state
from .sink import Sink, SinkThread
from .sources import Source, open_source
from .step_queue import StepQueue
from .steps import Step, StepMaker

# Seconds that a source has to end after it was told to.
STOP_SECONDS = 5.
# A step that takes longer than this hangs.
STUCK_SECONDS = 60.
# Seconds that the last step of a duration may come late.
GRACE_SECONDS = 1.


@dataclass(frozen=True)
class Detection:
    """The result of a step.

    Attributes:
        step: Its number, from 0. Numbers that are left out were dropped, or
            had no frames.
        time: Its end, in seconds of the source.
        scores: Probabilities of the classes now, [K]; 0 of the class that
            training ignored.
        anticipated: Those of the steps to come, nearest first, [A, K]; none,
            A = 0, of a model of clips.
        events: Actions that started or ended (:class:`EventDetector`).
        images: The frames of the step itself, RGB ``(H, W, 3)``, oldest
            first.
        seconds: Duration of each stage (:class:`Latency`).
        active_since: When the first of the actions that go on has started,
            reported or not; None if there are none.
    """
    step: int
    time: float
    scores: np.ndarray
    anticipated: np.ndarray
    events: Sequence[dict]
    images: Sequence[np.ndarray]
    seconds: Mapping[str, float]
    active_since: float | None = None


class Run:
    """One pass of a model over one source; iterate over it once.

    A thread of its own reads frames and cuts them into steps at the rate of
    the model, which gives each step its scores: see :class:`LiveModel` and
    :class:`LiveClipModel`.

    Between the two threads is a queue of ``queue_size`` steps. When the
    machine is too slow for a live source, the oldest steps are dropped and
    counted; a recording waits. The session skips the steps that are missing;
    after a gap as long as its memory it starts again.

    Args:
        model: Of feature streams or of clips; shared by all its runs.
        source: See :func:`open_source`, as for ``realtime`` and ``fps``.
        events_file: File to write events to, as JSON Lines, as they happen.
        realtime: Play a recording at its own speed, as if it were live.
        fps: Frames a second.
        queue_size: Steps that may wait.
        state_file: Where to keep a state, every ``state_seconds``, by which
            another run goes on after this one was stopped or killed. Of a
            recording it goes on at the next frame, and ends with the same
            events, to the byte. Of a live source it skips the frames of the
            time in between.
        state_seconds: Seconds from one state to the next.
        duration: Seconds of the source after which it ends.

    Raises:
        ValueError: If the source cannot be opened or does not fit the model,
            or the state is one of another source or model; while it runs, if
            the source breaks or hangs.

    Attributes:
        classes: See :class:`LiveModel`, as for ``ignore``, ``model`` and
            ``extractors``, of which a model of clips has none.
        rate: Steps a second.
        source: See :func:`open_source`.
        session: The stream's :class:`mmvidattn.online.StreamSession`, or its
            :class:`mmvidattn.SlidingClassifier`.
        latency: See :class:`Latency`.
        events: The latest ones (:class:`EventLog`).
        event_counts: How many of each kind and class there were.
        resumed: Where it goes on, in words, if there was a state.
    """

    def __init__(self,
                 model: LiveModel | LiveClipModel,
                 source: int | str | Path | Source,
                 events_file: str | Path | None = None,
                 realtime: bool = False,
                 fps: float | None = None,
                 queue_size: int = 4,
                 state_file: str | Path | None = None,
                 state_seconds: float = 10.,
                 duration: float | None = None) -> None:
        check_positive(state_seconds=state_seconds)
        if duration is not None:
            check_positive(duration=duration)
        self._live_model = model
        self.model = model.model
        self.extractors = model.extractors
        self.classes = model.classes
        self.ignore = model.ignore
        self.source = open_source(source, realtime, fps,
                                  model.video_backend)
        self._scorer = model.new_scorer(self.source.fps)
        self.session = self._scorer.session
        self.rate = self._scorer.rate
        self.latency = Latency()
        self._event_detector = model.new_event_detector()
        self._steps = StepMaker(
            self.source.fps, self.rate, self._scorer.reach)
        self._queue = StepQueue(queue_size, drop=self.source.live,
                                check=self._check)
        self._next_step = self._num_done = self._num_skipped = 0
        # The frame after the last step, and when that came, by the clock.
        self._next_frame, self._clock = 0, time.time()
        self._started = self._stopped = self._ended = False
        self._has_scored = False
        self._failure = ''
        self._busy_since: float | None = None
        self._sinks: list[SinkThread] = []
        self._duration = duration
        self.event_counts: Counter[tuple[str, str]] = Counter()
        self.resumed = ''
        self._state_file = state_file and Path(state_file)
        self._state_seconds = state_seconds
        # What a state must be of.
        self._about = dict(source=self.source.name, fps=self.source.fps,
                           rate=self.rate, classes=list(self.classes))
        events_end = None
        if state_file is not None:
            state = read_state(self._state_file, self._about)
            if state is not None:
                events_end = self._resume(state, events_file)
        # Last, so that a mistake leaves no file.
        self.events = EventLog(events_file, events_end)
        if state_file is not None:
            self._save()

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

    @property
    def bad_frames(self) -> int:
        """Empty frames, and steps whose features were not finite."""
        return self._steps.bad_frames + self._scorer.num_bad

    @property
    def is_up(self) -> bool:
        """Whether the source gives frames, or has ended as it should."""
        return not self._failure and (
            self._ended or self.source.status in ('running', 'ended'))

    @property
    def is_ready(self) -> bool:
        """Whether it is up, and its first step has been scored."""
        return self.is_up and (self._ended or self._has_scored)

    @property
    def problem(self) -> str:
        """Why this run will not go on, if so."""
        if self._failure:
            return self._failure
        busy_since = self._busy_since
        if busy_since and time.monotonic() - busy_since > STUCK_SECONDS:
            return f'a step has taken longer than {STUCK_SECONDS:g} s'
        return ''

    def add_sink(self, sink: Sink,
                 log: Callable[[str], None] = warnings.warn) -> None:
        """Give the detections to a sink as well, from a thread of its own.

        What is too slow for a live source loses the oldest ones; a recording
        waits for sinks that are ``lossless``.

        Args:
            sink: It is closed when the run ends.
            log: Called with a line on what it drops and on its errors.
        """
        self._sinks.append(SinkThread(
            sink, not (sink.lossless and not self.source.live), log))

    def report(self) -> dict[str, Any]:
        """The source's status, counts and latency so far."""
        return dict(
            name=self.source.name,
            status=self._failure or self.source.status,
            rate=self.rate,
            steps=self._num_done,
            dropped=self.dropped,
            missing=self.missing,
            bad_frames=self.bad_frames,
            latency=self.latency.report())

    def sink_losses(self) -> Counter[str]:
        """By sink, what it has dropped or failed to take."""
        losses = Counter()
        for sink in self._sinks:
            losses[sink.sink.name] += sink.dropped + sink.failed
        return losses

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
        if self._ended:
            self.source.status = 'ended'
            self._close()
            return
        self._saved_at = time.monotonic()
        self._limit_at = None
        if self._duration is not None and not self.source.recorded:
            begun = self.source.first_frame / self.source.fps
            self._limit_at = time.monotonic() + self._duration - begun
        reader = threading.Thread(
            target=self._read, name=f'reads {self.source.name}', daemon=True)
        reader.start()
        try:
            for step in self._queue:
                detection = self._detect(step)
                for sink in self._sinks:
                    sink.write(detection)
                yield detection
                self._save_now_and_then()
            self._ended = not self._stopped
        except Exception as error:
            self._failure = f'failed: {error}'
            raise
        finally:
            self.source.stop()
            self._queue.close()
            # One that hangs is left behind.
            reader.join(STOP_SECONDS)
            self._finish()

    def stop(self) -> None:
        """End soon; from any thread."""
        self._stopped = True
        self.source.stop()
        self._queue.close()

    def _finish(self) -> None:
        """End the actions, unless another run will go on with them."""
        goes_on = self._state_file is not None and not (
            self._ended or self._failure)
        events = [] if goes_on else self._end_actions()
        try:
            self._write(events)
            # What has failed goes on from an earlier state.
            if self._state_file is not None and not self._failure:
                self._save()
        finally:
            self._close(events)

    def _close(self, events: Sequence[dict] = ()) -> None:
        self.events.close()
        for sink in self._sinks:
            sink.finish(events)
        for sink in self._sinks:
            sink.close()

    def _read(self) -> None:
        end = None
        if self._duration is not None:
            end = round(self._duration * self.source.fps)
        try:
            with closing(iter(self.source)) as frames:
                for frame in frames:
                    if end is not None and frame.index >= end:
                        self.source.status = 'ended'
                        break
                    for step in self._steps.add(frame):
                        if not self._queue.put(step):
                            return
        except Exception as error:
            # Raised where the queue is read.
            self._queue.close(error)
        else:
            self._queue.close()

    def _check(self) -> None:
        """Called while there is no step."""
        if self._limit_at is not None and (
                time.monotonic() > self._limit_at + GRACE_SECONDS):
            self.source.status = 'ended'
            self._queue.close()
            return
        self.source.check_alive()

    def _detect(self, step: Step) -> Detection:
        self._busy_since = time.monotonic()
        events = self._skip(step.number - self._next_step)
        scores, seconds = self._scorer.scores(step)
        decode = sum(frame.decode_time for frame in step.new_frames)
        seconds = dict(decode=decode, **seconds)
        seconds['total'] = sum(seconds.values())
        seconds['lag'] = time.monotonic() - step.frames[-1].at
        self.latency.add(seconds)
        self._next_step = step.number + 1
        self._next_frame = step.frames[-1].index + 1
        self._clock = time.time() - seconds['lag']
        self._num_done += 1
        self._has_scored = True
        end = self._next_step / self.rate
        events += self._event_detector.update(
            step.number / self.rate, end, scores[0])
        self._write(events)
        self._busy_since = None
        return Detection(step.number, end, scores[0], scores[1:], events,
                         [frame.image for frame in step.new_frames], seconds,
                         self._event_detector.active_since)

    def _skip(self, num_steps: int) -> list[dict]:
        """Skip steps that were dropped or missing; returns ended actions."""
        self._num_skipped += num_steps
        if num_steps and not self._scorer.skip(num_steps):
            return self._end_actions()
        return []

    def _end_actions(self) -> list[dict]:
        return self._event_detector.finish(self._next_step / self.rate)

    def _write(self, events: Sequence[dict]) -> None:
        self.event_counts.update(
            (event['event'], event['class']) for event in events)
        self.events.write(events)

    def _save_now_and_then(self) -> None:
        if self._state_file is None or (
                time.monotonic() - self._saved_at < self._state_seconds):
            return
        try:
            self._save()
        except OSError as error:
            # Python shows it once. The state before is still there.
            warnings.warn(f'cannot write {self._state_file}: {error}')
        self._saved_at = time.monotonic()

    def _save(self) -> None:
        write_state(self._state_file, dict(
            self._about,
            scorer=self._scorer.state_dict(),
            event_detector=self._event_detector.state_dict(),
            next_step=self._next_step,
            num_done=self._num_done,
            num_skipped=self._num_skipped,
            dropped=self.dropped,
            events_size=self.events.size,
            next_frame=self._next_frame,
            clock=self._clock,
            ended=self._ended))

    def _resume(self, state: Mapping[str, Any],
                events_file: str | Path | None) -> int:
        """Go on where a state was; returns the size of its events' file."""
        self._scorer.load_state_dict(state['scorer'])
        self._event_detector.load_state_dict(state['event_detector'])
        self._next_step = state['next_step']
        self._num_done = state['num_done']
        self._num_skipped = state['num_skipped']
        self._next_frame, self._clock = state['next_frame'], state['clock']
        self._ended = state['ended']
        self._queue.dropped = state['dropped']
        self._steps.missing = max(0, self._num_skipped - state['dropped'])
        at = f'at {self._next_step / self.rate:.2f} s'
        size = state['events_size']
        first_frame = self._steps.start_at(self._next_step)
        if self._ended:
            self.resumed = f'had ended {at}'
        elif self.source.recorded:
            # What came after the state is made again.
            self.source.start_at(first_frame)
            self.resumed = f'goes on {at}'
        else:
            gap = max(0., time.time() - self._clock)
            self.source.start_at(
                self._next_frame + round(gap * self.source.fps))
            self.resumed = f'goes on {at}, after a gap of {gap:.1f} s'
            if events_file is not None:
                # What came after the state does not come again.
                events, size = read_events(events_file, size)
                for event in events:
                    self._event_detector.replay(event)
                if events:
                    self._pass_to(round(events[-1]['time'] * self.rate))
        return size

    def _pass_to(self, step: int) -> None:
        """Pass over the steps that were scored after the state."""
        number = step - self._next_step
        if number > 0:
            self._num_skipped += number
            self._scorer.skip(number)
            self._next_step = step
            self._steps.missing += number
            self._steps.start_at(step)
