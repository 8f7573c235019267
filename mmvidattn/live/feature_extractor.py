# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Features of the steps of a video, by any network."""
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
from .optical_flow import OpticalFlow
from .recognizer_features import CLASSIFIER, RecognizerFeatures
from .steps import frame_indices, source_frames

NEEDED = 'takes', 'mean', 'std'


@check_arguments
class FeatureExtractor:
    """Computes the features of each step of a video with a network.

    A recognizer of mmaction2 is given clips by its config's own test
    pipeline; its features are the input of its classifier, averaged over
    crops. Any other network takes images or clips as ``input`` says, and
    gives [B, C]. Clips are of images, or of the flow between them. Threads
    may share an extractor.

    Args:
        config: A recognizer's config file, or its name; or a network, as an
            ``nn.Module`` or by name: ``timm://NAME``,
            ``hf://OWNER/MODEL@REVISION`` or ``MODULE:CALLABLE``; see
            :mod:`mmvidattn.live.named_networks`.
        checkpoint: Its weights; see :func:`find_network` for those of
            networks. Defaults to fresh ones. The classifier's are not
            needed.
        device: Where to compute.
        flow: Method of :class:`OpticalFlow`, for networks of flow. None
            for those of images.
        flow_side: Short side of the images that flow is computed from.
        bound: Pixels of flow that become 0 or 255.
        clip_len: Images, or flow fields, of a clip. Defaults to that of the
            test pipeline, or of the network; else to 1 for images.
        frame_interval: Frames from one image to the next.
        layer: The layer whose input is the features. Defaults to a
            recognizer's classifier, and to the output of another network.
        cfg_options: Changes to a recognizer's config, by dotted keys.
        input: Arguments of :class:`ImageInput`, for networks that are no
            recognizers. They update those that timm or the Hub has for the
            network.
        sample_fps: Take frames as if the video had so many a second,
            repeating or leaving out some. Defaults to its own rate.

    Raises:
        ValueError: If there is no such network or layer, an argument is out
            of range or missing, or not for such a network.
        ImportError: If timm or transformers is needed and not installed.
    """

    def __init__(self,
                 config: str | nn.Module,
                 checkpoint: str | None = None,
                 device: str | torch.device = 'cpu',
                 flow: str | None = None,
                 flow_side: int = 180,
                 bound: float = 20.,
                 clip_len: Count | None = None,
                 frame_interval: Count = 1,
                 layer: str | None = None,
                 cfg_options: dict[str, Any] | None = None,
                 input: Mapping[str, Any] | None = None,
                 sample_fps: Positive | None = None) -> None:
        self.flow = flow and OpticalFlow(flow, flow_side, bound)
        self.frame_interval = frame_interval
        self.sample_fps = sample_fps
        if is_network(config):
            self._network = _build_module(
                config, checkpoint, device, layer, clip_len, input,
                cfg_options)
            self.layer = layer
        else:
            if input:
                raise ValueError(
                    f'input is for other networks: {config} is a recognizer, '
                    'whose config has a test_pipeline')
            self.layer = layer or CLASSIFIER
            self._network = RecognizerFeatures(
                config, checkpoint, device, self.layer, bool(flow), clip_len,
                frame_interval, cfg_options)
        self.name = getattr(self._network, 'name', config)
        self.model = self._network.model
        self.clip_len = self._network.clip_len
        # Sources that share it take turns.
        self._lock = FairLock()

    @property
    def num_frames(self) -> int:
        """Frames that a clip is made of: n flow fields need n + 1."""
        return self.clip_len + 1 if self.flow else self.clip_len

    @cached_property
    def width(self) -> int:
        """C, as a clip of black images shows."""
        black = [np.zeros((224, 224, 3), np.uint8)] * self.num_frames
        return self.features([self.clip(black)]).shape[-1]

    def frame_indices(self, step: int, fps: float,
                      rate: float) -> np.ndarray:
        """Indices of the frames of a step's clip, oldest first."""
        indices = frame_indices(step, self.sample_fps or fps, rate,
                                self.num_frames, self.frame_interval)
        if self.sample_fps is None:
            return indices
        return source_frames(indices, self.sample_fps, fps, step, rate)

    def reach(self, fps: float) -> int:
        """Frames that a clip may go back from the last one of its step."""
        frames = (self.num_frames - 1) * self.frame_interval
        if self.sample_fps is None:
            return frames
        return int(np.ceil((frames + 1) * fps / self.sample_fps))

    def clip(self, images: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Make a clip of RGB images ``(H, W, 3)``: them or their flow."""
        if not self.flow:
            return images
        with self._lock:
            return self.flow(images)

    @torch.no_grad()
    def features(self, clips: Sequence[Sequence[np.ndarray]]) -> Tensor:
        """Compute the features of n clips, [n, C], float32, on the device.

        Raises:
            ValueError: If the network gives anything else.
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
        raise ValueError(f'cfg_options are for recognizers: {network.name} '
                         f'has no config, got {cfg_options}')
    options = {**network.image_input, **(given or {})}
    lacking = [key for key in NEEDED if key not in options]
    if lacking:
        raise ValueError(
            f'input of {network.name} must say {", ".join(NEEDED)}, and '
            f'lacks {", ".join(lacking)}: what the network takes is not known')
    try:
        image_input = ImageInput(**options)
    except TypeError as error:
        raise ValueError(f'input may have '
                         f'{", ".join(ImageInput.__annotations__)}: '
                         f'{error}') from None
    clip_len = clip_len or network.clip_len
    if clip_len is None:
        if image_input.takes == 'clips':
            raise ValueError(f'{network.name} takes clips: clip_len must say '
                             'of how many images')
        clip_len = 1
    return ModuleFeatures(network.model, image_input, device, layer, clip_len,
                          network.name)
