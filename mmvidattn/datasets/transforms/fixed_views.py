# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform
from mmengine.dataset import Compose

from ...utils.arguments import Count, Natural, check_arguments
from ...utils.random_state import seeded


@TRANSFORMS.register_module()
@check_arguments
class FixedViews(BaseTransform):
    """Random transforms that have few outcomes, the same each time.

    Each video has ``num_views`` views, each of which is one outcome of the
    transforms; one of them is chosen. So what is known of a view, such as a
    teacher's labels of it, can be kept.

    Adds ``view``, the number of the view. It is chosen at random unless the
    sample has one.

    Args:
        transforms: The transforms, from the decoding to the last random one.
        num_views: How many outcomes there are of each video.
        seed: With another one they are others.

    Raises:
        ValueError: If ``num_views`` is less than 1, or a sample's view is none
            of these.
    """

    def __init__(self,
                 transforms: list[dict],
                 num_views: Count = 1,
                 seed: Natural = 0) -> None:
        self.transforms = Compose(transforms)
        self.num_views = num_views
        self.seed = seed

    def transform(self, results: dict) -> dict | None:
        view = results.setdefault('view', np.random.randint(self.num_views))
        if not 0 <= view < self.num_views:
            raise ValueError(f'view must be from 0 to {self.num_views - 1}, '
                             f'got {view}')
        # The folders above may differ by machine.
        name = '/'.join(Path(results['filename']).parts[-2:])
        with seeded([self.seed, view, *name.encode()]):
            return self.transforms(results)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(num_views={self.num_views}, '
                f'seed={self.seed}, {self.transforms})')
