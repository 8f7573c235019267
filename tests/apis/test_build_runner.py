# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmengine.config import Config
from mmengine.registry import DefaultScope

from mmvidattn.apis.build_runner import (
    add_default_runtime,
    build_runner,
    load_runner_config,
)
from mmvidattn.commands import make_parser
from mmvidattn.engine import VideoRunner

OLD = dict(runner_type='Mine', default_hooks=dict(
    checkpoint=dict(type='CheckpointHook', interval=7),
    logger=dict(type='MyLogger')))


def test_default_runtime_keeps_options():
    cfg = Config({})
    add_default_runtime(cfg)
    assert cfg.runner_type == 'VideoRunner'
    assert cfg.default_hooks.nan_guard.type == 'SkipNanStepsHook'
    cfg = Config(OLD)
    add_default_runtime(cfg)
    assert cfg.runner_type == 'Mine'
    assert cfg.default_hooks.checkpoint == dict(
        type='AtomicCheckpointHook', interval=7)
    assert cfg.default_hooks.logger == dict(type='MyLogger')


def test_warns_of_keys_that_change_nothing(tmp_path):
    path = tmp_path / 'mine.py'
    path.write_text("_base_ = 'mmvidattn::linear_ff_tiny_motion.py'\n"
                    "data_root = 'mine'\ntrain_cgf = {}\nmodle = {}\n")
    with pytest.warns(UserWarning, match="data_root='mine' .*no path"), \
            pytest.warns(UserWarning, match='train_cgf .*mean train_cfg'), \
            pytest.warns(UserWarning, match='modle .*mean model'):
        load_runner_config(make_parser('train').parse_args([str(path)]))


@pytest.mark.parametrize('added', [{}, dict(runner_type='VideoRunner')])
def test_config_without_runner_type_gets_safe_runner(tmp_path, added):
    cfg = Config(dict(
        model=dict(type='Recognizer2D', cls_head=None, backbone=dict(
            type='ResNet', depth=18, num_stages=1, strides=(1, ),
            dilations=(1, ), out_indices=(0, ))),
        work_dir=str(tmp_path), default_scope='mmaction',
        experiment_name=f'{tmp_path.name}_{len(added)}',
        default_hooks=dict(nan_guard=dict(type='SkipNanStepsHook')), **added))
    # Another library may have left its scope.
    with DefaultScope.overwrite_default_scope('mmengine'):
        runner = build_runner(cfg, strict=False)
    assert type(runner) is VideoRunner
    assert cfg.get('runner_type') == added.get('runner_type')
