# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Networks that are not mmaction2 recognizers, and the input that they take.

* ``timm://NAME``: ``timm.create_model(NAME)``, without its classifier.
* ``MODULE:CALLABLE``: a network that is imported from the module, or that a
  function of the module returns.
"""
import importlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..utils.arguments import Count, Positive, check_arguments
from ..utils.checkpoint import (
    load_checkpoint,
    load_state_dict_file,
    load_tensors,
)

TIMM = 'timm://'
PRETRAINED = 'pretrained'
HUB = 'hf://'
_CALLABLE = re.compile(r'[A-Za-z_][\w.]*:[A-Za-z_][\w.]*')
Side = Count | tuple[Count, Count]


def is_network(config: Any) -> bool:
    """Return True for a network or its name, but not for a config."""
    if isinstance(config, nn.Module):
        return True
    text = str(config)
    return text.startswith((TIMM, HUB)) or bool(_CALLABLE.fullmatch(text))


def find_network(config: str | nn.Module, checkpoint: str | Path | None
                 ) -> tuple[nn.Module, str, dict[str, Any]]:
    """Build a network.

    Args:
        config: Network, or its name in a format listed at the top of this
            file.
        checkpoint: Weights: a file, or ``hf://OWNER/MODEL@REVISION``. For
            timm also 'pretrained', which downloads timm's weights for this
            name. None keeps the network's weights, which are random for a
            timm model.

    Returns:
        The network, its name for errors, and the known arguments of
        :class:`ImageInput`.

    Raises:
        ValueError: If the network does not exist, or the weights do not match.
        ImportError: If timm is needed and not installed.
    """
    if isinstance(config, nn.Module):
        model, name = config, type(config).__name__
    elif config.startswith(TIMM):
        return _timm(config, checkpoint)
    elif config.startswith(HUB):
        raise ValueError(
            f'{config} cannot be a network, only a checkpoint: networks of '
            'the Hugging Face Hub were removed after 9c2945cd. Write a '
            'function that returns the network, and pass MODULE:CALLABLE')
    else:
        model, name = _call(config), config
    if checkpoint is not None:
        load_checkpoint(model, checkpoint)
    return model, name, {}


def _call(name: str) -> nn.Module:
    module, _, path = name.partition(':')
    try:
        target = importlib.import_module(module)
        for part in path.split('.'):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f'{name} must be MODULE:CALLABLE that can be '
                         f'imported: {error}') from error
    is_function = callable(target) and not isinstance(target, nn.Module)
    model = target() if is_function else target
    if not isinstance(model, nn.Module):
        raise ValueError(f'{name} must return an nn.Module, got a '
                         f'{type(model).__name__}')
    return model


def _timm(name: str, checkpoint: str | Path | None
          ) -> tuple[nn.Module, str, dict[str, Any]]:
    try:
        import timm
    except ImportError as error:
        raise ImportError(f'{name} needs timm: pip install timm: {error}'
                          ) from error
    short = name.removeprefix(TIMM)
    if not timm.is_model(short.partition('.')[0]):
        raise ValueError(f'{name}: timm has no model of this name; see '
                         'timm.list_models()')
    model = timm.create_model(
        short, pretrained=checkpoint == PRETRAINED, num_classes=0)
    cfg = model.pretrained_cfg
    if checkpoint not in (None, PRETRAINED):
        layers = cfg.get('classifier') or ()
        layers = (layers, ) if isinstance(layers, str) else layers
        heads = tuple(f'{layer}.' for layer in layers)
        load_tensors(
            model, {key: x for key, x
                    in load_state_dict_file(checkpoint).items()
                    if not key.startswith(heads)}, str(checkpoint))
    return model, name, timm_input(cfg, name)


def timm_input(cfg: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the arguments of :class:`ImageInput` for timm's evaluation.

    Args:
        cfg: ``pretrained_cfg`` of the model. Missing entries are left out.
        name: Name of the model, for errors.
    """
    settings = dict(takes='frames', value_range=1.)
    for key in 'mean', 'std':
        if cfg.get(key) is not None:
            settings[key] = tuple(cfg[key])
    if cfg.get('interpolation'):
        settings['interpolation'] = cfg['interpolation']
    if cfg.get('input_size'):
        height, width = cfg['input_size'][-2:]
        fraction = cfg.get('crop_pct') or 1.
        mode = cfg.get('crop_mode') or 'center'
        scaled = [math.floor(side / fraction) for side in (height, width)]
        if mode == 'squash':
            settings['resize'] = tuple(scaled)
        elif mode == 'center' and height == width:
            settings['resize'] = scaled[0]
        else:
            raise ValueError(
                f'crop_mode={mode!r} of {name} is not supported for '
                f'{height} x {width}: pass resize and crop in input')
        settings['crop'] = (height, width)
    return settings


