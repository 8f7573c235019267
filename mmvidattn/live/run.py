# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run of a live model on one source, and a detector from a config."""
import inspect
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..sources import Source, open_source
from ..utils.arguments import Count, Positive, check_arguments
from .live_models import BaseLiveModel, load_live_model
from .run_files import EventLog, StateFile, read_events
from .sinks import Sink, SinkThread
from .step_reader import Detection, Step, StepReader

# Seconds after which the computation of a step is considered stuck.
STUCK_SECONDS = 60.
# Stages as in the paper's Table 7. `total` is the sum of the stages before
# it, and `lag` is the time from a step's last frame to its scores.
STAGES = 'decode', 'flow', 'features', 'head', 'total', 'lag'
# Number of latest steps in a report.
WINDOW = 1000


@dataclass
class Progress:
    """Progress of a run; a part of its saved state.

    Attributes:
        next_step: Number of the step after the last one.
        num_done: Number of scored steps.
        num_skipped: Number of dropped or missing steps.
        next_frame: Index of the frame after the last step.
        clock: Arrival time of the last step's last frame, in seconds since
            1970.
        ended: True if the source has ended.
    """
    next_step: int = 0
    num_done: int = 0
    num_skipped: int = 0
    next_frame: int = 0
    clock: float = field(default_factory=time.time)
    ended: bool = False


