# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Features of the steps of a video, from any network."""
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import Compose, pseudo_collate
from torch import Tensor, nn

from ..apis.bundle_types.registry import types_of
from ..apis.models import get_model
from ..apis.video_clips import test_steps
from ..utils.arguments import Count, Positive, check_arguments
from ..utils.frame_times import ConstantRate
from ..utils.video_reader import VideoReader
from .networks import (
    FlowMethod,
    ImageInput,
    OpticalFlow,
    find_network,
    is_network,
)
from .step_reader import frame_indices, num_steps, source_frames

CLASSIFIER = 'cls_head.fc_cls'


def input_of(model: nn.Module, layer: str) -> Callable[..., Tensor]:
    """Return a function that runs a network, and returns a layer's input."""
    module = dict(model.named_modules()).get(layer)
    if module is None:
        raise ValueError(
            f'layer must be a module of the network, got {layer!r}; linear '
            'layers are ' + ', '.join(n for n, m in model.named_modules()
                                      if isinstance(m, nn.Linear)))
    inputs: list[Tensor] = []
    module.register_forward_pre_hook(
        lambda module, args: inputs.append(args[0].detach()))

    def run(*args: Any, **kwargs: Any) -> Tensor:
        inputs.clear()
        model(*args, **kwargs)
        if not inputs:
            raise RuntimeError(f'layer {layer} did not run')
        return inputs[0]

    return run


class RecognizerFeatures:
    """Network of a :class:`FeatureExtractor` that is a recognizer."""

    def __init__(self, config: str, checkpoint: str | None,
                 device: str | torch.device, layer: str, flow: bool,
                 clip_len: int | None, frame_interval: int,
                 cfg_options: dict[str, Any] | None) -> None:
        self.name = config
        self.model = get_model(config, checkpoint, device, cfg_options,
                               optional=f'{layer}.')
        steps = test_steps(self.model.cfg)
        self.clip_len = clip_len or next(
            (x['clip_len'] for x in steps.sample if 'clip_len' in x), None)
        if self.clip_len is None:
            raise ValueError('clip_len is needed: no step of the test '
                             'pipeline has it')
        # The steps of the stream choose the frames.
        with types_of(self.model.cfg):
            self.pipeline = Compose(steps.rest)
        self._run = input_of(self.model, layer)
        self._sample = dict(
            modality='Flow' if flow else 'RGB', clip_len=self.clip_len,
            num_clips=1, frame_interval=frame_interval, start_index=0,
            label=-1)

    def prepare(self, clip: Sequence[np.ndarray]) -> dict:
        """Run the pipeline on a clip."""
        shape = clip[0].shape[:2]
        return self.pipeline(dict(
            self._sample, imgs=list(clip), original_shape=shape,
            img_shape=shape))

    def __call__(self, samples: Sequence[dict]) -> Tensor:
        """Compute the features of n prepared clips, [n, C]."""
        data = self.model.data_preprocessor(pseudo_collate(samples), False)
        features = self._run(**data, mode='tensor', stage='head')
        # Average over crops and all other axes.
        return features.reshape(
            len(samples), -1, features.shape[-1]).mean(dim=1)


class ModuleFeatures:
    """Network of a :class:`FeatureExtractor` that is not a recognizer."""

    def __init__(self, config: str | nn.Module, checkpoint: str | None,
                 device: str | torch.device, layer: str | None,
                 clip_len: int | None, input: Mapping[str, Any]) -> None:
        model, self.name = find_network(config, checkpoint)
        # A network of the Hub knows its input.
        input = {**getattr(model, 'image_input', {}), **input}
        clip_len = clip_len or getattr(model, 'clip_len', None)
        try:
            self.prepare = ImageInput(**input)
        except TypeError as error:
            raise ValueError(f'input of {self.name} may have '
                             f'{", ".join(ImageInput.__annotations__)}: '
                             f'{error}') from None
        if clip_len is None and self.prepare.takes == 'clips':
            raise ValueError('clip_len (images per clip) is needed: '
                             f'{self.name} takes clips')
        self.clip_len = clip_len or 1
        self.model = model.to(device).eval()
        self.device = device
        self._layer = layer
        self._run = input_of(model, layer) if layer else self.model

    def __call__(self, samples: Sequence[Tensor]) -> Tensor:
        """Compute the features of n prepared clips, [n, C]."""
        x = torch.cat([*samples]).to(self.device)
        features = self._run(x)
        if not isinstance(features, Tensor) or features.dim() != 2 or (
                len(features) != len(x)):
            where = (f'layer {self._layer} of {self.name} reads'
                     if self._layer else f'{self.name} gives')
            what = (f'a tensor of shape {list(features.shape)}'
                    if isinstance(features, Tensor)
                    else f'a {type(features).__name__}')
            raise ValueError(
                f'{where} {what} for an input of {list(x.shape)}; features '
                f'must be [{len(x)}, C]: wrap the network in a module that '
                'pools its output, or pass the name of the layer that reads '
                'the pooled features as layer')
        # A network for images returns features for each image of a clip;
        # average them.
        return features.unflatten(0, (len(samples), -1)).mean(dim=1)


