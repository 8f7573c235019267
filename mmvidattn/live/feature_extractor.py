# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature extraction for the steps of a video, with any network."""
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..utils.arguments import Count, Positive, check_arguments
from .fair_lock import FairLock
from .image_input import ImageInput
from .module_features import ModuleFeatures
from .named_networks import find_network, is_network
from .optical_flow import FlowMethod, OpticalFlow
from .recognizer_features import CLASSIFIER, RecognizerFeatures
from .steps import frame_indices, source_frames

NEEDED = 'takes', 'mean', 'std'


@check_arguments
class FeatureExtractor:
    """Extractor of the features of each step of a video.

    For an mmaction2 recognizer, the clips come from its test pipeline, and the
    features are the input of its classifier, averaged over crops. Any other
    network gets images or clips according to ``input``, and returns [B, C].
    Clips consist of images or of the flow between them. Threads may share an
    extractor.

    Args:
        config: Config file or name of a recognizer; or a network, as an
            ``nn.Module`` or by name: ``timm://NAME``,
            ``hf://OWNER/MODEL@REVISION`` or ``MODULE:CALLABLE``; see
            :mod:`mmvidattn.live.named_networks`.
        checkpoint: Weights; see :func:`find_network` for other networks.
            Defaults to random weights. The classifier's weights may be
            missing.
        device: Device to compute on.
        flow: Method of :class:`OpticalFlow` for networks of flow. None for
            networks of images.
        flow_side: Short side in pixels of the images for the flow.
        bound: Flow in pixels that is mapped to 0 (negative) or 255 (positive).
        clip_len: Number of images, or of flow fields, in a clip. Defaults to
            the clip length of the test pipeline or the network, or to 1 for
            networks of images.
        frame_interval: Frames from one image to the next.
        layer: Layer whose input is the features. Defaults to the classifier
            of a recognizer. Other networks by default return the features.
        cfg_options: Changes to a recognizer's config, by dotted keys.
        input: Arguments of :class:`ImageInput`, for networks that are not
            recognizers. They update the arguments that timm or the Hub
            provides for the network.
        sample_fps: Frame rate to which videos are resampled, by repeating or
            leaving out frames. Defaults to the rate of the video.

    Raises:
        ValueError: If the network or the layer does not exist, or an argument
            is missing, out of range, or not for this kind of network.
        ImportError: If timm or transformers is needed and not installed.
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
            self._network = _build_module(
                config, checkpoint, device, layer, clip_len, input,
                cfg_options)
        else:
            if input:
                raise ValueError(
                    f'input is not for recognizers: the config of {config} '
                    'has a test_pipeline instead')
            self.layer = layer or CLASSIFIER
            self._network = RecognizerFeatures(
                config, checkpoint, device, self.layer, bool(flow), clip_len,
                frame_interval, cfg_options)
        self.name = self._network.name
        self.model = self._network.model
        self.clip_len = self._network.clip_len
        # Sources that share the extractor use it in turn.
        self._lock = FairLock()

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
    def features(self, clips: Sequence[Sequence[np.ndarray]]) -> Tensor:
        """Compute the features of n clips, [n, C], float32, on the device.

        Raises:
            ValueError: If the network's output has another shape.
            RuntimeError: If the layer did not run.
        """
        samples = [self._network.prepare(clip) for clip in clips]
        with self._lock:
            return self._network(samples).float()


def _build_module(config: str | nn.Module, checkpoint: str | None,
                  device: str | torch.device, layer: str | None,
                  clip_len: int | None, given: Mapping[str, Any] | None,
                  cfg_options: dict[str, Any] | None) -> ModuleFeatures:
    network = find_network(config, checkpoint)
    if cfg_options:
        raise ValueError('cfg_options are for recognizers, and '
                         f'{network.name} is another network; got '
                         f'{cfg_options}')
    options = {**network.image_input, **(given or {})}
    missing = [key for key in NEEDED if key not in options]
    if missing:
        raise ValueError(
            f'input of {network.name} must have {", ".join(NEEDED)}, and '
            f'lacks {", ".join(missing)}: they are not known for this network')
    try:
        image_input = ImageInput(**options)
    except TypeError as error:
        raise ValueError(f'input may have '
                         f'{", ".join(ImageInput.__annotations__)}: '
                         f'{error}') from None
    clip_len = clip_len or network.clip_len
    if clip_len is None:
        if image_input.takes == 'clips':
            raise ValueError('clip_len (images per clip) is needed: '
                             f'{network.name} takes clips')
        clip_len = 1
    return ModuleFeatures(network.model, image_input, device, layer, clip_len,
                          network.name)
