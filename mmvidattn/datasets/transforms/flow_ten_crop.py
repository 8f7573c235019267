# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.datasets.transforms import TenCrop
from mmaction.registry import TRANSFORMS

from ...utils.arguments import check_arguments


@TRANSFORMS.register_module()
@check_arguments
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
