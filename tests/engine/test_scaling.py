# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from mmaction.registry import MODEL_WRAPPERS
from mmengine.model import MMDistributedDataParallel
from mmengine.registry import MODEL_WRAPPERS as WRAPPERS_OF_MMENGINE

from mmvidattn.engine.scaling import check_scaling

REFUSED = [
    *(('strategy', dict(type=name), 'Remove `strategy`, and train with Distr')
      for name in ('DeepSpeedStrategy', 'FSDPStrategy', 'MyStrategy')),
    ('strategy', type('Built', (), {})(), "^strategy 'Built' is not supp"),
    *(('model_wrapper_cfg', dict(type=name), 'use MMDistributedDataParallel')
      for name in ('mmengine.DataParallel', 'Mine',
                   *sorted(WRAPPERS_OF_MMENGINE.module_dict.keys()
                           - {'MMDistributedDataParallel'}))),
    ('model_wrapper_cfg', dict(type='FullyShard'),
     "'FullyShard' .* 1ec24a0. Remove `model_wrapper_cfg`, and train with"),
    ('runner_type', 'FlexibleRunner', "'FlexibleRunner' .*'VideoRunner'"),
    ('optim_wrapper', dict(type='DeepSpeedOptimWrapper'), 'Use OptimWrapper'),
    ('optim_wrapper', dict(type='ColossalAIOptimWrapper'), 'Use OptimWrapp'),
    ('optim_wrapper', dict(type='AmpOptimWrapper', use_fsdp=True),
     '^optim_wrapper.use_fsdp True is not supported')]


@pytest.mark.parametrize('key, value, error', REFUSED)
def test_refuses_what_is_ignored_or_hangs(key, value, error):
    with pytest.raises(ValueError, match=error):
        check_scaling({key: value})


def test_accepts_supported_wrappers():

    class Derived(MMDistributedDataParallel):
        pass

    MODEL_WRAPPERS.register_module(name='DerivedFromDDP', module=Derived)
    try:
        for kind in 'MMDistributedDataParallel', Derived, 'DerivedFromDDP':
            check_scaling(dict(model_wrapper_cfg=dict(type=kind)))
    finally:
        MODEL_WRAPPERS.module_dict.pop('DerivedFromDDP')
    check_scaling(dict(model_wrapper_cfg=dict(find_unused_parameters=True)))
    check_scaling(dict(
        model_wrapper_cfg=None, strategy=None, runner_type='VideoRunner',
        optim_wrapper=dict(type='AmpOptimWrapper', use_fsdp=False)))
