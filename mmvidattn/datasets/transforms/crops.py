# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Several crops of each frame."""
from mmaction.datasets.transforms import TenCrop
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import Count, check_arguments


@TRANSFORMS.register_module()
@check_arguments
class UniformThreeCrop(BaseTransform):
    """Crop squares at the start, the middle and the end of the longer side.

    All three are in the middle of the shorter side, which may be longer than
    the crop; mmaction2's ``ThreeCrop`` takes one that is as long.

    Required and changed keys: ``imgs`` and ``img_shape``. The frames of the
    first crop come first.

    Args:
        crop_size: Side of the crops.

    Raises:
        ValueError: When called, if the frames are smaller.
    """

    def __init__(self, crop_size: Count) -> None:
        self.crop_size = crop_size

    def transform(self, results: dict) -> dict:
        """Put three crops of each frame in place of the frames."""
        height, width = results['imgs'][0].shape[:2]
        side = self.crop_size
        if min(height, width) < side:
            raise ValueError(
                f'UniformThreeCrop of {side} got frames of {height} x '
                f'{width}; resize the shorter side to {side} or more before')
        top, left = (height - side) // 2, (width - side) // 2
        if width >= height:
            corners = [(top, 0), (top, left), (top, width - side)]
        else:
            corners = [(0, left), (top, left), (height - side, left)]
        results['imgs'] = [
            frame[y:y + side, x:x + side] for y, x in corners
            for frame in results['imgs']
        ]
        results['img_shape'] = side, side
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(crop_size={self.crop_size})'


@TRANSFORMS.register_module()
@check_arguments(crop_size=Count | tuple[Count, Count])
class FlowTenCrop(TenCrop):
    """Crop fields of flow at the corners and in the middle, and mirror each.

    mmaction2's ``TenCrop``, but mirrored motion to the right goes to the left,
    as in TSN's and SSN's code.

    Required and changed keys: ``imgs``, fields of flow ``(H, W, 2)`` in bytes,
    and ``img_shape``.

    Args:
        crop_size: Side of the crops, or (width, height).

    Raises:
        ValueError: When called, if the fields are smaller, or no flow.
    """

    def transform(self, results: dict) -> dict:
        """Put ten crops of each field in place of the fields."""
        fields = results['imgs']
        height, width, channels = fields[0].shape
        if channels != 2:
            raise ValueError('FlowTenCrop takes fields of flow (H, W, 2), got '
                             f'{fields[0].shape}')
        if width < self.crop_size[0] or height < self.crop_size[1]:
            raise ValueError(
                f'FlowTenCrop of {self.crop_size} (width, height) got fields '
                f'of {width} x {height}; resize them before')
        results = super().transform(results)
        for i, field in enumerate(results['imgs']):
            if i // len(fields) % 2:
                field[..., 0] = 255 - field[..., 0]
        return results
