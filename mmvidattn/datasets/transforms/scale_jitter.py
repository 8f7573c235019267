# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import mmcv
import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import Positive, check_arguments


@TRANSFORMS.register_module()
@check_arguments
class ScaleJitter(BaseTransform):
    """Resize height and width, each by a factor of its own.

    One draw for all frames. The aspect ratio changes, other than with
    mmaction2's ``RandomRescale``.

    Required and changed keys: ``imgs`` and ``img_shape``.

    Args:
        scale_range: Range of the two factors, each of which is uniform in it.
    """

    def __init__(self, scale_range: tuple[Positive, Positive] = (
            0.9, 1.33)) -> None:
        low, high = scale_range
        if low > high:
            raise ValueError('scale_range must be two positive numbers in '
                             f'order, got {scale_range}')
        self.scale_range = low, high

    def transform(self, results: dict) -> dict:
        """Resize all frames to one drawn size."""
        height, width = (
            max(int(side * np.random.uniform(*self.scale_range)), 1)
            for side in results['imgs'][0].shape[:2])
        results['imgs'] = [
            mmcv.imresize(frame, (width, height)) for frame in results['imgs']
        ]
        results['img_shape'] = height, width
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(scale_range={self.scale_range})'
