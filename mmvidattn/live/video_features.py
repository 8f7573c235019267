# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Features of all steps of a video file."""
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..utils.frame_times import ConstantRate
from ..utils.video_reader import open_video
from .feature_extractor import FeatureExtractor
from .steps import num_steps


class VideoFeatures:
    """Extractor of the features of each step of a video file.

    Args:
        recognizer: Extractor of the features of a clip.
        rate: Steps per second.
        every: One step every this number of frames, instead of ``rate``.
            Defaults to ``rate``.
        batch_size: Steps per batch. Defaults to 16.
    """

    def __init__(self, recognizer: FeatureExtractor, rate: float,
                 every: int | None = None, batch_size: int = 16) -> None:
        self.recognizer = recognizer
        self.rate = rate
        self.every = every
        self.batch_size = batch_size

    def __call__(self, video: Path) -> np.ndarray:
        """Extract the features of a video, float32 ``(steps, width)``.

        Raises:
            ValueError: If the video is shorter than a step, or a feature is
                not finite.
        """
        reader = ConstantRate(open_video(video))
        fps = reader.fps
        rate = self.rate_of(fps)
        steps = num_steps(len(reader), fps, rate)
        if not steps:
            raise ValueError(
                f'{len(reader)} frames at {fps:g} frames/s are shorter than a '
                f'step of 1/{rate:g} s')
        rows, batch = [], []
        for step in range(steps):
            batch.append(self.clip(reader, step, fps))
            if len(batch) == self.batch_size or step == steps - 1:
                rows.append(self.recognizer.features(batch).cpu().numpy())
                batch = []
        rows = np.concatenate(rows)
        if not np.isfinite(rows).all():
            raise ValueError('the features have nan or infinity')
        return rows

    def rate_of(self, fps: float) -> float:
        """Return the steps per second for a frame rate."""
        if self.every is None:
            return self.rate
        return (self.recognizer.sample_fps or fps) / self.every

    def clip(self, reader: ConstantRate, step: int,
             fps: float) -> Sequence[np.ndarray]:
        """Read the clip of a step."""
        indices = self.recognizer.frame_indices(step, fps, self.rate_of(fps))
        images = reader.get_batch(indices.clip(max=len(reader) - 1))
        return self.recognizer.clip(list(images))
