# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pictures of events, for those who look at them later."""
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Seconds before the start and after the end of an event.
BEFORE, AFTER = 2., 1.
# Seconds of pictures that wait for an event: it is reported some time after
# its start.
RECENT = 10.
# Pictures of an event. A longer one has fewer a second.
MAX_FRAMES = 32
# Of all events: their number, and bytes.
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
    """Keeps pictures of the latest events of a source, within bounds.

    There is one a step, from ``BEFORE`` seconds before an event to ``AFTER``
    seconds behind it, thinned out over its whole length where it is long.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, bytes]] = deque()
        self._clips: dict[tuple[int, float], _Clip] = {}

    def add(self, time: float, picture: bytes,
            events: Sequence[Mapping]) -> None:
        """Take the picture of a step, and its events.

        Args:
            time: End of the step in seconds, later than the one before.
            picture: Of any format.
            events: See :class:`EventDetector`.
        """
        for clip in self._clips.values():
            clip.add(time, picture)
        self._recent.append((time, picture))
        while self._recent[0][0] < time - RECENT:
            self._recent.popleft()
        for event in events:
            self._note(event)
        while len(self._clips) > MAX_CLIPS or self.size > MAX_BYTES:
            del self._clips[next(iter(self._clips))]

    @property
    def size(self) -> int:
        """Bytes of the events' pictures; those of two events count twice."""
        return sum(clip.size for clip in self._clips.values())

    def get(self, index: int, start: float) -> list[tuple[float, bytes]]:
        """Times and pictures of an event, by its class and start.

        Returns:
            Oldest first; none of an event that is too old, or unknown.
        """
        clip = self._clips.get((index, start))
        return list(clip.frames) if clip else []

    def _note(self, event: Mapping) -> None:
        key = event['index'], event['start']
        if key not in self._clips:
            clip = self._clips[key] = _Clip()
            for time, picture in self._recent:
                if time > event['start'] - BEFORE:
                    clip.add(time, picture)
        if event['event'] == 'end':
            self._clips[key].end = event['end'] + AFTER
