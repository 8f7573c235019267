# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What the classifier of a recognizer reads of a step of a video."""
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmengine.dataset import Compose, pseudo_collate
from torch import Tensor, nn

from ..models import get_model
from .optical_flow import OpticalFlow
from .steps import frames_of_step

# What chooses the frames of a clip; here the steps do.
CHOOSING = ('Init', 'SampleFrames', 'UniformSample', 'UniformSampleFrames',
            'DenseSampleFrames', 'UntrimmedSampleFrames', 'Decode')


def find_clip_len(pipeline: Sequence[dict]) -> int:
    """Frames of a clip, by a config's test pipeline."""
    for step in pipeline:
        if 'clip_len' in step:
            return step['clip_len']
    raise ValueError('the config samples no frames; give clip_len')


class FeatureExtractor:
    """A recognizer of mmaction2, and what its classifier reads of each step.

    Clips go through the config's own test pipeline, and crops are averaged.
    Threads may share it.

    Args:
        config: The recognizer's config file, or its name.
        checkpoint: Its weights. Defaults to fresh ones.
        device: Where to compute.
        flow: None for frames, or how to compute optical flow of them
            (:class:`OpticalFlow`), for recognizers of flow.
        flow_side: Short side of the frames that flow is computed of.
        bound: Pixels of flow that become 0 or 255.
        clip_len: Frames, or images of flow, of a step. Defaults to those of
            the test pipeline.
        frame_interval: From one of these frames to the next.
        layer: The layer whose input is the features.
        cfg_options: What to change in the config, by dotted keys.

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
        steps = self.model.cfg.test_pipeline
        self.clip_len = clip_len or find_clip_len(steps)
        self.pipeline = Compose([
            step for step in steps
            if not any(word in step['type'] for word in CHOOSING)
        ])
        module = dict(self.model.named_modules()).get(layer)
        if module is None:
            raise ValueError(
                f'layer must be a module of the recognizer, got {layer!r}; '
                'linear ones are '
                + ', '.join(n for n, m in self.model.named_modules()
                            if isinstance(m, nn.Linear)))
        self._read: list[Tensor] = []
        self._lock = threading.Lock()
        module.register_forward_pre_hook(
            lambda module, args: self._read.append(args[0].detach()))

    @property
    def num_frames(self) -> int:
        """Frames of a step: so many images of flow are of one more."""
        return self.clip_len + 1 if self.flow else self.clip_len

    def frames_of_step(self, step: int, fps: float,
                       rate: float) -> np.ndarray:
        """The frames to give to :meth:`images`, oldest first."""
        return frames_of_step(step, fps, rate, self.num_frames,
                              self.frame_interval)

    def images(self, frames: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Frames of a step, RGB ``(H, W, 3)``, to the images of its clip."""
        if not self.flow:
            return frames
        with self._lock:
            return self.flow(frames)

    @torch.no_grad()
    def features(self, clips: Sequence[Sequence[np.ndarray]]) -> Tensor:
        """Images of n clips to features, [n, C], float32, on the device.

        Raises:
            RuntimeError: If the layer did not run.
        """
        batch = pseudo_collate([self._prepare(clip) for clip in clips])
        with self._lock:
            data = self.model.data_preprocessor(batch, False)
            self._read.clear()
            self.model(**data, mode='tensor', stage='head')
            if not self._read:
                raise RuntimeError(f'layer {self.layer} did not run')
            rows = self._read[0]
        # Crops are averaged, and so is whatever else a step has several of.
        return rows.reshape(len(clips), -1, rows.shape[-1]).mean(dim=1).float()

    def _prepare(self, images: Sequence[np.ndarray]) -> dict:
        shape = images[0].shape[:2]
        return self.pipeline(
            dict(
                imgs=list(images),
                modality='Flow' if self.flow else 'RGB',
                original_shape=shape,
                img_shape=shape,
                clip_len=self.clip_len,
                num_clips=1,
                frame_interval=self.frame_interval,
                start_index=0,
                label=-1))
