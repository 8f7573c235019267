# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sliding-window classification of a stream with clip models."""
import copy
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmaction.models import Recognizer3D
from mmaction.structures import ActionDataSample
from mmengine.config import Config
from mmengine.dataset import Compose
from torch import Tensor, nn

from ..online import CachedFrameEncoder
from ..utils.arguments import Positive, check_arguments
from ..utils.printable import count
from .bundle_types.registry import types_of
from .labels import find_labels, probabilities
from .models import find_model
from .video_clips import check_frames, sample_of, test_steps

# Pipeline steps that take several crops, including the center.
CROPS = 'ThreeCrop', 'UniformThreeCrop', 'TenCrop'
# Options of a sampler for a single view.
ONE_VIEW = dict(num_clips=1, twice_sample=False)
# Pipeline steps that process each frame independently.
FRAME_WISE = 'Resize', 'CenterCrop', 'FormatShape'


class FramePipeline:
    """Test pipeline of a config, applied to single frames.

    It uses a single view, one clip and the center crop, even if the config has
    several clips and crops.

    Raises:
        ValueError: If the pipeline does not decode videos, samples at random,
            or has a step that may not process frames independently.
    """

    def __init__(self, cfg: Config) -> None:
        steps = test_steps(cfg)
        sampling = [{key: ONE_VIEW.get(key, value)
                     for key, value in step.items()} for step in steps.sample]
        spatial = [
            dict(type='CenterCrop', crop_size=step['crop_size'])
            if step['type'] in CROPS else step for step in steps.rest
            if not step['type'].startswith('Pack')]
        for step in spatial:
            if step['type'] not in FRAME_WISE:
                raise ValueError(
                    'for a stream, the steps of the test pipeline after '
                    'decoding must process frames independently '
                    f'({", ".join((*CROPS, *FRAME_WISE))}), got '
                    f'{step["type"]}')
            if step.get('input_format', 'NCTHW') != 'NCTHW':
                raise ValueError(
                    'for a stream, input_format of FormatShape must be '
                    f"'NCTHW', got {step['input_format']!r}")
        with types_of(cfg):
            self._sampling, self._spatial = Compose(sampling), Compose(spatial)
        for step in self._sampling.transforms:
            if not getattr(step, 'test_mode', True):
                raise ValueError(
                    'the test pipeline samples frames at random: set '
                    f'test_mode=True in {type(step).__name__}')

    def span(self, fps: float) -> int | None:
        """Return the number of frames of a clip; None for the entire video."""
        for step in self._sampling.transforms:
            interval = getattr(step, 'frame_interval', None)
            # UniformSample and similar steps span the video, without an
            # interval.
            if interval is not None:
                rate = getattr(step, 'target_fps', None) or fps
                return max(1, round(step.clip_len * interval * fps / rate))
        return None

    def sample(self, num_frames: int, fps: float) -> list[int]:
        """Sample the frames of a clip from a video of ``num_frames``."""
        sample = self._sampling(sample_of(num_frames, avg_fps=fps))
        return np.ravel(sample['frame_inds']).tolist()

    def prepare(self, image: np.ndarray) -> Tensor:
        """Resize and crop a frame, [H, W, 3], to uint8 [C, H', W']."""
        shape = image.shape[:2]
        prepared = self._spatial(sample_of(
            1, imgs=[image], original_shape=shape, img_shape=shape,
            num_clips=1, clip_len=1))
        return torch.from_numpy(prepared['imgs'][0, :, 0])


