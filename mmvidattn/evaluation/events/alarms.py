# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Detection delay, missed actions and false alarms."""
from collections.abc import Mapping

import numpy as np

from .labeled_events import LabeledEvents, VideoMetric, check_ends, meet


class Alarms(VideoMetric):
    """Recall, delay and false alarms of events, for users who react to them.

    Predicted and annotated segments of one class meet if they share more than
    a boundary, or start at the same time. A prediction that meets no annotated
    segment is a false alarm; several predictions of one action are not. An
    annotated segment that meets no prediction is missed. Otherwise, its delay
    is the start of the first prediction that it meets, minus its own start,
    which is negative if the prediction starts earlier.

    A live detector reports an event ``min_duration`` seconds after its start.
    The values are 'recall', 'false_alarms_per_hour', and the median and the
    90th percentile of the delay in seconds, 'delay_median' and 'delay_p90'.

    Args:
        events: Segments.
        durations: Length of each video in seconds. Defaults to the last end of
            the video's segments.

    Raises:
        ValueError: If a segment lacks an end, or the length of a video is
            unknown.

    Attributes:
        seconds: Length of each video in seconds, [V].
        true: Number of annotated segments, [V, K].
        found: Number of annotated segments that were not missed, [V, K].
        false: Number of false alarms, [V, K].
        delays: Delay in seconds of each segment that was not missed, [N].
        delay_videos: Index of its video, [N].
    """

    def __init__(self, events: LabeledEvents,
                 durations: Mapping[str, float] | None = None) -> None:
        check_ends(events)
        self.num_videos = len(events.videos)
        shape = self.num_videos, len(events.classes)
        if durations is None:
            self.seconds = np.zeros(shape[0])
            for each in events.predicted, events.true:
                np.maximum.at(self.seconds, each.video, each.end)
        else:
            missing = [v for v in events.videos if v not in durations]
            if missing:
                raise ValueError('durations must have all videos, and lacks '
                                 f'{", ".join(missing[:3])}')
            self.seconds = np.array(
                [float(durations[video]) for video in events.videos])
        self.true, self.found, self.false = (
            np.zeros(shape, int) for _ in range(3))
        delays, videos = [np.zeros(0)], [np.zeros(0, int)]
        for group in events.groups():
            place = group.video, group.label
            predicted = events.predicted.select(group.predicted)
            true = events.true.select(group.true)
            meets = meet(predicted.start[:, None], predicted.end[:, None],
                         true.start, true.end)
            found = meets.any(axis=0)
            self.true[place], self.found[place] = len(true), found.sum()
            self.false[place] = (~meets.any(axis=1)).sum()
            first = np.where(meets, predicted.start[:, None], np.inf).min(
                axis=0, initial=np.inf)
            delays.append((first - true.start)[found])
            videos.append(np.full(found.sum(), group.video))
        self.delays = np.concatenate(delays)
        self.delay_videos = np.concatenate(videos)

    def _values(self, weights: np.ndarray) -> dict[str, float]:
        found, true, false, seconds = (
            float(each.sum()) for each in self._sums(
                weights, self.found, self.true, self.false, self.seconds))
        delays = np.repeat(self.delays, weights[self.delay_videos])
        middle, late = (np.percentile(delays, [50, 90]) if len(delays)
                        else (np.nan, np.nan))
        return dict(
            recall=found / true if true else np.nan,
            false_alarms_per_hour=(3600 * false / seconds if seconds
                                   else np.nan),
            delay_median=float(middle), delay_p90=float(late))
