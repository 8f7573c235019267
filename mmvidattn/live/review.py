# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Page that shows detected events of video files, to be marked."""
import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..datasets.annotations.video_segment import VideoSegment
from ..sources import open_source
from .latency import Latency
from .marks import is_time
from .server import EVENT_SIDE, LivePage, encode_image, encode_text

# Seconds of the video around an event, and maximum seconds of an event.
MARGIN, LONGEST = 2., 60.
# Maximum number of pictures of an event. Longer events have fewer per second.
MAX_PICTURES = 64


class ReviewRun:
    """Detected events of a video file, for a page that shows them.

    It has the attributes and methods of :class:`mmvidattn.live.run.Run` that
    :class:`LivePage` uses.

    Args:
        path: Video.
        duration: Its length in seconds.
        detected: Detected events.
        annotated: Annotated events, shown for comparison.
        classes: Class names.
    """
    rate, ignore, began = 1., frozenset(), None
    health = SimpleNamespace(problem='', is_ready=True, is_up=True)

    def __init__(self, path: Path, duration: float,
                 detected: Sequence[VideoSegment],
                 annotated: Sequence[VideoSegment],
                 classes: Sequence[str]) -> None:
        self.path, self.duration, self.classes = path, duration, classes
        self.latency = Latency()
        self.event_counts: Counter[tuple[str, str]] = Counter()
        self.events = SimpleNamespace(recent=[
            self._event(one) for one in detected])
        self.annotated = [self._event(one) for one in annotated]

    def _event(self, one: VideoSegment) -> dict[str, Any]:
        name = one.labels['action']
        event = {'event': 'end', 'class': name, 'start': one.start,
                 'index': self.classes.index(name), 'end': one.end}
        return event if one.score is None else event | dict(peak=one.score)

    def report(self) -> dict[str, Any]:
        """Return the report of a run that has ended."""
        return dict(name=str(self.path), status='ended', rate=self.rate,
                    steps=0, dropped=0, missing=0, bad_frames=0, lost={},
                    latency={})

    def sink_losses(self) -> Counter[str]:
        """Return the number of lost items: none."""
        return Counter()

    def thresholds(self) -> dict[str, Any]:
        """Return thresholds, which this page does not show."""
        return dict(on=.5, off=.3, changed={}, tuned={})

    def set_threshold(self, name: str, on: float | None) -> None:
        """Refuse a threshold, because the events are already detected."""
        raise ValueError(f'the events of {self.path} have no thresholds')

    def pictures(self, start: float, end: float) -> list[tuple[float, str]]:
        """Return times and pictures around an event, oldest first.

        Args:
            start: First second of the event.
            end: Last second of the event. Pictures end ``LONGEST`` seconds
                after ``start``.

        Returns:
            Pictures as JPEG in Base64; an empty list if the video cannot be
            read there.
        """
        video = open_source(self.path)
        first, last = (round(time * video.fps) for time in (
            max(0., start - MARGIN), min(end, start + LONGEST) + MARGIN))
        every = math.ceil((last - first + 1) / MAX_PICTURES)
        video.start_at(first)
        found = []
        try:
            for frame in video:
                if frame.index > last:
                    break
                if (frame.index - first) % every == 0:
                    found.append((frame.index / video.fps, encode_text(
                        encode_image(frame.image, EVENT_SIDE))))
        except ValueError:
            # The file may be damaged after these frames.
            pass
        return found


class ReviewPage(LivePage):
    """Page that shows the detected events of video files, to be marked.

    It also shows the annotated events, and the video at any time. It takes
    the arguments of :class:`LivePage`, with a :class:`ReviewRun` for each
    video as ``runs``.
    """

    def _hello(self) -> dict:
        hello = super()._hello()
        for run, source in zip(self._runs, hello['sources']):
            source |= dict(
                length=run.duration, annotated=run.annotated, past=[
                    dict(time=time, scores={}) for time in (0, run.duration)])
        return dict(hello, review=True)

    async def _clip(self, source: int, message: dict) -> dict:
        """Return the pictures of the requested seconds."""
        start, end = message.get('start'), message.get('end')
        if not is_time(start) or not is_time(end):
            raise ValueError('start and end must be numbers, got '
                             f'{start!r} and {end!r}')
        pictures = await asyncio.to_thread(
            self._runs[source].pictures, start, end)
        return dict(
            type='clip', source=source, index=message.get('index'),
            start=start, times=[time for time, _ in pictures],
            frames=[picture for _, picture in pictures], video='')
