# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmengine.model import BaseDataPreprocessor, BaseModel
from torch import nn
from toy_runs import build, log_of

from mmvidattn.engine.hooks.precise_bn_hook import PreciseBNHook, precise_bn


class Model(BaseModel):

    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__(BaseDataPreprocessor())
        self.conv = nn.Conv2d(3, 4, 1)
        self.norm = norm(4)

    def forward(self, inputs, mode='loss'):
        y = self.norm(self.conv(inputs))
        return dict(loss=y.square().mean()) if mode == 'loss' else y


def test_statistics_cover_all_batches_as_in_training():
    """Mixup, for example, changes the statistics."""
    torch.manual_seed(0)
    # The means of batches differ, which adds to the variance.
    batches = [dict(inputs=torch.randn(6, 3, 5, 4) + 3 * i) for i in range(5)]
    model, seen = Model().train(), set()
    model.data_preprocessor.forward = lambda data, training: (
        seen.add(training) or data)
    model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.add(kwargs['mode']),
        with_kwargs=True)
    assert precise_bn(model, batches) == 5
    assert seen == {True, 'loss'}
    with torch.no_grad():
        y = torch.cat([model.conv(batch['inputs']) for batch in batches])
    var, mean = torch.var_mean(y, (0, 2, 3))
    assert torch.allclose(model.norm.running_mean, mean, atol=1e-4)
    assert torch.allclose(model.norm.running_var, var, rtol=0.01)
    assert model.norm.momentum == 0.1


def test_frozen_or_absent_norms_need_no_batches():
    frozen = Model().train()
    frozen.norm.eval()
    absent = Model(lambda channels: nn.GroupNorm(2, channels)).train()
    for model in frozen, absent:
        # Reading the batches would raise.
        assert precise_bn(model, None) == 0


def test_error_restores_the_momentum():
    model = Model().train()
    with pytest.raises(TypeError):
        precise_bn(model, [None])
    assert model.norm.momentum == 0.1


def test_runs_after_epochs_of_training(tmp_path):
    """The hook runs after the third of four epochs, and after the last one."""
    rows = torch.randn(6, 3) + torch.arange(6)[:, None]
    runner = build(
        tmp_path, hooks=[PreciseBNHook(num_batches=1, interval=3)],
        loader=dict(dataset=[dict(inputs=row) for row in rows],
                    sampler=dict(type='DefaultSampler', shuffle=False)))
    linear, norm, *_ = runner.train().layers
    with torch.no_grad():
        want = linear(rows[:3]).mean(0)
    assert torch.allclose(norm.running_mean, want, atol=1e-5)
    assert log_of(tmp_path).count('BatchNorm over 1 batches') == 2
