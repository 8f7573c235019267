# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of transforms, and a check of frames."""
from collections.abc import Sequence

import numpy as np
from mmcv.transforms import BaseTransform


class OptionTransform(BaseTransform):
    """Transform that shows its public attributes in ``repr``."""

    def __repr__(self) -> str:
        options = ', '.join(f'{name}={value!r}'
                            for name, value in vars(self).items()
                            if not name.startswith('_'))
        return f'{type(self).__name__}({options})'


def check_frames(transform: BaseTransform, frames: Sequence) -> None:
    """Raise a ``ValueError`` unless frames are RGB, uint8 [H, W, 3]."""
    for frame in frames:
        if not (isinstance(frame, np.ndarray) and frame.dtype == np.uint8
                and frame.ndim == 3 and frame.shape[2] == 3):
            raise ValueError(
                f'{type(transform).__name__} needs frames of shape (H, W, 3) '
                'and type uint8, before FormatShape; got '
                f'{getattr(frame, "shape", type(frame))} '
                f'{getattr(frame, "dtype", "")}')
