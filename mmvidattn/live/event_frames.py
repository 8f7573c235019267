# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pictures of recent events for the page."""
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Seconds before the start and after the end of an event.
BEFORE, AFTER = 2., 1.
# Seconds of pictures to keep for an event that is reported later.
RECENT = 10.
# Maximum number of pictures of an event. Longer events have fewer per second.
MAX_FRAMES = 32
# Maximum number of events, and maximum bytes of all their pictures.
MAX_CLIPS, MAX_BYTES = 200, 2 ** 25


@dataclass
class _Clip:
    end: float = float('inf')
    frames: list[tuple[float, bytes]] = field(default_factory=list)
    size: int = 0
    count: int = 0
    every: int = 1

    def add(self, time: float, picture: bytes) -> None:
        if time > self.end:
            return
        if self.count % self.every == 0:
            self.frames.append((time, picture))
            self.size += len(picture)
        self.count += 1
        if len(self.frames) > MAX_FRAMES:
            self.frames = self.frames[::2]
            self.size = sum(len(picture) for _, picture in self.frames)
            self.every *= 2


class EventFrames:
    """Storage of pictures of the latest events of a source, limited in size.

    An event has one picture per step, from ``BEFORE`` seconds before its start
    to ``AFTER`` seconds after its end. Pictures of a long event are thinned
    out evenly.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, bytes]] = deque()
        self._clips: dict[tuple[int, float], _Clip] = {}

    def add(self, time: float, picture: bytes,
            events: Sequence[Mapping]) -> None:
        """Add the picture and the events of a step.

        Args:
            time: End of the step in seconds, later than the previous one.
            picture: Picture in any format.
            events: Events of :class:`EventDetector`.
        """
        for clip in self._clips.values():
            clip.add(time, picture)
        self._recent.append((time, picture))
        while self._recent[0][0] < time - RECENT:
            self._recent.popleft()
        for event in events:
            key = event['index'], event['start']
            if key not in self._clips:
                clip = self._clips[key] = _Clip()
                for earlier, image in self._recent:
                    if earlier > event['start'] - BEFORE:
                        clip.add(earlier, image)
            if event['event'] == 'end':
                self._clips[key].end = event['end'] + AFTER
        while len(self._clips) > MAX_CLIPS or self.size > MAX_BYTES:
            del self._clips[next(iter(self._clips))]

    @property
    def size(self) -> int:
        """Bytes of all pictures; a picture of two events counts twice."""
        return sum(clip.size for clip in self._clips.values())

    def get(self, index: int, start: float) -> list[tuple[float, bytes]]:
        """Return times and pictures of an event, oldest first.

        The arguments are the index of its class, and its start. An unknown or
        old event has no pictures.
        """
        return list(self._clips.get((index, start), _Clip()).frames)
