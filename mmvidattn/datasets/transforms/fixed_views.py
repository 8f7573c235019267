# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import numpy as np
from mmaction.registry import TRANSFORMS
from mmengine.dataset import Compose

from ...utils.arguments import Count, Natural, check_arguments
from ...utils.random_state import seeded
from .base_transform import OptionTransform


@TRANSFORMS.register_module()
@check_arguments
class FixedViews(OptionTransform):
    """Random transforms with a fixed number of outcomes per video.

    Each outcome, called a view, is reproducible. Results for a view, such as
    the labels of a teacher, can therefore be stored.

    Adds ``view``, the index of the view. It is random unless the sample
    already has one.

    Args:
        transforms: Transforms from decoding to the last random one.
        num_views: Number of views per video.
        seed: Seed that determines the views.

    Raises:
        ValueError: When called, if a sample's view is not below
            ``num_views``.
    """

    def __init__(self, transforms: list[dict], num_views: Count = 1,
                 seed: Natural = 0) -> None:
        self.transforms = Compose(transforms)
        self.num_views = num_views
        self.seed = seed

    def transform(self, results: dict) -> dict | None:
        view = results.setdefault('view', np.random.randint(self.num_views))
        if not 0 <= view < self.num_views:
            raise ValueError(f'view must be in 0 to {self.num_views - 1}, '
                             f'got {view}')
        # Use only the last two parts of the path, because parent folders may
        # differ between machines.
        name = '/'.join(Path(results['filename']).parts[-2:])
        with seeded([self.seed, view, *name.encode()]):
            return self.transforms(results)
