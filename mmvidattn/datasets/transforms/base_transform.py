# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base class of transforms that store their options as attributes."""
from mmcv.transforms import BaseTransform


class OptionTransform(BaseTransform):
    """Transform that shows its public attributes in ``repr``."""

    def __repr__(self) -> str:
        options = ', '.join(f'{name}={value!r}'
                            for name, value in vars(self).items()
                            if not name.startswith('_'))
        return f'{type(self).__name__}({options})'
