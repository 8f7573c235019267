# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import check_arguments


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

    def __init__(self, crop_size: int) -> None:
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
