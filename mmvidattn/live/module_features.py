# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Features by any network of torch."""
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .image_input import ImageInput
from .layer_input import LayerInput


class ModuleFeatures:
    """The output of a network, or what one of its layers reads.

    Args:
        model: The network.
        image_input: What it wants its images to be like.
        device: Where to compute.
        layer: The layer whose input is the features. None for the network's
            output.
        clip_len: Images, or flow fields, of a clip.
        name: Of the network, for errors.

    Raises:
        ValueError: If there is no such layer.
    """

    def __init__(self, model: nn.Module, image_input: ImageInput,
                 device: str | torch.device, layer: str | None,
                 clip_len: int, name: str) -> None:
        self.model = model.to(device).eval()
        self.image_input = image_input
        self.device = device
        self.clip_len = clip_len
        self.name = name
        self._input = layer and LayerInput(model, layer)

    def prepare(self, clip: Sequence[np.ndarray]) -> Tensor:
        """See :class:`ImageInput`."""
        return self.image_input(clip)

    def __call__(self, samples: Sequence[Tensor]) -> Tensor:
        """Features of n prepared clips, [n, C].

        Raises:
            ValueError: If what the network gives is not [B, C].
            RuntimeError: If the layer did not run.
        """
        x = torch.cat([*samples]).to(self.device)
        if self._input:
            self._input.clear()
        rows = self.model(x)
        if self._input:
            rows = self._input.first()
        if not isinstance(rows, Tensor) or rows.dim() != 2 or (
                len(rows) != len(x)):
            where = (f'layer {self._input.layer} of {self.name} reads'
                     if self._input else f'{self.name} gives')
            raise ValueError(
                f'{where} {_describe(rows)} for an input of '
                f'{list(x.shape)}; features must be [{len(x)}, C]: wrap the '
                'network in a module that pools its output, or name the '
                'layer that reads the pooled ones as layer')
        # A clip of a network of images has several rows.
        return rows.unflatten(0, (len(samples), -1)).mean(dim=1)


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f'a tensor of shape {list(value.shape)}'
    return f'a {type(value).__name__}'