@check_arguments
class FeatureExtractor:
    """Extractor of the features of each step of a video.

    For an mmaction2 recognizer, the features are the input of its classifier
    for clips of its test pipeline, averaged over crops. Any other network gets
    images or clips according to ``input``, and returns [B, C]. Clips consist
    of images or of the flow between them. Threads may share an extractor.

    Args:
        config: Config file or name of a recognizer; or a network, as an
            ``nn.Module``, ``MODULE:CALLABLE`` or
            ``hf://OWNER/MODEL@REVISION``.
        checkpoint: Weights; see :func:`find_network` for other networks.
            Defaults to random weights. The classifier's weights may be
            missing.
        device: Device to compute on.
        flow: Method of :class:`OpticalFlow` for networks of flow. None for
            networks of images.
        flow_side, bound: ``side`` and ``bound`` of :class:`OpticalFlow`.
        clip_len: Number of images, or of flow fields, in a clip. Defaults to
            the clip length of the test pipeline or the network, or to 1 for
            networks of images.
        frame_interval: Frames from one image to the next.
        layer: Layer whose input is the features. Defaults to the classifier
            of a recognizer. Other networks by default return the features.
        cfg_options: Changes to a recognizer's config, by dotted keys.
        input: Arguments of :class:`ImageInput`, for networks that are not
            recognizers.
        sample_fps: Frame rate to which videos are resampled, by repeating or
            leaving out frames. Defaults to the rate of the video.

    Raises:
        ValueError: If the network or the layer does not exist, or an argument
            is missing, out of range, or not for this kind of network.
    """

    def __init__(self,
                 config: str | nn.Module,
                 checkpoint: str | None = None,
                 device: str | torch.device = 'cpu',
                 flow: FlowMethod | None = None,
                 flow_side: Positive = 180,
                 bound: Positive = 20.,
                 clip_len: Count | None = None,
                 frame_interval: Count = 1,
                 layer: str | None = None,
                 cfg_options: dict[str, Any] | None = None,
                 input: Mapping[str, Any] | None = None,
                 sample_fps: Positive | None = None) -> None:
        self.flow = flow and OpticalFlow(flow, flow_side, bound)
        self.frame_interval = frame_interval
        self.sample_fps = sample_fps
        self.layer = layer
        if is_network(config):
            if cfg_options:
                raise ValueError('cfg_options are for recognizers, got '
                                 f'{cfg_options} for {config}')
            self._network = ModuleFeatures(
                config, checkpoint, device, layer, clip_len, input or {})
        else:
            if input:
                raise ValueError(
                    f'input is not for recognizers: the config of {config} '
                    'has a test_pipeline instead')
            self.layer = layer or CLASSIFIER
            self._network = RecognizerFeatures(
                config, checkpoint, device, self.layer, bool(flow), clip_len,
                frame_interval, cfg_options)
        self.name, self.model = self._network.name, self._network.model
        # Function that converts the images of `clip` to a sample.
        self.prepare = self._network.prepare
        self.clip_len = self._network.clip_len
        # Sources that share the extractor use it in turn.
        self._lock = threading.Lock()

    @property
    def num_frames(self) -> int:
        """Number of frames for a clip: n flow fields need n + 1."""
        return self.clip_len + 1 if self.flow else self.clip_len

    @cached_property
    def width(self) -> int:
        """Number of channels C, measured on a clip of black images."""
        black = [np.zeros((224, 224, 3), np.uint8)] * self.num_frames
        return self.features([self.clip(black)]).shape[-1]

    def frame_indices(self, step: int, fps: float,
                      rate: float) -> np.ndarray:
        """Return the indices of the frames of a step's clip, oldest first."""
        indices = frame_indices(step, self.sample_fps or fps, rate,
                                self.num_frames, self.frame_interval)
        if self.sample_fps is None:
            return indices
        return source_frames(indices, self.sample_fps, fps, step, rate)

    def reach(self, fps: float) -> int:
        """Return how many frames before a step's last one a clip may need."""
        frames = (self.num_frames - 1) * self.frame_interval
        if self.sample_fps is None:
            return frames
        return int(np.ceil((frames + 1) * fps / self.sample_fps))

    def clip(self, images: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Convert RGB images ``(H, W, 3)`` to a clip of images or flow."""
        if not self.flow:
            return images
        with self._lock:
            return self.flow(images)

    @torch.no_grad()
    def features_of(self, samples: Sequence[Any]) -> Tensor:
        """Compute the features of n samples, [n, C], float32, on the device.

        Raises a ``ValueError`` if the network's output has another shape.
        """
        with self._lock:
            return self._network(samples).float()

    def features(self, clips: Sequence[Sequence[np.ndarray]]) -> Tensor:
        """Compute the features of n clips; see :meth:`features_of`."""
        return self.features_of([self.prepare(clip) for clip in clips])


@dataclass
class VideoFeatures:
    """Extractor of the features of each step of a video file.

    A video has ``rate`` steps per second, or one ``every`` so many frames;
    ``batch_size`` of them are computed at once.
    """
    recognizer: FeatureExtractor
    rate: float
    every: int | None = None
    batch_size: int = 16

    def __call__(self, video: Path) -> np.ndarray:
        """Extract the features of a video, float32 ``(steps, width)``.

        Raises:
            ValueError: If the video is shorter than a step, or a feature is
                not finite.
        """
        reader = ConstantRate(VideoReader(video))
        fps = reader.fps
        extractor, rate = self.recognizer, self.rate
        if self.every is not None:
            rate = (extractor.sample_fps or fps) / self.every
        steps = num_steps(len(reader), fps, rate)
        if not steps:
            raise ValueError(
                f'{len(reader)} frames at {fps:g} frames/s are shorter than a '
                f'step of 1/{rate:g} s')
        rows, batch = [], []
        for step in range(steps):
            indices = extractor.frame_indices(step, fps, rate)
            images = reader.get_batch(indices.clip(max=len(reader) - 1))
            batch.append(extractor.clip(list(images)))
            if len(batch) == self.batch_size or step == steps - 1:
                rows.append(extractor.features(batch).cpu().numpy())
                batch = []
        rows = np.concatenate(rows)
        if not np.isfinite(rows).all():
            raise ValueError('the features have nan or infinity')
        return rows
