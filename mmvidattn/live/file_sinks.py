# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks that write files: videos, plots, scores and clips of actions."""
import os
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from ..online.frame_scores import (
    FILE,
    FrameScores,
    ScoredVideos,
    read_frame_scores,
)
from ..utils.arguments import NotNegative, check_type
from ..visualization import VideoWriter
from ..visualization.score_curves import draw_score_curves
from .run import StreamRun
from .sinks import Sink
from .step_reader import Detection

CAPTION_CLASSES = 3
# Maximum number of seconds in a plot. Earlier seconds are left out.
PLOTTED = 3600
# Runs of several sources write to one folder.
_LOCK = threading.Lock()
QUALITY = 85
# Suffix of a clip that is being written.
PART = '.part.mp4'


class VideoSink(Sink):
    """Sink that writes the frames of a run, with scores, to an MP4 file."""
    lossless = True
    # Keep it small, because an item contains all frames of a step.
    queue_size = 8

    def __init__(self, path: str | Path, run: StreamRun) -> None:
        self.name = str(path)
        self._run = run
        self._video = VideoWriter(path, run.source.fps)
        self._actions = [name for k, name in enumerate(run.classes)
                         if k not in run.ignore]

    def write(self, detection: Detection) -> None:
        """Write the frames of a step."""
        top = self._run.top_actions(detection.scores, CAPTION_CLASSES)
        lines = [f'{detection.time:.2f} s'] + [
            (f'{name}: {score:.3f}', self._actions.index(name))
            for name, score in top.items()]
        for image in detection.images:
            self._video.write(image, lines)

    def close(self) -> None:
        """Finish the file, which cannot be played before."""
        self._video.close()


class PlotSink(Sink):
    """Sink that plots the scores and events of a run at its end."""
    lossless = True

    def __init__(self, path: str | Path, run: StreamRun) -> None:
        self.name = str(path)
        self._path = path
        self._run = run
        self._scores: deque[tuple[float, np.ndarray]] = deque(
            maxlen=int(PLOTTED * run.rate))

    def select(self,
               detection: Detection) -> list[tuple[float, np.ndarray]]:
        return [(detection.time, detection.scores)]

    def write(self, item: tuple[float, np.ndarray]) -> None:
        self._scores.append(item)

    def close(self) -> None:
        """Draw the plot, if there are any scores."""
        if not self._scores:
            return
        run = self._run
        times, scores = map(np.array, zip(*self._scores))
        draw_score_curves(
            self._path, times, scores, run.classes, run.rate,
            [e for e in run.events.recent if e['event'] == 'end'], run.ignore,
            run.source.name)


class ScoreSink(Sink):
    """Sink that adds the scores of a run to a folder at its end.

    Steps that were dropped or missing have the scores of the step before, or
    of the first step. Other sources in the folder are kept
    (:meth:`~mmvidattn.online.frame_scores.ScoredVideos.write`).

    Raises:
        ValueError: If the folder has scores of other classes.
    """
    lossless = True

    def __init__(self, folder: str | Path, run: StreamRun) -> None:
        self.name = str(folder)
        self._folder = Path(folder)
        self._run = run
        self._steps: list[int] = []
        self._scores: list[np.ndarray] = []
        self._read()

    def write(self, detection: Detection) -> None:
        """Keep the scores of a step."""
        self._steps.append(detection.step)
        self._scores.append(np.asarray(detection.scores, np.float32))

    def close(self) -> None:
        """Write the scores, if there are any."""
        if not self._steps:
            return
        number = np.diff([*self._steps, self._steps[-1] + 1])
        number[0] += self._steps[0]
        scores = np.repeat(np.array(self._scores), number, axis=0)
        with _LOCK:
            scored = self._read()
            scored.videos[self._run.source.name] = FrameScores(
                self._run.rate, scores)
            scored.write(self._folder)

    def _read(self) -> ScoredVideos:
        """Return the scores in the folder."""
        classes, ignore = list(self._run.classes), set(self._run.ignore)
        if not (self._folder / FILE).exists():
            return ScoredVideos(classes, ignore)
        found = read_frame_scores(self._folder)
        if found.classes != classes:
            raise ValueError(f'{self._folder} has scores of other classes; '
                             'choose another folder')
        return found


