# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Features of the steps of a video, by a recognizer of mmaction2."""
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmengine.dataset import Compose, pseudo_collate
from torch import Tensor, nn

from ..apis.models import get_model
from .optical_flow import OpticalFlow
from .steps import frame_indices

# Transforms that choose and read the frames of a clip: the steps do that.
READERS = ('Init', 'SampleFrames', 'UniformSample', 'UniformSampleFrames',
           'DenseSampleFrames', 'UntrimmedSampleFrames', 'Decode')


class FeatureExtractor:
    """Computes the features of each step of a video with a recognizer.

    Features are the input of its classifier. A clip, which is images or the
    flow between them, goes through the config's own test pipeline; crops are
    averaged. Threads may share an extractor.

    Args:
        config: The recognizer's config file, or its name.
        checkpoint: Its weights. Defaults to fresh ones.
        device: Where to compute.
        flow: Method of :class:`OpticalFlow`, for recognizers of flow. None
            for those of images.
        flow_side: Short side of the images that flow is computed from.
        bound: Pixels of flow that become 0 or 255.
        clip_len: Images, or flow fields, of a clip. Defaults to that of the
            test pipeline.
        frame_interval: Frames from one image to the next.
        layer: The layer whose input is the features.
        cfg_options: Changes to the config, by dotted keys.

    Raises:
        ValueError: If there is no such layer, or an argument is out of range.
    """

    def __init__(self,
                 config: str,
                 checkpoint: str | None = None,
                 device: str | torch.device = 'cpu',
                 flow: str | None = None,
                 flow_side: int = 180,
                 bound: float = 20.,
                 clip_len: int | None = None,
                 frame_interval: int = 1,
                 layer: str = 'cls_head.fc_cls',
                 cfg_options: dict[str, Any] | None = None) -> None:
        if clip_len is not None and clip_len < 1:
            raise ValueError(f'clip_len must be at least 1, got {clip_len}')
        if frame_interval < 1:
            raise ValueError('frame_interval must be at least 1, got '
                             f'{frame_interval}')
        self.flow = flow and OpticalFlow(flow, flow_side, bound)
        self.frame_interval = frame_interval
        self.layer = layer
        self.model = get_model(config, checkpoint, device, cfg_options)
        transforms = self.model.cfg.test_pipeline
        self.clip_len = clip_len or _find_clip_len(transforms)
        self.pipeline = Compose([
            transform for transform in transforms
            if not any(word in transform['type'] for word in READERS)
        ])
        module = dict(self.model.named_modules()).get(layer)
        if module is None:
            raise ValueError(
                f'layer must be a module of the recognizer, got {layer!r}; '
                'linear ones are '
                + ', '.join(n for n, m in self.model.named_modules()
                            if isinstance(m, nn.Linear)))
        self._inputs: list[Tensor] = []
        self._lock = threading.Lock()
        module.register_forward_pre_hook(
            lambda module, args: self._inputs.append(args[0].detach()))

    @property
    def num_frames(self) -> int:
        """Frames that a clip is made of: n flow fields need n + 1."""
        return self.clip_len + 1 if self.flow else self.clip_len

    def frame_indices(self, step: int, fps: float,
                      rate: float) -> np.ndarray:
        """Indices of the frames of a step's clip, oldest first."""
        return frame_indices(step, fps, rate, self.num_frames,
                             self.frame_interval)

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
            RuntimeError: If the layer did not run.
        """
        batch = pseudo_collate([self._prepare(clip) for clip in clips])
        with self._lock:
            data = self.model.data_preprocessor(batch, False)
            self._inputs.clear()
            self.model(**data, mode='tensor', stage='head')
            if not self._inputs:
                raise RuntimeError(f'layer {self.layer} did not run')
            rows = self._inputs[0]
        # Crops are averaged, as is anything else a clip has several rows of.
        return rows.reshape(len(clips), -1, rows.shape[-1]).mean(dim=1).float()

    def _prepare(self, clip: Sequence[np.ndarray]) -> dict:
        shape = clip[0].shape[:2]
        return self.pipeline(
            dict(
                imgs=list(clip),
                modality='Flow' if self.flow else 'RGB',
                original_shape=shape,
                img_shape=shape,
                clip_len=self.clip_len,
                num_clips=1,
                frame_interval=self.frame_interval,
                start_index=0,
                label=-1))


def _find_clip_len(transforms: Sequence[dict]) -> int:
    for transform in transforms:
        if 'clip_len' in transform:
            return transform['clip_len']
    raise ValueError('the config samples no frames; give clip_len')