@check_arguments
class StreamRun:
    """Live detection in one source, for a single iteration.

    Iterating over a run yields a :class:`Detection` for each step, an interval
    of the source, that has frames. Before a gap of more than ``max_gap``
    seconds of the model, or a jump back in the time of the source, actions
    end. The state starts anew after it, also after a gap as long as the
    memory.

    Args:
        model: Model, which any number of runs may share.
        source: Source, or an argument of :func:`open_source`.
        events_file: File to which each event is written immediately, in JSON
            Lines format.
        realtime: Play a recording in real time, like a live source.
        fps: Frames per second; see :func:`open_source`.
        queue_size: Maximum number of waiting steps.
        state_file: File in which the state is saved every ``state_seconds``.
            If this run is stopped or killed, another run can resume from the
            file. A recording resumes at the next frame, and its events file is
            byte-equal in the end. A live source skips the frames in between.
        state_seconds: Seconds between saves of the state.

    Raises:
        ValueError: If the source cannot be opened or is not suitable for the
            model, or the state belongs to another source or model; while
            iterating, if the source fails or hangs.

    Attributes:
        model, extractors, classes, ignore: Attributes of the
            :class:`BaseLiveModel`.
        rate: Steps per second.
        source: Source of frames.
        session: :class:`mmvidattn.online.StreamSession` or
            :class:`mmvidattn.SlidingClassifier` of the source.
        failure: Error that ended the run; '' if there was none.
        event_detector: Detector of the starts and ends of actions.
        events: Latest events (:class:`EventLog`).
        peaks: Highest score of each class since this run started, [K].
        log: Function that gets a line about each long gap and each new error
            of a sink. Defaults to ``warnings.warn``.
        resumed: Description of the state that the run resumed from; '' if
            there was none.
    """

    def __init__(self, model: BaseLiveModel,
                 source: int | str | Path | Source,
                 events_file: str | Path | None = None,
                 *,
                 realtime: bool = False,
                 fps: float | None = None,
                 queue_size: Count = 4,
                 state_file: str | Path | None = None,
                 state_seconds: Positive = 10.) -> None:
        self._live_model = model
        self.model = model.model
        self.extractors = model.extractors
        self.classes = model.classes
        self.ignore = model.ignore
        self.source = open_source(source, realtime, fps)
        self._scorer = model.new_scorer(self.source.fps)
        self.session = self._scorer.session
        self.rate = self._scorer.rate
        self.event_detector = model.new_event_detector()
        self._reader = StepReader(
            self.source, self.rate, self._scorer.reach, queue_size,
            model.max_gap)
        self._progress = Progress()
        self._seconds: dict[str, deque[float]] = {
            stage: deque(maxlen=WINDOW) for stage in STAGES}
        self.failure = ''
        self._has_scored = False
        self._busy_since: float | None = None
        self.peaks = np.zeros(len(self.classes), np.float32)
        self._sinks: list[SinkThread] = []
        self._started = self._stopped = False
        self.log: Callable[[str], None] = warnings.warn
        self.resumed = ''
        self._state_file, events_size = None, None
        if state_file is not None:
            self._state_file = StateFile(
                state_file, state_seconds, source=self.source.name,
                fps=self.source.fps, rate=self.rate,
                classes=list(self.classes))
            state = self._state_file.read()
            if state is not None:
                events_size = self._resume(state, events_file)
        # Open the file last, so that a wrong argument does not create a file.
        self.events = EventLog(events_file, events_size)
        if self._state_file is not None:
            self._state_file.write(self._state())

    def with_source(self, source: int | str | Path | Source,
                    **options: Any) -> 'StreamRun':
        """Create a run of the same model on another source.

        ``options`` are the other arguments of :class:`StreamRun`.
        """
        other = StreamRun(self._live_model, source, **{
            'queue_size': self._reader.queue.size, **options})
        other.log = self.log
        return other

    @property
    def dropped(self) -> int:
        """Number of steps dropped because the machine was too slow."""
        return self._reader.queue.dropped

    @property
    def missing(self) -> int:
        """Number of steps without a frame."""
        return self._reader.steps.missing

    @property
    def is_ready(self) -> bool:
        """True if the source gives frames, and its first step has been scored.

        Also true after an end without an error.
        """
        return not self.failure and (self._progress.ended or (
            self._has_scored and self.source.status in ('running', 'ended')))

    @property
    def problem(self) -> str:
        """Reason why the run cannot continue; '' if it can."""
        busy_since = self._busy_since
        if not self.failure and busy_since and (
                time.monotonic() - busy_since > STUCK_SECONDS):
            return f'a step has taken longer than {STUCK_SECONDS:g} s'
        return self.failure

    def add_sink(self, sink: Sink) -> None:
        """Add a sink that gets the detections in a separate thread.

        A sink that is too slow for a live source loses the oldest items. A
        recording waits for ``lossless`` sinks. The end of the run closes it.
        """
        self._sinks.append(SinkThread(
            sink, not (sink.lossless and not self.source.live), self.log))

    def report(self) -> dict[str, Any]:
        """Return the status of the source, counts and latency until now.

        ``bad_frames`` counts empty frames, and steps with non-finite features.
        ``lost`` has the lost items by sink, and ``latency`` the ``median`` and
        ``p95`` of each stage of the latest steps, in milliseconds. Only live
        sources have a lag: frames of a file wait for the steps before them.
        """
        lost = Counter()
        for thread in self._sinks:
            lost[thread.sink.name] += thread.dropped + thread.failed
        return dict(
            name=self.source.name, status=self.failure or self.source.status,
            rate=self.rate, steps=self._progress.num_done,
            dropped=self.dropped, missing=self.missing,
            bad_frames=self._reader.steps.bad_frames + self._scorer.num_bad,
            lost=dict(+lost),
            latency={
                stage: dict(median=1000 * float(np.median(values)),
                            p95=1000 * float(np.quantile(values, 0.95)))
                for stage, values in self._seconds.items()
                if values and (stage != 'lag' or self.source.live)})

    def top_actions(self, scores: np.ndarray, k: int) -> dict[str, float]:
        """Return the k most probable actions of scores [K], best first."""
        order = [i for i in np.argsort(-scores) if i not in self.ignore]
        return {self.classes[i]: float(scores[i]) for i in order[:k]}

    def __iter__(self) -> Iterator[Detection]:
        if self._started:
            raise RuntimeError('a run can be iterated over once; create '
                               'another one with with_source()')
        self._started = True
        if self._progress.ended:
            self.source.status = 'ended'
            self._close()
            return
        try:
            with closing(iter(self._reader)) as steps:
                for step in steps:
                    self._busy_since = time.monotonic()
                    detection = self._detect(step)
                    self._has_scored, self._busy_since = True, None
                    for thread in self._sinks:
                        thread.put(thread.sink.select(detection))
                    yield detection
                    if self._state_file is not None:
                        self._state_file.write_if_due(self._state)
            self._progress.ended = not self._stopped
        except Exception as error:
            self.failure = f'failed: {error}'
            raise
        finally:
            self._finish()

    def stop(self) -> None:
        """Request the end of the run; may be called from any thread."""
        self._stopped = True
        self._reader.stop()

    def _detect(self, step: Step) -> Detection:
        progress = self._progress
        # 1. Skip the steps that were dropped or missing.
        events = []
        num_skipped = step.number - progress.next_step
        progress.num_skipped += num_skipped
        if num_skipped > self._scorer.max_skip or step.jumped_back:
            events = self._end_actions()
            self.session.reset()
            self._report_gap(step, num_skipped)
        elif num_skipped:
            self._scorer.skip(num_skipped)
        # 2. Score the step, and measure.
        scores, seconds = self._scorer.scores(
            step, has_next=len(self._reader.queue) > 0)
        decode = sum(frame.decode_time for frame in step.new_frames)
        seconds = dict(decode=decode, **seconds)
        seconds['total'] = sum(seconds.values())
        seconds['lag'] = time.monotonic() - step.frames[-1].at
        for stage, value in seconds.items():
            self._seconds[stage].append(value)
        # 3. Advance.
        progress.next_step = step.number + 1
        progress.next_frame = step.frames[-1].index + 1
        progress.clock = time.time() - seconds['lag']
        progress.num_done += 1
        self.peaks = np.fmax(self.peaks, scores[0])
        # 4. Detect events, and write them.
        end = self._time_of(progress.next_step)
        events += self.event_detector.update(
            self._time_of(step.number), end, scores[0])
        self.events.write(events)
        return Detection(step.number, end, scores[0], scores[1:], events,
                         [frame.image for frame in step.new_frames], seconds,
                         self.event_detector.active_since)

    def _report_gap(self, step: Step, num_skipped: int) -> None:
        seconds = num_skipped / self.rate
        place = f'{self.source.name}: '
        start = self._time_of(self._progress.next_step)
        if step.jumped_back:
            self.log(f'{place}time stamps jumped back at {start:.2f} s')
        elif self._progress.num_done and seconds > self._live_model.max_gap:
            self.log(f'{place}gap of {seconds:.1f} s without frames at '
                     f'{start:.2f} s')

    def _end_actions(self) -> list[dict]:
        return self.event_detector.finish(
            self._time_of(self._progress.next_step))

    def _time_of(self, step: int) -> float:
        """Return the start of a step in seconds, without rounding noise."""
        return round(step / self.rate, 9)

    def _finish(self) -> None:
        """End the actions, unless another run can continue them."""
        can_resume = self._state_file is not None and not (
            self._progress.ended or self.failure)
        events = [] if can_resume else self._end_actions()
        try:
            self.events.write(events)
            # After a failure, keep the last saved state.
            if self._state_file is not None and not self.failure:
                self._state_file.write(self._state())
        finally:
            self._close(events)

    def _close(self, events: Sequence[dict] = ()) -> None:
        self.events.close()
        for thread in self._sinks:
            thread.put(thread.sink.finish(events))
        for thread in self._sinks:
            thread.close()

    def _state(self) -> dict[str, Any]:
        return dict(
            asdict(self._progress),
            scorer=self._scorer.state_dict(),
            event_detector=self.event_detector.state_dict(),
            dropped=self.dropped,
            events_size=self.events.size)

    def _resume(self, state: Mapping[str, Any],
                events_file: str | Path | None) -> int:
        """Continue from a state. Return the size of its events file."""
        self._scorer.load_state_dict(state['scorer'])
        self.event_detector.load_state_dict(state['event_detector'])
        progress = self._progress = Progress(
            **{part.name: state[part.name] for part in fields(Progress)})
        at = f'at {progress.next_step / self.rate:.2f} s'
        size = state['events_size']
        first_frame = self._reader.start_at(
            progress.next_step, state['dropped'],
            max(0, progress.num_skipped - state['dropped']))
        if progress.ended:
            self.resumed = f'had ended {at}'
        elif self.source.recorded:
            # Events after the state are detected again.
            self.source.start_at(first_frame)
            self.resumed = f'resumes {at}'
        else:
            gap = max(0., time.time() - progress.clock)
            self.source.start_at(
                progress.next_frame + round(gap * self.source.fps))
            self.resumed = f'resumes {at}, after a gap of {gap:.1f} s'
            if events_file is not None:
                # A live source cannot repeat the events after the state.
                events, size = read_events(events_file, size)
                self._replay(events)
        return size

    def _replay(self, events: Sequence[Mapping]) -> None:
        """Apply events that were written after the state was saved."""
        for event in events:
            self.event_detector.replay(event)
        step = round(events[-1]['time'] * self.rate) if events else 0
        number = step - self._progress.next_step
        if number > 0:
            # These steps were scored after the state was saved.
            self._progress.num_skipped += number
            if number > self._scorer.max_skip:
                self.session.reset()
            else:
                self._scorer.skip(number)
            self._progress.next_step = step
            self._reader.start_at(step, self.dropped, self.missing + number)


