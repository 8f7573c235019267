# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What a network wants its images to be like."""
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
    """Turns images in bytes into the input of a network.

    They are resized, rounded to bytes as image libraries do, cropped in the
    middle, and scaled to 0 to ``value_range``; then the mean is subtracted,
    and they are divided by the deviation.

    Attributes:
        takes: 'frames', images [B, C, H, W]: of a clip of several, features
            are averaged. Fields of flow are joined along the channels, (x, y,
            x, y, ...). Or 'clips', [B, C, T, H, W].
        mean: In units of ``value_range``: one number, or one for each channel
            in the order of ``color``.
        std: Likewise.
        value_range: 1 for values from 0 to 1, 255 for those of bytes.
        resize: Short side in pixels, or (height, width). None: as they are.
        crop: Side in pixels, or (height, width). None: no crop.
        interpolation: Of the resizing, with anti-aliasing: 'bilinear',
            'bicubic' or 'nearest' (which has none).
        color: Order of the channels, 'RGB' or 'BGR'; no matter with flow.

    Raises:
        ValueError: If a value is none of those.
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
        """Make the network's input of a clip.

        Args:
            clip: RGB images ``(H, W, 3)`` or fields of flow ``(H, W, 2)``,
                uint8.

        Returns:
            'frames': [T, 3, H, W], or of flow [1, 2 T, H, W]; 'clips':
            [1, C, T, H, W].

        Raises:
            ValueError: If the images are smaller than the crop, or mean and
                deviation are not of as many channels as there are.
        """
        x = torch.from_numpy(np.stack(clip)).permute(0, 3, 1, 2).float()
        is_flow = x.shape[1] == 2
        x = self._crop(self._resize(x))
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
            # As torchvision and transformers round the long side.
            short = min(height, width)
            size = (self.resize * height // short,
                    self.resize * width // short)
        if size == (height, width):
            return x
        nearest = self.interpolation == 'nearest'
        x = F.interpolate(
            x, size=size,
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
                f'{x.shape[-1]}, got {self.crop}; resize makes them larger')
        return x[..., top:top + height, left:left + width]

    def _by_channel(self, name: str, x: Tensor) -> Tensor:
        values = getattr(self, name)
        values = torch.tensor(
            values if isinstance(values, Sequence) else [values]).float()
        if len(values) not in (1, x.shape[1]):
            raise ValueError(f'{name} must be a number, or one for each of '
                             f'{x.shape[1]} channels, got {len(values)}')
        return values[:, None, None]
