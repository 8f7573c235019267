# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature extraction with an mmaction2 recognizer and its test pipeline."""
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmengine.dataset import Compose, pseudo_collate
from torch import Tensor

from ..apis.bundle_types.registry import types_of
from ..apis.models import get_model
from .layer_input import LayerInput

# Transforms that choose and read the frames of a clip. They are removed,
# because the steps of the stream choose the frames.
READERS = ('Init', 'SampleFrames', 'UniformSample', 'UniformSampleFrames',
           'DenseSampleFrames', 'UntrimmedSampleFrames', 'Decode')
CLASSIFIER = 'cls_head.fc_cls'


class RecognizerFeatures:
    """Features from the input of a recognizer's layer, averaged over crops.

    Args:
        config: Config file of the recognizer, or its name.
        checkpoint: Weights. The weights of the layer itself may be missing, or
            have another shape. None for random weights.
        device: Device to compute on.
        layer: Name of the layer.
        flow: True if clips are optical flow.
        clip_len: Number of images, or of flow fields, in a clip. None takes
            the pipeline's.
        frame_interval: Frames from one image to the next.
        cfg_options: Changes to the config, by dotted keys.

    Raises:
        ValueError: If the layer does not exist.
    """

    def __init__(self, config: str, checkpoint: str | None,
                 device: str | torch.device, layer: str, flow: bool,
                 clip_len: int | None, frame_interval: int,
                 cfg_options: dict[str, Any] | None) -> None:
        self.name = config
        self.model = get_model(config, checkpoint, device, cfg_options,
                               optional=f'{layer}.')
        transforms = self.model.cfg.test_pipeline
        self.clip_len = clip_len or _find_clip_len(transforms)
        with types_of(self.model.cfg):
            self.pipeline = Compose([
                transform for transform in transforms
                if not any(word in transform['type'] for word in READERS)
            ])
        self._input = LayerInput(self.model, layer)
        self._sample = dict(
            modality='Flow' if flow else 'RGB',
            clip_len=self.clip_len,
            num_clips=1,
            frame_interval=frame_interval,
            start_index=0,
            label=-1)

    def prepare(self, clip: Sequence[np.ndarray]) -> dict:
        """Run the pipeline on a clip."""
        shape = clip[0].shape[:2]
        return self.pipeline(dict(
            self._sample, imgs=list(clip), original_shape=shape,
            img_shape=shape))

    def __call__(self, samples: Sequence[dict]) -> Tensor:
        """Compute the features of n prepared clips, [n, C].

        Raises:
            RuntimeError: If the layer did not run.
        """
        data = self.model.data_preprocessor(pseudo_collate(samples), False)
        self._input.clear()
        self.model(**data, mode='tensor', stage='head')
        features = self._input.first()
        # Average over crops and all other axes.
        return features.reshape(
            len(samples), -1, features.shape[-1]).mean(dim=1)


def _find_clip_len(transforms: Sequence[dict]) -> int:
    for transform in transforms:
        if 'clip_len' in transform:
            return transform['clip_len']
    raise ValueError('clip_len is needed: no step of the test pipeline has it')
