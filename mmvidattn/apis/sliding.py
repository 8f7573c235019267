# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Clip models on a window that slides over a stream of frames."""
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

from ..online import WindowEncoder
from ..utils.arguments import Positive, check_arguments
from .labels import find_labels, probabilities
from .models import get_model
from .video_clips import test_steps

# Steps of a pipeline that take several crops; the middle one is the same.
CROPS = 'ThreeCrop', 'UniformThreeCrop', 'TenCrop'
# Those that do to a frame what they do to it in a clip.
FRAME_WISE = 'Resize', 'CenterCrop', 'FormatShape', 'PackActionInputs'


class FramePipeline:
    """The test pipeline of a config, frame by frame, for one view of a clip.

    It samples one clip, where the config may sample several, and of crops it
    takes the middle one.

    Args:
        cfg: A config; see :class:`~mmvidattn.apis.video_clips.ClipPipeline`.

    Raises:
        ValueError: If its pipeline does not decode videos, samples at random,
            or has a step that is not known to treat each frame by itself.
    """

    def __init__(self, cfg: Config) -> None:
        steps, decode = test_steps(cfg)
        sampling = [
            dict(step, **{key: value for key, value in (
                ('num_clips', 1), ('twice_sample', False)) if key in step})
            for step in steps[:decode] if not step['type'].endswith('Init')]
        self._sampling = Compose(sampling)
        for step in self._sampling.transforms:
            if not getattr(step, 'test_mode', True):
                raise ValueError(
                    f'the test pipeline samples frames at random: set '
                    f'test_mode=True of {type(step).__name__}')
        spatial = [
            dict(type='CenterCrop', crop_size=step['crop_size'])
            if step['type'] in CROPS else step for step in steps[decode + 1:]]
        for step in spatial:
            if step['type'] not in FRAME_WISE:
                raise ValueError(
                    'a sliding window needs a test pipeline of '
                    f'{", ".join((*CROPS, *FRAME_WISE))} behind the decoding, '
                    f'which treat each frame by itself; got {step["type"]}')
            if step.get('input_format', 'NCTHW') != 'NCTHW':
                raise ValueError(
                    "a sliding window needs clips, input_format='NCTHW' of "
                    f'FormatShape, got {step["input_format"]!r}')
        self._spatial = Compose(spatial)

    def span(self, fps: float) -> int | None:
        """Frames that a clip spans in a video of this rate.

        None if it spans all of the video, however long that is.
        """
        for step in self._sampling.transforms:
            interval = getattr(step, 'frame_interval', None)
            # UniformSample and its like have none.
            if interval is not None:
                rate = getattr(step, 'target_fps', None) or fps
                return max(1, round(step.clip_len * interval * fps / rate))
        return None

    def sample(self, num_frames: int, fps: float) -> list[int]:
        """Frames of the one clip of a video of ``num_frames``, from 0."""
        found = self._sampling(dict(
            total_frames=num_frames, avg_fps=fps, start_index=0,
            filename='frames', label=-1, modality='RGB'))
        return np.ravel(found['frame_inds']).tolist()

    def prepare(self, image: np.ndarray) -> Tensor:
        """Resize and crop a frame, [H, W, 3], to uint8 [C, H', W']."""
        shape = image.shape[:2]
        found = self._spatial(dict(
            imgs=[image], original_shape=shape, img_shape=shape, num_clips=1,
            clip_len=1, filename='frames', label=-1, modality='RGB'))
        return found['inputs'][0, :, 0]


