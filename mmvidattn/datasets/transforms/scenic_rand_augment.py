# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""scenic's RandAugment, which treats a clip as one image."""
from collections.abc import Callable

import cv2
import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform
from PIL import Image, ImageOps

from ...utils.arguments import Count, NotNegative, check_arguments
from .auto_augment import check_frames

MAX_MAGNITUDE = 20
# Type of a clip: uint8 [T, H, W, 3].
Clip = np.ndarray


def _blend(other: np.ndarray | float, clip: Clip, magnitude: float) -> Clip:
    """Multiply the difference between a clip and another one."""
    other = np.array(other, np.float32, ndmin=1)
    factor = np.float32(magnitude / 10 * 1.8 + 0.1)
    return (other + factor * (clip - other)).clip(0, 255).astype(np.uint8)


def _with_table(clip: Clip, tables: list[np.ndarray]) -> Clip:
    """Apply a lookup table to each channel."""
    return np.stack([table.astype(np.uint8)[clip[..., c]]
                     for c, table in enumerate(tables)], axis=-1)


def _auto_contrast(clip: Clip, magnitude: float) -> Clip:
    tables = []
    for channel in np.moveaxis(clip, -1, 0):
        low, high = float(channel.min()), float(channel.max())
        values = np.arange(256, dtype=np.float32)
        if high > low:
            scale = np.float32(255 / (high - low))
            values = (values * scale - low * scale).clip(0, 255)
        tables.append(values)
    return _with_table(clip, tables)


def _equalize(clip: Clip, magnitude: float) -> Clip:
    image = Image.fromarray(clip.reshape(-1, *clip.shape[2:]))
    return np.array(ImageOps.equalize(image)).reshape(clip.shape)


def _posterize(clip: Clip, magnitude: float) -> Clip:
    shift = 8 - int(magnitude / 10 * 4)
    return np.uint8(clip >> shift << shift)


def _solarize(clip: Clip, magnitude: float) -> Clip:
    # Thresholds above 255 wrap like bytes, so 512 inverts the clip.
    threshold = int(magnitude / 10 * 256) % 256
    return np.where(clip < threshold, clip, 255 - clip)


def _solarize_add(clip: Clip, magnitude: float) -> Clip:
    added = int(magnitude / 10 * 110)
    values = np.arange(256)
    values[:128] = (values[:128] + added).clip(0, 255)
    return _with_table(clip, [values] * 3)


def _color(clip: Clip, magnitude: float) -> Clip:
    weights = np.float32([0.2989, 0.587, 0.114])
    # TensorFlow multiplies by 255.5 when it converts floats to bytes.
    gray = (clip @ (weights * np.float32(255.5 / 255))).astype(np.uint8)
    return _blend(gray[..., None], clip, magnitude)


def _contrast(clip: Clip, magnitude: float) -> Clip:
    # Like the released code, use the mean of the histogram's 256 counts
    # instead of the mean value.
    mean = min(clip[..., 0].size // 256, 255)
    return _blend(mean, clip, magnitude)


def _sharpness(clip: Clip, magnitude: float) -> Clip:
    # Frames are stacked: a frame's last row is next to the following frame.
    image = clip.reshape(-1, *clip.shape[2:])
    kernel = np.ones((3, 3), np.float32)
    kernel[1, 1] = 5
    total = cv2.filter2D(image, cv2.CV_32F, kernel)
    smooth = image.copy()
    smooth[1:-1, 1:-1] = total[1:-1, 1:-1] // 13
    return _blend(smooth, image, magnitude).reshape(clip.shape)


def _cutout(clip: Clip, magnitude: float) -> Clip:
    half = int(magnitude / 10 * 40)
    y, x = (np.random.randint(side) for side in clip.shape[1:3])
    clip = clip.copy()
    clip[:, max(y - half, 0):y + half, max(x - half, 0):x + half] = 0
    return clip


OPS: dict[str, Callable[[Clip, float], Clip]] = {
    'auto_contrast': _auto_contrast,
    'equalize': _equalize,
    'invert': lambda clip, magnitude: 255 - clip,
    'posterize': _posterize,
    'solarize': _solarize,
    'color': _color,
    'contrast': _contrast,
    'brightness': lambda clip, magnitude: _blend(0, clip, magnitude),
    'sharpness': _sharpness,
    'cutout': _cutout,
    'solarize_add': _solarize_add,
    'identity': lambda clip, magnitude: clip,
}


@TRANSFORMS.register_module()
@check_arguments
class ScenicRandAugment(BaseTransform):
    """RandAugment of scenic's ViViT for Something-Something and EPIC.

    ``num_ops`` operations are drawn per sample, uniformly and with
    replacement, from eleven operations and the identity. No operation moves
    pixels. Histograms, extremes and neighbors are computed on one image with
    all frames stacked vertically. A cutout is at the same place in all
    frames.

    Like the released code, it differs from the paper (``RandAugment``): color,
    brightness and sharpness only increase; from magnitude 10, the threshold of
    solarize wraps around; contrast uses 255 as the mean of clips of usual
    size, so it darkens.

    Required and modified key: ``imgs``, a list of ``(H, W, 3)`` uint8 arrays
    of one size, before ``FormatShape``.

    Args:
        num_ops: Number of operations per sample. Defaults to 2.
        magnitude: Strength from 0 to 20. At 20, posterize keeps all 8 bits.
            The released recipes use 20 (Something-Something) and 15
            (EPIC-Kitchens). Defaults to 20.
    """

    def __init__(self, num_ops: Count = 2,
                 magnitude: NotNegative = 20) -> None:
        if magnitude > MAX_MAGNITUDE:
            raise ValueError(f'magnitude must be in [0, {MAX_MAGNITUDE}], got '
                             f'{magnitude}')
        self.num_ops = num_ops
        self.magnitude = magnitude

    def transform(self, results: dict) -> dict:
        check_frames(self, results['imgs'])
        # All frames must have one size.
        clip = np.stack(results['imgs'])
        for name in np.random.choice(list(OPS), self.num_ops).tolist():
            clip = OPS[name](clip, self.magnitude)
        results['imgs'] = list(clip)
        return results
