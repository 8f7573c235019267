# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms that crop or resize frames."""
import mmcv
import numpy as np
from mmaction.datasets.transforms import TenCrop
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import Count, Positive, check_arguments


@TRANSFORMS.register_module()
@check_arguments
class UniformThreeCrop(BaseTransform):
    """Crop squares at the start, middle and end of the longer side.

    The crops are centered along the shorter side. They may be smaller than the
    shorter side, unlike in mmaction2's ``ThreeCrop``.

    Required and modified keys: ``imgs`` and ``img_shape``. The result lists
    all frames of the first crop, then of the second crop, then of the third.

    Args:
        crop_size: Side of the crops.

    Raises:
        ValueError: When called, if the frames are smaller than the crops.
    """

    def __init__(self, crop_size: Count) -> None:
        self.crop_size = crop_size

    def transform(self, results: dict) -> dict:
        height, width = results['imgs'][0].shape[:2]
        side = self.crop_size
        if min(height, width) < side:
            raise ValueError(
                f'UniformThreeCrop of {side} needs frames of this size or '
                f'larger, got {height} x {width}; resize them before')
        top, left = (height - side) // 2, (width - side) // 2
        if width >= height:
            corners = [(top, 0), (top, left), (top, width - side)]
        else:
            corners = [(0, left), (top, left), (height - side, left)]
        results['imgs'] = [
            frame[y:y + side, x:x + side] for y, x in corners
            for frame in results['imgs']]
        results['img_shape'] = side, side
        return results


@TRANSFORMS.register_module()
@check_arguments(crop_size=Count | tuple[Count, Count])
class FlowTenCrop(TenCrop):
    """Crop flow fields at the corners and the center, and mirror each crop.

    Mirroring inverts the horizontal motion, as in TSN's and SSN's code;
    mmaction2's ``TenCrop`` only mirrors pixels.

    Required and modified keys: ``imgs``, flow fields ``(H, W, 2)`` as uint8,
    and ``img_shape``.

    Args:
        crop_size: Side of the crops, or (width, height).

    Raises:
        ValueError: When called, if the fields are smaller than the crops, or
            do not have two channels.
    """

    def transform(self, results: dict) -> dict:
        fields = results['imgs']
        height, width, channels = fields[0].shape
        if channels != 2:
            raise ValueError('FlowTenCrop needs flow fields (H, W, 2), got '
                             f'{fields[0].shape}')
        if width < self.crop_size[0] or height < self.crop_size[1]:
            raise ValueError(
                'FlowTenCrop needs fields of at least (width, height) = '
                f'{self.crop_size}, got {width} x {height}; resize them '
                'before')
        results = super().transform(results)
        for i, field in enumerate(results['imgs']):
            if i // len(fields) % 2:
                field[..., 0] = 255 - field[..., 0]
        return results


@TRANSFORMS.register_module()
@check_arguments
class ScaleJitter(BaseTransform):
    """Resize height and width by independent random factors.

    All frames of a sample are resized alike. Unlike mmaction2's
    ``RandomRescale``, the aspect ratio changes.

    Required and modified keys: ``imgs`` and ``img_shape``.

    Args:
        scale_range: Range of the two factors, which are uniformly distributed.
    """

    def __init__(self, scale_range: tuple[Positive, Positive] = (
            0.9, 1.33)) -> None:
        self.scale_range = scale_range

    def transform(self, results: dict) -> dict:
        height, width = (
            max(int(side * np.random.uniform(*self.scale_range)), 1)
            for side in results['imgs'][0].shape[:2])
        results['imgs'] = [
            mmcv.imresize(frame, (width, height)) for frame in results['imgs']]
        results['img_shape'] = height, width
        return results
