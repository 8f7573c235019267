# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Feature extraction with any torch network."""
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .image_input import ImageInput
from .layer_input import LayerInput


class ModuleFeatures:
    """Features from the output of a network, or from the input of a layer.

    Args:
        model: Network.
        image_input: Preprocessing of its images.
        device: Device to compute on.
        layer: Layer whose input is the features. None takes the network's
            output.
        clip_len: Number of images, or of flow fields, in a clip.
        name: Name of the network, for errors.

    Raises:
        ValueError: If the layer does not exist.
    """

    def __init__(self, model: nn.Module, image_input: ImageInput,
                 device: str | torch.device, layer: str | None,
                 clip_len: int, name: str) -> None:
        self.model = model.to(device).eval()
        self.device = device
        self.clip_len = clip_len
        self.name = name
        self.prepare = image_input
        self._input = layer and LayerInput(model, layer)

    def __call__(self, samples: Sequence[Tensor]) -> Tensor:
        """Compute the features of n prepared clips, [n, C].

        Raises:
            ValueError: If the features are not [B, C].
            RuntimeError: If the layer did not run.
        """
        x = torch.cat([*samples]).to(self.device)
        if self._input:
            self._input.clear()
        features = self.model(x)
        if self._input:
            features = self._input.first()
        if not isinstance(features, Tensor) or features.dim() != 2 or (
                len(features) != len(x)):
            where = (f'layer {self._input.layer} of {self.name} reads'
                     if self._input else f'{self.name} gives')
            raise ValueError(
                f'{where} {_describe(features)} for an input of '
                f'{list(x.shape)}; features must be [{len(x)}, C]: wrap the '
                'network in a module that pools its output, or pass the name '
                'of the layer that reads the pooled features as layer')
        # A network for images returns features for each image of a clip;
        # average them.
        return features.unflatten(0, (len(samples), -1)).mean(dim=1)


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f'a tensor of shape {list(value.shape)}'
    return f'a {type(value).__name__}'
