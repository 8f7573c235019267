# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What can be made of the detections of a run: files, messages, calls."""
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..visualization import VideoWriter
from ..visualization.score_curves import draw_score_curves
from .run import Detection, Run
from .sink import Sink

if TYPE_CHECKING:
    from .server import LivePage

CAPTION_CLASSES = 3
# A plot shows at most this many seconds, the last ones.
PLOTTED = 3600


class VideoSink(Sink):
    """Writes the frames of a run, with the best scores, to an MP4 file."""
    lossless = True
    # Each has the frames of a step.
    queue_size = 8

    def __init__(self, path: str | Path, run: Run) -> None:
        self.name = str(path)
        self._run = run
        self._video = VideoWriter(path, run.source.fps)

    def write(self, detection: Detection) -> None:
        """Write the frames of a step."""
        top = self._run.top_actions(detection.scores, CAPTION_CLASSES)
        lines = [f'{detection.time:.2f} s'] + [
            f'{name}: {score:.3f}' for name, score in top.items()
        ]
        for image in detection.images:
            self._video.write(image, lines)

    def close(self) -> None:
        """Finish the file; without this it cannot be played."""
        self._video.close()


class PlotSink(Sink):
    """Plots the scores and events of a run over time, once it has ended.

    Args:
        path: The plot, a png.
        run: The run.
        truth: Ground truth, 0 or 1, [T, K] from the first step of the source.
    """
    lossless = True

    def __init__(self, path: str | Path, run: Run,
                 truth: np.ndarray | None = None) -> None:
        self.name = str(path)
        self._path = path
        self._run = run
        self._truth = truth
        self._scores: deque[tuple[float, np.ndarray]] = deque(
            maxlen=int(PLOTTED * run.rate))

    def select(self,
               detection: Detection) -> list[tuple[float, np.ndarray]]:
        """The time and the scores."""
        return [(detection.time, detection.scores)]

    def write(self, item: tuple[float, np.ndarray]) -> None:
        """Take the scores of a step."""
        self._scores.append(item)

    def close(self) -> None:
        """Draw the plot, if there are any scores."""
        if not self._scores:
            return
        run = self._run
        times, scores = map(np.array, zip(*self._scores))
        draw_score_curves(
            self._path, times, scores, run.classes, run.rate, self._truth,
            [e for e in run.events.recent if e['event'] == 'end'], run.ignore,
            run.source.name)


class PageSink(Sink):
    """Shows a run on a page.

    Args:
        page: The page.
        number: The run's number among those of the page.
    """
    name = 'the page'
    queue_size = 8

    def __init__(self, page: 'LivePage', number: int) -> None:
        self._page = page
        self._number = number

    def write(self, detection: Detection) -> None:
        """Send a detection."""
        self._page.publish(self._number, detection)


class EventSink(Sink):
    """Takes events, one by one, those that end with the source too."""

    def select(self, detection: Detection) -> Sequence[dict]:
        """The events."""
        return detection.events

    def finish(self, events: Sequence[dict]) -> Sequence[dict]:
        """The events."""
        return events


class CallbackSink(EventSink):
    """Calls a function with each event.

    Args:
        function: Takes an event (:class:`EventDetector`).
        name: Name for users.
    """

    def __init__(self, function: Callable[[dict], None],
                 name: str = 'callback') -> None:
        self.name = name
        self._function = function

    def write(self, event: dict) -> None:
        """Call the function."""
        self._function(event)
