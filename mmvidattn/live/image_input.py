# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Preprocessing of images for a network."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..utils.arguments import Count, Positive, check_arguments

Side = Count | tuple[Count, Count]


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
