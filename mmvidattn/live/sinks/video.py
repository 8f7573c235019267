# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Video of a run, with its scores."""
from pathlib import Path

from ...visualization import VideoWriter
from ..detection import Detection
from ..run import Run
from .base import Sink

CAPTION_CLASSES = 3


class VideoSink(Sink):
    """Sink that writes the frames of a run, with scores, to an MP4 file."""
    lossless = True
    # Keep it small, because an item contains all frames of a step.
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
        """Finish the file, which cannot be played before."""
        self._video.close()
