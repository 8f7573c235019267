# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import random

import numpy as np
import pytest
import torch
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform
from mmengine.registry import init_default_scope


class Draw(BaseTransform):
    """Draw a number from every generator."""

    def transform(self, results):
        results['drawn'] = (random.random(), np.random.rand(),
                            torch.rand(()).item())
        return results


@pytest.fixture
def views():
    init_default_scope('mmaction')
    TRANSFORMS.register_module(module=Draw, force=True)
    yield lambda **kwargs: TRANSFORMS.build(
        dict(type='FixedViews', transforms=[dict(type='Draw')], **kwargs))
    TRANSFORMS._module_dict.pop('Draw')


def _drawn(transform, name='run/a.mp4', **kwargs):
    return transform(dict(filename=name, **kwargs))['drawn']


def test_view_is_reproducible_on_every_machine(views):
    transform = views(num_views=3)
    first = _drawn(transform, view=1)
    np.random.seed(5)
    assert _drawn(transform, '/other/run/a.mp4', view=1) == first


def test_views_videos_and_seeds_differ(views):
    drawn = {_drawn(views(num_views=2, seed=seed), name, view=view)
             for seed in (0, 1) for name in ('run/a.mp4', 'run/b.mp4')
             for view in (0, 1)}
    assert len(drawn) == 8


def test_chooses_among_all_views(views):
    transform, seen = views(num_views=3), {}
    for _ in range(40):
        results = transform(dict(filename='run/a.mp4'))
        seen.setdefault(results['view'], set()).add(results['drawn'])
    assert sorted(seen) == [0, 1, 2]
    assert all(len(drawn) == 1 for drawn in seen.values())


def test_does_not_change_the_generators(views):
    transform = views()
    random.seed(0), torch.manual_seed(0)
    want = random.random(), torch.rand(()).item()
    random.seed(0), torch.manual_seed(0)
    transform(dict(filename='a', view=0))
    assert (random.random(), torch.rand(()).item()) == want


@pytest.mark.parametrize('view', [-1, 2])
def test_rejects_view_out_of_range(views, view):
    with pytest.raises(ValueError, match=f'in 0 to 1, got {view}'):
        _drawn(views(num_views=2), view=view)
