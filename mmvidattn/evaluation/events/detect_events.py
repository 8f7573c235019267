# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Events of the scores of videos, and targets of their steps."""
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...datasets.annotations.video_segment import VideoSegment, steps_of
from ...online.event_detector import EventDetector
from ...online.frame_scores import FrameScores


def detect_events(videos: Mapping[str, FrameScores], classes: Sequence[str],
                  ignore: Container[int] = (0, ),
                  **options: Any) -> list[VideoSegment]:
    """Run the live :class:`EventDetector` over the scores of videos.

    Args:
        videos: :class:`FrameScores` of each video by name.
        classes: Names of the K classes.
        ignore: Indices of classes that are not actions.
        **options: Other arguments of :class:`EventDetector`.

    Returns:
        Segments. The score is the highest (smoothed) score of the event.
    """
    detected = []
    for video, (rate, scores) in videos.items():
        detector = EventDetector(classes, ignore, **options)
        events = []
        for t, row in enumerate(scores):
            events += detector.update(t / rate, (t + 1) / rate, row)
        events += detector.finish(len(scores) / rate)
        detected += [
            VideoSegment(f'{video} {event["id"]}', video, event['start'],
                         event['end'], dict(action=event['class']),
                         f'events of {video}', score=event['peak'])
            for event in events if event['event'] == 'end']
    return detected


def step_targets(segments: Iterable[VideoSegment],
                 videos: Mapping[str, FrameScores], classes: Sequence[str]
                 ) -> dict[str, np.ndarray]:
    """Return which classes each step shows, 0 or 1, [T, K] by video.

    A segment covers the steps from floor(start * rate) to ceil(end * rate) -
    1.
    """
    targets = {video: np.zeros(scores.shape, np.float32)
               for video, (_, scores) in videos.items()}
    number = {name: i for i, name in enumerate(classes)}
    for one in segments:
        label = number.get(str(one.labels.get('action')))
        if one.video in videos and label is not None:
            first, stop = steps_of(one.start, one.end, videos[one.video].rate)
            targets[one.video][first:stop, label] = 1
    return targets
