# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Events of scores, and predicted and true segments as arrays."""
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...datasets.annotations.video_segment import VideoSegment
from ...online.event_detector import EventDetector
from ...online.frame_scores import FrameScores


@dataclass(frozen=True)
class Events:
    """N segments, in the given order.

    Attributes:
        video: Index of the video, int [N].
        label: Index of the class, int [N].
        start: Start in seconds, [N].
        end: End in seconds, [N]; nan if it is unknown.
        score: Score, [N]; nan if there is none.
    """
    video: np.ndarray
    label: np.ndarray
    start: np.ndarray
    end: np.ndarray
    score: np.ndarray

    def __len__(self) -> int:
        return len(self.video)

    def overlaps(self, other: 'Events') -> np.ndarray:
        """Return the overlap with each of G other segments, [N, G]."""
        return overlap(self.start[:, None], self.end[:, None], other.start,
                       other.end)

    def select(self, index: np.ndarray) -> 'Events':
        """Return the segments at indices, or where a mask [N] is True."""
        return Events(*(getattr(self, name)[index]
                        for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class LabeledEvents:
    """Predicted and true segments of the same videos.

    Attributes:
        videos: Names of the V videos.
        classes: Names of the K classes, sorted.
        predicted: Predicted segments.
        true: Annotated segments.
    """
    videos: list[str]
    classes: list[str]
    predicted: Events
    true: Events

    def groups(self) -> Iterator[tuple[tuple[int, int], np.ndarray,
                                       np.ndarray]]:
        """Yield each video and class with at least one segment.

        Yields:
            Video and class, and the indices of the predicted and of the true
            segments.
        """
        size = len(self.videos)
        keys = [events.label * size + events.video
                for events in (self.predicted, self.true)]
        for key in np.unique(np.concatenate(keys)):
            label, video = divmod(int(key), size)
            yield (video, label), *(
                np.flatnonzero(each == key) for each in keys)


class VideoMetric:
    """Metric of V videos, each of which may count several times."""
    num_videos: int

    def values(self, weights: np.ndarray | None = None) -> dict[str, float]:
        """Return the values by name; nan where they are undefined.

        Args:
            weights: Number of times that each video counts, [V]. A video that
                counts twice equals two videos with the same segments.
                Defaults to once.
        """
        return self._values(self._once() if weights is None else weights)

    def _once(self) -> np.ndarray:
        return np.ones(self.num_videos, int)

    @staticmethod
    def _sums(weights: np.ndarray, *numbers: np.ndarray) -> list[np.ndarray]:
        """Add the numbers of all videos, [V, *] each."""
        return [np.tensordot(weights, each, 1) for each in numbers]


def label_events(predictions: Sequence[VideoSegment],
                 truth: Sequence[VideoSegment],
                 videos: Sequence[str] | None = None) -> LabeledEvents:
    """Convert lists of segments to arrays.

    Args:
        predictions: Predicted segments.
        truth: Annotated segments.
        videos: Names of the videos to evaluate; other videos are left out.
            Videos without segments matter for false alarms. Defaults to all
            videos of the segments.

    Raises:
        ValueError: If a segment lacks a class, starts before 0 or ends before
            its start.
    """
    if videos is None:
        videos = sorted({one.video for one in [*truth, *predictions]})
    number = {name: i for i, name in enumerate(videos)}
    predictions, truth = ([one for one in each if one.video in number]
                          for each in (predictions, truth))
    for one in [*predictions, *truth]:
        if 'action' not in one.labels:
            raise ValueError(f'{one.where}: a segment must have a class '
                             f'(action), got {one.labels}')
        if not one.start >= 0 or one.end < one.start:
            raise ValueError(f'{one.where}: a segment must have 0 <= start <= '
                             f'end, got {one.start:g} to {one.end:g} s')
    classes = sorted({one.label for one in [*truth, *predictions]})
    index = {name: i for i, name in enumerate(classes)}

    def arrays(segments: Sequence[VideoSegment]) -> Events:
        return Events(
            np.array([number[one.video] for one in segments], int),
            np.array([index[one.label] for one in segments], int),
            np.array([one.start for one in segments], float),
            np.array([one.end for one in segments], float),
            np.array([math.nan if one.score is None else one.score
                      for one in segments], float))

    return LabeledEvents(list(videos), classes, arrays(predictions),
                         arrays(truth))


def check_ends(events: LabeledEvents) -> None:
    """Raise a ``ValueError`` if the end of a segment is unknown."""
    for name in 'predicted', 'true':
        unknown = int(np.isnan(getattr(events, name).end).sum())
        if unknown:
            raise ValueError(f'{name} segments must have ends, and {unknown} '
                             'lack them; point metrics, such as StartAP, work '
                             'without ends')


def meet(start: np.ndarray, end: np.ndarray, other_start: np.ndarray,
         other_end: np.ndarray) -> np.ndarray:
    """Return which segments share more than a boundary or start together."""
    return ((start < other_end) & (other_start < end)) | (start == other_start)


def overlap(start: np.ndarray, end: np.ndarray, other_start: np.ndarray,
            other_end: np.ndarray) -> np.ndarray:
    """Compute the temporal intersection over union of segments.

    The arrays are broadcast. A segment without length has overlap 0.
    """
    inside = np.maximum(
        0, np.minimum(end, other_end) - np.maximum(start, other_start))
    union = (other_end - other_start) + (end - start) - inside
    return np.divide(inside, union, out=np.zeros_like(inside),
                     where=inside > 0)


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