@check_arguments
class SlidingClassifier:
    """A clip model on the last seconds of a stream, again and again.

    Give it frame after frame::

        session = SlidingClassifier('vivit_tiny_motion', fps=25)
        for frame in frames:
            scores = session.step(frame)
            if scores is not None:
                print(session.time, scores)

    Each step is ``stride`` seconds long, and its scores are those of the
    ``seconds`` before its end; in the beginning, of what there is. They equal
    those of :meth:`VideoClassifier.windows`, but that one clip is sampled of
    each window and one crop taken, the middle one, whatever the config does
    in testing. What consecutive windows share is computed once, as far as
    the model encodes frames by themselves before it mixes them across time
    (:class:`mmvidattn.online.WindowEncoder`).

    Memory is bounded: it holds the resized frames of a window, and encodings
    of frames of it.

    Args:
        model: A name of :func:`mmvidattn.list_models`, the path of a config,
            or a model of :func:`mmvidattn.get_model`.
        checkpoint: Weights of exactly this model. Defaults to fresh ones.
        fps: Frames a second of the stream.
        seconds: Length of the window, rounded to whole frames. Defaults to
            what a clip of the config's test pipeline spans; one that samples
            frames of all of a video has no default.
        stride: Seconds from a step to the next, rounded to whole frames, at
            least one, and at most ``seconds``. Defaults to the distance of
            two groups of frames that the model encodes by themselves, else
            to ``seconds``.
        device: Where to compute.
        labels: Names of the classes, see :class:`VideoClassifier`.
        **kwargs: Other arguments of :func:`mmvidattn.get_model`.

    Raises:
        ValueError: If the model is none of clips, or its test pipeline cannot
            be applied frame by frame.

    Attributes:
        model: The model.
        labels: Names of the classes.
        fps: Frames a second.
        window_frames: Frames of the window, W.
        stride_frames: Frames of a step, S.
        num_frames: Frames that :meth:`step` has taken.
        encoder: What is kept of the frames, and counts of what was shared.
    """

    def __init__(self,
                 model: str | Path | nn.Module,
                 checkpoint: str | Path | None = None,
                 *,
                 fps: Positive,
                 seconds: Positive | None = None,
                 stride: Positive | None = None,
                 device: str | torch.device = 'cpu',
                 labels: Sequence[str] | None = None,
                 **kwargs: Any) -> None:
        if not isinstance(model, nn.Module):
            model = get_model(model, checkpoint, device, **kwargs)
        if not isinstance(model, Recognizer3D):
            raise ValueError('a sliding window needs a Recognizer3D, got a '
                             f'{type(model).__name__}')
        self.model = model
        self.labels = find_labels(model) if labels is None else list(labels)
        self._pipeline = FramePipeline(model.cfg)
        self._start(fps, seconds, stride)

    @check_arguments
    def spawn(self, fps: Positive | None = None,
              seconds: Positive | None = None, stride: Positive | None = None
              ) -> 'SlidingClassifier':
        """A session of another stream, which has the model in common.

        Args:
            fps: Frames a second. Defaults to ours.
            seconds: As in the beginning, as for ``stride``; they default to
                those that were given then.
        """
        other = copy.copy(self)
        given, given_stride = self._given
        other._start(
            self.fps if fps is None else fps,
            given if seconds is None else seconds,
            given_stride if stride is None else stride)
        return other

    def _start(self, fps: float, seconds: float | None,
               stride: float | None) -> None:
        self._given = seconds, stride
        self.fps = fps
        self.encoder = WindowEncoder(self.model.backbone)
        if seconds is None:
            window = self._pipeline.span(fps)
            if window is None:
                raise ValueError(
                    'the test pipeline samples frames of all of a video, '
                    'however long: give the seconds of the window')
        else:
            window = max(1, round(seconds * fps))
        self.window_frames = window
        if stride is None:
            self.stride_frames = self._group_distance()
        else:
            self.stride_frames = max(1, round(stride * fps))
        if self.stride_frames > window:
            raise ValueError(
                f'stride must be at most the {window / fps:g} seconds of the '
                f'window, got {stride:g}')
        self.reset()

    def reset(self) -> None:
        """Begin afresh, with frame 0."""
        self.num_frames = 0
        self.encoder.reset()
        self._frames: deque[tuple[int, Tensor]] = deque()

    @property
    def time(self) -> float:
        """Seconds of the frames that :meth:`step` has taken."""
        return self.num_frames / self.fps

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.fps / self.stride_frames

    @property
    def shared(self) -> float:
        """Part of a window's groups of frames that earlier windows had.

        From when the stream is as long as the window; 0 if the model encodes
        nothing before it mixes frames.
        """
        if not self.encoder.shares:
            return 0.
        groups = self._window_groups()
        earlier = {
            tuple(i - shift for i in group) for group in groups for shift in
            range(self.stride_frames, self.window_frames, self.stride_frames)}
        return sum(group in earlier for group in groups) / len(groups)

    def describe(self) -> str:
        """The window, and what is shared, in a line."""
        window, stride = self.window_frames, self.stride_frames
        text = (f'the last {window} frames ({window / self.fps:.2f} s), every '
                f'{stride} ({stride / self.fps:.2f} s)')
        name = type(self.model.backbone).__name__
        if not self.encoder.shares:
            return (f'{text}; each window is computed anew, as {name} mixes '
                    'frames from the start')
        groups = len(self._window_groups())
        shared = round(self.shared * groups)
        if not shared:
            return (f'{text}; each window is computed anew, as none of its '
                    f'{groups} groups of frames is one of an earlier window')
        return (f'{text}; {shared} of the {groups} groups of frames that '
                f'{name} encodes by themselves are those of earlier windows')

    def step(self, frame: np.ndarray | None) -> Tensor | None:
        """Take the next frame.

        Args:
            frame: RGB, uint8 [H, W, 3]; None if it is missing, for which the
                frame before stands in.

        Returns:
            Probabilities of the classes, float32 [K], on the CPU, if a step
            ends with this frame; None if not, or if all frames of the window
            are missing.

        Raises:
            ValueError: If it is no such frame.
        """
        if frame is not None:
            self.add(self.num_frames, frame)
        self.num_frames += 1
        if self.num_frames % self.stride_frames:
            return None
        encoded = self.encode(self.num_frames)
        return None if encoded is None else self.classify(encoded)

    def add(self, number: int, frame: np.ndarray) -> None:
        """Take a frame by its number, for :meth:`encode`.

        Raises:
            ValueError: If it is no frame as for :meth:`step`, or not later
                than those before.
        """
        if frame.dtype != np.uint8 or frame.ndim != 3 or (
                frame.shape[-1] != 3) or not frame.size:
            raise ValueError('a frame must be RGB, uint8 [H, W, 3], got '
                             f'{frame.dtype} {list(frame.shape)}')
        if self._frames and number <= self._frames[-1][0]:
            raise ValueError(f'frame {number} came after frame '
                             f'{self._frames[-1][0]}')
        while self._frames and (
                self._frames[0][0] <= number - self.window_frames):
            self._frames.popleft()
        self._frames.append((number, self._pipeline.prepare(frame)))

    def encode(self, stop: int) -> Tensor | None:
        """Encode the window that ends before frame ``stop``.

        Returns:
            What :meth:`classify` takes; None if the window has no frame.
        """
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
        """The result of :meth:`encode` to probabilities [K], on the CPU."""
        features = self.encoder.features(encoded)
        if self.model.with_neck:
            features, _ = self.model.neck(features)
        sample, = self.model.cls_head.predict(features, [ActionDataSample()])
        return probabilities(self.model, sample.pred_score)

    def _load(self, numbers: Sequence[int]) -> Tensor:
        """Frames of the window, [C, n, H, W], normalized."""
        frames = dict(self._frames)
        clip = torch.stack([frames[number] for number in numbers], dim=1)
        data = self.model.data_preprocessor(dict(
            inputs=[clip[None]], data_samples=[ActionDataSample()]), False)
        return data['inputs'][0, 0]

    def _window_groups(self) -> list[tuple[int, ...]]:
        """The groups of a whole window's frames, from its first one on."""
        return self.encoder.groups(
            self._pipeline.sample(self.window_frames, self.fps))

    def _group_distance(self) -> int:
        """Frames from a group to the next; about, if they differ."""
        if self.encoder.shares:
            firsts = [group[0] for group in self._window_groups()]
            if len(firsts) > 1:
                return max(1, (firsts[-1] - firsts[0]) // (len(firsts) - 1))
        return self.window_frames
