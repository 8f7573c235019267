# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import mmcv
import numpy as np
from mmaction.registry import TRANSFORMS

from ...utils.arguments import Positive, check_arguments
from .base_transform import OptionTransform


@TRANSFORMS.register_module()
@check_arguments
class ScaleJitter(OptionTransform):
    """Resize height and width by independent random factors.

    All frames of a sample are resized alike. Unlike mmaction2's
    ``RandomRescale``, the aspect ratio changes.

    Required and modified keys: ``imgs`` and ``img_shape``.

    Args:
        scale_range: Range of the two factors, which are uniformly distributed.
    """

    def __init__(self, scale_range: tuple[Positive, Positive] = (
            0.9, 1.33)) -> None:
        low, high = scale_range
        if low > high:
            raise ValueError('scale_range must be two positive numbers in '
                             f'increasing order, got {scale_range}')
        self.scale_range = low, high

    def transform(self, results: dict) -> dict:
        """Resize all frames to one random size."""
        height, width = (
            max(int(side * np.random.uniform(*self.scale_range)), 1)
            for side in results['imgs'][0].shape[:2])
        results['imgs'] = [
            mmcv.imresize(frame, (width, height)) for frame in results['imgs']]
        results['img_shape'] = height, width
        return results