@check_arguments
@dataclass(frozen=True)
class ImageInput:
    """Conversion of uint8 images to the input of a network.

    Images are resized and rounded to bytes like in image libraries, cropped at
    the center, and scaled to the range from 0 to ``value_range``. Then the
    mean is subtracted, and the result is divided by the standard deviation.

    Attributes:
        takes: Input of the network. 'frames' are images [B, C, H, W], whose
            features are averaged over a clip; flow fields are concatenated
            along the channels (x, y, x, y, ...). 'clips' are [B, C, T, H, W].
        mean: Mean in units of ``value_range``: one number, or one for each
            channel in the order of ``color``.
        std: Standard deviation in the same format.
        value_range: Largest value: 1, or 255 for values of bytes.
        resize: Short side in pixels, or (height, width). None keeps the size.
        crop: Side in pixels, or (height, width). None does not crop.
        interpolation: Interpolation for resizing: 'bilinear' or 'bicubic',
            with anti-aliasing, or 'nearest', without.
        color: Order of the channels, 'RGB' or 'BGR'. Ignored for flow.

    Raises:
        ValueError: If a value is not allowed.
    """
    takes: Literal['frames', 'clips']
    mean: float | Sequence[float]
    std: float | Sequence[float]
    value_range: Positive = 1.
    resize: Side | None = None
    crop: Side | None = None
    interpolation: Literal['bilinear', 'bicubic', 'nearest'] = 'bilinear'
    color: Literal['RGB', 'BGR'] = 'RGB'

    def __call__(self, clip: Sequence[np.ndarray]) -> Tensor:
        """Convert a clip to the network's input.

        Args:
            clip: RGB images ``(H, W, 3)`` or flow fields ``(H, W, 2)``,
                uint8.

        Returns:
            [T, 3, H, W] for a network that takes 'frames', [1, 2 T, H, W] if
            these are flow, and [1, C, T, H, W] for one that takes 'clips'.

        Raises:
            ValueError: If the images are smaller than the crop, or mean or
                std are for another number of channels.
        """
        images = clip[0][None] if len(clip) == 1 else np.stack(clip)
        # Copy only what torch cannot share.
        images = np.require(images, requirements=['C', 'W'])
        x = torch.from_numpy(images).permute(0, 3, 1, 2)
        is_flow = x.shape[1] == 2
        x = self._crop(self._resize(x)).float()
        if self.color == 'BGR' and not is_flow:
            x = x.flip(1)
        if is_flow and self.takes == 'frames':
            x = x.flatten(0, 1)[None]
        x = x * (self.value_range / 255)
        x = (x - self._by_channel('mean', x)) / self._by_channel('std', x)
        return x.transpose(0, 1)[None] if self.takes == 'clips' else x

    def _resize(self, x: Tensor) -> Tensor:
        if self.resize is None:
            return x
        height, width = x.shape[-2:]
        if isinstance(self.resize, Sequence):
            size = tuple(self.resize)
        else:
            # Round the long side as torchvision and transformers do.
            short = min(height, width)
            size = (self.resize * height // short,
                    self.resize * width // short)
        if size == (height, width):
            return x
        nearest = self.interpolation == 'nearest'
        x = F.interpolate(
            x.float(), size=size,
            mode='nearest-exact' if nearest else self.interpolation,
            antialias=not nearest)
        return x.round().clamp(0, 255)

    def _crop(self, x: Tensor) -> Tensor:
        if self.crop is None:
            return x
        height, width = (self.crop if isinstance(self.crop, Sequence) else
                         (self.crop, self.crop))
        top, left = (round((have - want) / 2) for have, want in zip(
            x.shape[-2:], (height, width)))
        if top < 0 or left < 0:
            raise ValueError(
                f'crop must fit into the images, which are {x.shape[-2]} x '
                f'{x.shape[-1]}, got {self.crop}; enlarge them with resize')
        return x[..., top:top + height, left:left + width]

    def _by_channel(self, name: str, x: Tensor) -> Tensor:
        values = getattr(self, name)
        values = torch.tensor(
            values if isinstance(values, Sequence) else [values]).float()
        if len(values) not in (1, x.shape[1]):
            raise ValueError(f'{name} must be one number, or one for each of '
                             f'{x.shape[1]} channels, got {len(values)}')
        return values[:, None, None]