class OnlineDetector(StreamRun):
    """Live detector for one source::

        detector = OnlineDetector('testra_tiny_videos', 'testra.pth', 0)
        for detection in detector:
            print(detection.time, detection.scores)

    The model is an online detector of features or frames, or a clip model
    whose window slides over the source.

    Args:
        config: Config of :class:`FeatureStreamModel`,
            :class:`LiveVideoModel` or :class:`LiveClipModel`, or a bundle
            (:func:`mmvidattn.apis.save_bundle`).
        checkpoint: Weights. Defaults to the weights of a bundle, or else to
            random ones.
        source: Source, or an argument of :func:`open_source`. Required; pass
            it by name after a bundle, ``OnlineDetector('bundle', source=0)``.
        extractors: Extractors of :class:`FeatureStreamModel`.
        **options: Other options of these classes and of :class:`StreamRun`.

    Raises:
        ValueError: If the config, the checkpoint, the extractors and the
            source do not match; while iterating, if the source fails.
    """

    def __init__(self, config: str | Path,
                 checkpoint: str | Path | None = None,
                 source: int | str | Path | Source | None = None,
                 extractors: Mapping[str, dict] | None = None,
                 **options: Any) -> None:
        if source is None:
            raise ValueError('source must be a video, a camera or a stream, '
                             'got None')
        names = inspect.signature(StreamRun).parameters
        run_options = {k: options.pop(k) for k in names if k in options}
        # Open the source before building the model: it fails most often.
        source = open_source(source, run_options.pop('realtime', False),
                             run_options.pop('fps', None))
        model = load_live_model(config, checkpoint, extractors=extractors,
                                **options)
        super().__init__(model, source, **run_options)
