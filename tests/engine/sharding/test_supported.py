# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmaction.registry import MODEL_WRAPPERS
from mmengine.config import Config
from mmengine.model import MMDistributedDataParallel
from mmengine.registry import MODEL_WRAPPERS as WRAPPERS_OF_MMENGINE
from mmengine.registry import STRATEGIES

from mmvidattn.engine import SafeRunner
from mmvidattn.engine.sharding import check_scaling

WRAPPERS = [
    'MMFullyShardedDataParallel', 'MMSeparateDistributedDataParallel',
    'MMDeepSpeedEngineWrapper', 'CollosalAIModelWrapper',
    'ColossalAIModelWrapper', 'DataParallel', 'DistributedDataParallel']
SHARDED = dict(model_wrapper_cfg=dict(type='FullyShard'))
STRATEGY_NAMES = ['DeepSpeedStrategy', 'ColossalAIStrategy', 'FSDPStrategy',
                  'DDPStrategy', 'SingleDeviceStrategy']


def test_lists_are_complete():
    """The installed mmengine has no further strategies and wrappers."""
    import mmengine._strategy  # noqa: F401
    assert set(STRATEGIES.module_dict) <= set(STRATEGY_NAMES)
    assert set(WRAPPERS_OF_MMENGINE.module_dict) <= {
        *WRAPPERS, 'FullyShard', 'MMDistributedDataParallel'}


@pytest.mark.parametrize('name', [*STRATEGY_NAMES, 'mmengine.DDPStrategy',
                                  'MyStrategy'])
def test_refuses_strategies(name):
    with pytest.raises(ValueError, match=(
            f"^strategy '{name.rpartition('.')[2]}' is not supported.* "
            r"Remove `strategy`, and (train with Distrib|start one process|"
            r"use model_wrapper_cfg=dict\(type='FullyShard'\))")):
        check_scaling(dict(strategy=dict(type=name)))


def test_refuses_strategies_that_are_built():
    with pytest.raises(ValueError, match="^strategy 'Built' is not supported"):
        check_scaling(dict(strategy=type('Built', (), {})()))


@pytest.mark.parametrize('name', [*WRAPPERS, 'mmengine.DataParallel', 'Mine'])
def test_refuses_wrappers(name):
    with pytest.raises(ValueError, match=(
            f"^model_wrapper_cfg.type '{name.rpartition('.')[2]}' is not "
            'supported: use FullyShard, MMDistributedDataParallel')):
        check_scaling(dict(model_wrapper_cfg=dict(type=name)))


@pytest.mark.parametrize('options, error', [
    (dict(runner_type='FlexibleRunner'), "'FlexibleRunner' .*'SafeRunner'"),
    (dict(optim_wrapper=dict(type='DeepSpeedOptimWrapper')),
     "'DeepSpeedOptimWrapper' .*Use OptimWrapper"),
    (dict(optim_wrapper=dict(type='ColossalAIOptimWrapper')),
     "'ColossalAIOptimWrapper' .*Use OptimWrapper"),
    (dict(optim_wrapper=dict(type='AmpOptimWrapper', use_fsdp=True)),
     'optim_wrapper.use_fsdp is not supported'),
    (dict(SHARDED, runner_type='Runner'), "needs .* 'SafeRunner', got 'Runn"),
    (dict(SHARDED, compile=True), 'FullyShard does not support compile'),
    (dict(SHARDED, custom_hooks=[dict(type='FeatureCacheHook')]),
     'FullyShard does not support FeatureCacheHook')], ids=str)
def test_refuses_other_parts(options, error):
    with pytest.raises(ValueError, match=error):
        check_scaling(options)


def test_accepts_supported_wrappers():

    class Derived(MMDistributedDataParallel):
        pass

    MODEL_WRAPPERS.register_module(name='DerivedFromDDP', module=Derived)
    try:
        for kind in 'MMDistributedDataParallel', Derived, 'DerivedFromDDP':
            check_scaling(dict(model_wrapper_cfg=dict(type=kind)))
    finally:
        MODEL_WRAPPERS.module_dict.pop('DerivedFromDDP')
    check_scaling(SHARDED)
    check_scaling(dict(SHARDED, runner_type='SafeRunner'))
    check_scaling(dict(model_wrapper_cfg=dict(find_unused_parameters=True)))
    check_scaling(dict(
        model_wrapper_cfg=None, strategy=None,
        optim_wrapper=dict(type='AmpOptimWrapper')))


def test_runner_refuses():
    with pytest.raises(ValueError, match='DeepSpeedStrategy'):
        SafeRunner.from_cfg(Config(dict(
            strategy=dict(type='DeepSpeedStrategy'))))