class SegmentSink(Sink):
    """Sink that writes a video clip of each action.

    Frames are buffered as JPEGs. If the frames of an action exceed
    ``max_bytes``, its clip contains only the last part. A clip is written
    ``after`` seconds after the end of the action; a killed run loses the clips
    that it has not written yet.

    Args:
        folder: Folder for the clips. A clip is called ``000012.mp4`` if the
            number of the action's start event is 12 (:meth:`path`). A file of
            this name from an earlier run is deleted when the action starts.
        run: The run.
        before, after: Seconds in a clip before and after the action.
        max_bytes: Maximum size of all buffered frames.

    Raises:
        ValueError: If a margin is negative.
    """
    lossless = True
    queue_size = 8

    def __init__(self, folder: str | Path, run: StreamRun, before: float = 2.,
                 after: float = 2., max_bytes: int = 2**26) -> None:
        check_type('before', before, NotNegative)
        check_type('after', after, NotNegative)
        self.folder = Path(folder)
        # A killed run may have left unfinished clips.
        for part in self.folder.glob(f'*{PART}'):
            part.unlink()
        self.name = str(folder)
        self.before, self.after = before, after
        self.max_bytes = max_bytes
        self._fps = run.source.fps
        self._rate = run.rate
        self._frames: deque[tuple[float, np.ndarray]] = deque()
        self._num_bytes = 0
        self._waiting: list[dict] = []

    def path(self, start_id: int) -> Path:
        """Return the path of a clip by the number of its start event."""
        return self.folder / f'{start_id:06d}.mp4'

    def write(self, detection: Detection) -> None:
        """Buffer the frames of a step, and write the clips that are due."""
        step = 1 / self._rate
        count = len(detection.images)
        for i, image in enumerate(detection.images):
            self._add(detection.time - step + i * step / count, image)
        for event in detection.events:
            if event['event'] == 'start':
                self.path(event['id']).unlink(missing_ok=True)
            else:
                self._waiting.append(event)
        for event in list(self._waiting):
            if event['end'] + self.after <= detection.time:
                self._write_clip(event)
        since = detection.active_since
        starts = [event['start'] for event in self._waiting]
        starts.append(detection.time if since is None else since)
        # Drop frames that no clip can contain any more.
        while self._frames and (
                self._frames[0][0] < min(starts) - self.before - 1e-6):
            self._drop_oldest()

    def finish(self, events: Sequence[dict]) -> list[Detection]:
        """Return the events as a detection without frames."""
        none = np.zeros(0)
        return [Detection(-1, 0., none, none, events, (), {})]

    def close(self) -> None:
        """Write the clips of the last actions."""
        for event in list(self._waiting):
            self._write_clip(event)

    def _add(self, time: float, image: np.ndarray) -> None:
        is_done, data = cv2.imencode(
            '.jpg', cv2.cvtColor(image, cv2.COLOR_RGB2BGR),
            [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        if not is_done:
            raise OSError('a frame could not be encoded')
        self._frames.append((time, data))
        self._num_bytes += data.nbytes
        while self._num_bytes > self.max_bytes:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._num_bytes -= self._frames.popleft()[1].nbytes

    def _write_clip(self, event: dict) -> None:
        self._waiting.remove(event)
        start, end = event['start'] - self.before, event['end'] + self.after
        # Times are multiples of a frame's length, up to rounding.
        frames = [(time, data) for time, data in self._frames
                  if start - 1e-6 <= time < end - 1e-6]
        if not frames:
            return
        path = self.path(event['start_id'])
        times, data = zip(*frames)
        # Rename only when complete, so that readers never see a partial file.
        part = path.with_suffix(PART)
        with VideoWriter(part, self._fps) as video:
            for i in range(round((times[-1] - times[0]) * self._fps) + 1):
                time = times[0] + i / self._fps
                # Missing frames are replaced by the previous frame.
                image = cv2.imdecode(
                    data[bisect_right(times, time + 1e-6) - 1],
                    cv2.IMREAD_COLOR)
                video.write(cv2.cvtColor(image, cv2.COLOR_BGR2RGB),
                            [f'{time:.2f} s: {event["class"]}'])
        os.replace(part, path)