@check_arguments
class SlidingClassifier:
    """Sliding-window classifier of a video stream.

    Pass it one frame after the other::

        session = SlidingClassifier('vivit_tiny_motion', fps=25)
        for frame in frames:
            scores = session.step(frame)
            if scores is not None:
                print(session.time, scores)

    After each ``stride``, it scores the last ``seconds`` of the stream (fewer
    at the start). It uses a single view, one clip and the center crop, even if
    the config's test pipeline has several; :meth:`VideoClassifier.windows`
    computes the same scores with this view. Groups of frames that a model
    encodes independently, before it mixes them across time, are encoded only
    once (:class:`mmvidattn.online.CachedFrameEncoder`). Memory holds only the
    resized frames of a window, and their encodings.

    Args:
        model, checkpoint, device, labels: See :class:`VideoClassifier`.
        fps: Frame rate of the stream.
        seconds: Length of the window, rounded to whole frames. Defaults to the
            span of a clip in the config's test pipeline. Required if a clip
            spans the entire video.
        stride: Seconds between scores, rounded to whole frames, from one
            frame to ``seconds``. Defaults to the distance between groups of
            frames that the model encodes independently, or else to
            ``seconds``.
        **kwargs: Other arguments of :func:`mmvidattn.get_model`.

    Raises:
        ValueError: If the model is not a clip model, or its test pipeline
            cannot process single frames.

    Attributes:
        model, labels, fps: As above.
        window_frames: Length of the window in frames.
        stride_frames: Distance between scores in frames.
        num_frames: Number of frames passed to :meth:`step`.
        encoder: Encoder with the stored encodings of frame groups.
    """

    def __init__(self,
                 model: str | Path | Config | nn.Module,
                 checkpoint: str | Path | None = None,
                 *,
                 fps: Positive,
                 seconds: Positive | None = None,
                 stride: Positive | None = None,
                 device: str | torch.device = 'cpu',
                 labels: Sequence[str] | None = None,
                 **kwargs: Any) -> None:
        model = find_model(model, checkpoint, device, **kwargs)
        if not isinstance(model, Recognizer3D):
            raise ValueError('a sliding window needs a Recognizer3D, got a '
                             f'{type(model).__name__}')
        self.model = model
        self.labels = find_labels(model) if labels is None else list(labels)
        self._pipeline = FramePipeline(model.cfg)
        self._start(fps, seconds, stride)

    @check_arguments
    def spawn(self, fps: Positive | None = None) -> 'SlidingClassifier':
        """Create a session with the model for another stream, of this rate."""
        other = copy.copy(self)
        other._start(self.fps if fps is None else fps, self._seconds,
                     self._stride)
        return other

    def _start(self, fps: float, seconds: float | None,
               stride: float | None) -> None:
        self._seconds, self._stride = seconds, stride
        self.fps = fps
        self.encoder = CachedFrameEncoder(self.model.backbone)
        window = self._pipeline.span(fps) if seconds is None else (
            max(1, round(seconds * fps)))
        if window is None:
            raise ValueError(
                'seconds must be set (--seconds of stream, --windows of '
                'predict), because the clips of the test pipeline span '
                'entire videos')
        self.window_frames = window
        self.stride_frames = self._group_distance() if stride is None else (
            max(1, round(stride * fps)))
        if self.stride_frames > window:
            raise ValueError(
                'stride must be at most the length of the window, '
                f'{window / fps:g} s, got {stride:g}')
        self.reset()

    def reset(self) -> None:
        """Restart at frame 0."""
        self.num_frames = 0
        self.encoder.reset()
        self._frames: deque[tuple[int, Tensor]] = deque()

    @property
    def time(self) -> float:
        """Duration of the frames passed to :meth:`step`, in seconds."""
        return self.num_frames / self.fps

    @property
    def rate(self) -> float:
        """Number of scores per second."""
        return self.fps / self.stride_frames

    def describe(self) -> str:
        """Describe the window, and the cost of a score, in a line."""
        window, stride = self.window_frames, self.stride_frames
        text = (f'scores the last {window / self.fps:.2f} s '
                f'({count(window, "frame")}) every {stride / self.fps:.2f} s '
                f'({count(stride, "frame")}); each score ')
        if not self.encoder.shares:
            return (f'{text}costs a complete clip, because '
                    f'{type(self.model.backbone).__name__} mixes all frames '
                    'from the start')
        groups = self._window_groups()
        earlier = {tuple(i - shift for i in group) for group in groups
                   for shift in range(stride, window, stride)}
        new = sum(group not in earlier for group in groups)
        return (f'{text}encodes {new} of the {len(groups)} groups '
                'of frames, and reuses the others')

    def step(self, frame: np.ndarray | None) -> Tensor | None:
        """Process the next frame.

        Args:
            frame: RGB frame, uint8 [H, W, 3]. None for a missing frame, which
                is replaced by the previous frame.

        Returns:
            Class probabilities, float32 [K], on the CPU, if a stride ends with
            this frame. None otherwise, and if all frames of the window are
            missing.

        Raises:
            ValueError: If the frame has another type or shape.
        """
        if frame is not None:
            self.add(self.num_frames, frame)
        self.num_frames += 1
        encoded = None if self.num_frames % self.stride_frames else (
            self.encode(self.num_frames))
        return None if encoded is None else self.classify(encoded)

    def add(self, number: int, frame: np.ndarray) -> None:
        """Store a frame by its number, for :meth:`encode`.

        Raises:
            ValueError: If the frame is not as in :meth:`step`, or its number
                is not greater than the last one.
        """
        check_frames(frame, '[H, W, 3]')
        if self._frames and number <= self._frames[-1][0]:
            raise ValueError(f'frame {number} came after frame '
                             f'{self._frames[-1][0]}')
        while self._frames and (
                self._frames[0][0] <= number - self.window_frames):
            self._frames.popleft()
        self._frames.append((number, self._pipeline.prepare(frame)))

    def encode(self, stop: int) -> Tensor | None:
        """Encode the window before frame ``stop``; None without frames."""
        start = max(0, stop - self.window_frames)
        self.encoder.forget(start)
        present = [number for number, _ in self._frames
                   if start <= number < stop]
        if not present:
            return None
        places = self._pipeline.sample(stop - start, self.fps)
        numbers = [
            present[max(0, bisect_right(present, start + place) - 1)]
            for place in places]
        return self.encoder.encode(numbers, self._load)

    @torch.no_grad()
    def classify(self, encoded: Tensor) -> Tensor:
        """Convert the result of :meth:`encode` to probabilities [K] (CPU)."""
        features = self.encoder.features(encoded)
        if self.model.with_neck:
            features, _ = self.model.neck(features)
        sample, = self.model.cls_head.predict(features, [ActionDataSample()])
        return probabilities(self.model, sample.pred_score)

    def _load(self, numbers: Sequence[int]) -> Tensor:
        """Normalize frames of the window, [C, n, H, W]."""
        frames = dict(self._frames)
        clip = torch.stack([frames[number] for number in numbers], dim=1)
        data = self.model.data_preprocessor(dict(
            inputs=[clip[None]], data_samples=[ActionDataSample()]), False)
        return data['inputs'][0, 0]

    def _window_groups(self) -> list[tuple[int, ...]]:
        """Return the groups of a full window's frames."""
        return self.encoder.groups(
            self._pipeline.sample(self.window_frames, self.fps))

    def _group_distance(self) -> int:
        """Return the mean distance between groups in frames."""
        if self.encoder.shares:
            firsts = [group[0] for group in self._window_groups()]
            if len(firsts) > 1:
                return max(1, (firsts[-1] - firsts[0]) // (len(firsts) - 1))
        return self.window_frames
