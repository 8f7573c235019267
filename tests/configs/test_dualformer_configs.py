# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
from config_cache import load_config
from mmaction.registry import MODELS
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

from mmvidattn.apis.complexity import view_of


def _groups(cfg):
    """Return learning rate and decay of each parameter of a small model."""
    init_default_scope('mmaction')
    model = copy.deepcopy(cfg.model)
    model.update(data_preprocessor=None)
    model.backbone.arch = dict(
        embed_dims=8, num_layers=(2, 2, 2, 2), num_heads=(1, 1, 2, 2))
    model.cls_head.in_channels = 64
    model = MODELS.build(model)
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    settings = {}
    for group in optim_wrapper.param_groups:
        for p in group['params']:
            settings[p] = group['lr'], group['weight_decay']
    return {name: settings[p] for name, p in model.named_parameters()}


@pytest.mark.parametrize('name', ['tiny_k400', 'base_k600', 'tiny_tl_k400'])
def test_groups_match_the_effective_groups_of_the_released_recipe(name):
    cfg = load_config(f'dualformer_{name}')
    lr = cfg.optim_wrapper.optimizer.lr
    decay = cfg.optim_wrapper.optimizer.weight_decay
    for key, group in _groups(cfg).items():
        if key.startswith('backbone.pegs'):
            want = lr, 0
        elif key.startswith('backbone'):
            want = lr / 10, decay
        else:
            want = lr, decay
        assert group == pytest.approx(want), key


def test_options_of_the_comments_select_other_test_clips():
    cfg = load_config('dualformer_tiny_k400', {
        'test_dataloader.dataset.pipeline.1.type': 'SampleFrames',
        'test_dataloader.dataset.pipeline.4.type': 'ThreeCrop',
        'test_dataloader.dataset.pipeline.1.num_clips': 10})
    assert view_of(cfg.test_dataloader.dataset.pipeline) == (
        (32, 224, 224), 30)


def test_motion_teacher_is_the_wide_config():
    teacher = load_config('dualformer_tiny_tl_motion').model.teacher
    wide = load_config('dualformer_wide_motion').model
    assert teacher.backbone.arch == wide.backbone.arch
    init_default_scope('mmaction')
    state = MODELS.build(teacher.to_dict()).state_dict()
    MODELS.build(wide.to_dict()).load_state_dict(state)
