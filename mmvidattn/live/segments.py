# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Actions in a complete video, from the events of a stream."""
import numpy as np

from ..apis.sliding import SlidingClassifier
from ..datasets.annotations.video_segment import VideoSegment
from ..online.event_detector import EventDetector
from ..sources import MAX_GAP
from .run import StreamRun


def score_steps(run: StreamRun) -> np.ndarray:
    """Return the scores of a video's steps, [T, K].

    A step without frames has the scores of the next step, or 0 in a gap of
    more than 10 seconds. The scores of a clip model belong to the middle of
    its window.
    """
    scores: list[np.ndarray] = []
    for detection in run:
        missing = detection.step - len(scores)
        is_gap = missing > MAX_GAP * run.rate
        scores += [detection.scores * (not is_gap)] * missing
        scores.append(detection.scores)
    if not scores:
        return np.zeros((0, len(run.classes)), np.float32)
    steps = np.arange(len(scores))
    session = run.session
    if isinstance(session, SlidingClassifier):
        # The window of a step ends with it; use the one around it instead.
        later = round((session.window_frames / session.stride_frames - 1) / 2)
        steps = np.minimum(steps + later, len(scores) - 1)
    return np.stack(scores)[steps]


def find_segments(run: StreamRun, detector: EventDetector,
                  name: str) -> list[VideoSegment]:
    """Return the actions of a video, each with its highest score.

    ``run`` reads the video ``name``; ``detector`` is a new one of its model.
    """
    scores = score_steps(run)
    events = []
    for t, row in enumerate(scores):
        events += detector.update(t / run.rate, (t + 1) / run.rate, row)
    events += detector.finish(len(scores) / run.rate)
    return [
        VideoSegment(f'event_{name}_{event["id"]}', name, event['start'],
                     event['end'], dict(action=event['class']),
                     f'events of {name}', score=event['peak'])
        for event in events if event['event'] == 'end']
