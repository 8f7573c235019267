# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmengine.model import BaseDataPreprocessor, BaseModel
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from torch import nn
from toy_runs import NUMBERS, log_of

from mmvidattn.engine.hooks.precise_bn_hook import PreciseBNHook, precise_bn


class Model(BaseModel):

    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__(BaseDataPreprocessor())
        self.conv = nn.Conv2d(3, 4, 1)
        self.norm = norm(4)

    def forward(self, inputs, mode='loss'):
        y = self.norm(self.conv(inputs))
        return dict(loss=y.square().mean()) if mode == 'loss' else y


def _batches(count=5):
    torch.manual_seed(0)
    # The means of batches differ, which adds to the variance.
    return [dict(inputs=torch.randn(6, 3, 5, 4) + 3 * i)
            for i in range(count)]


def _all_values(model, batches):
    """Input of the norm, [values, channels]."""
    with torch.no_grad():
        y = torch.cat([model.conv(batch['inputs']) for batch in batches])
    return y.transpose(0, 1).flatten(1).T


def test_statistics_cover_all_batches():
    model, batches = Model().train(), _batches()
    assert precise_bn(model, batches) == 5
    values = _all_values(model, batches)
    assert torch.allclose(model.norm.running_mean, values.mean(0), atol=1e-4)
    assert torch.allclose(
        model.norm.running_var, values.var(0), rtol=0.01)
    assert model.norm.momentum == 0.1


def test_batches_are_processed_as_in_training():
    seen = []

    class Preprocessor(BaseDataPreprocessor):

        def forward(self, data, training=False):
            # Mixup, for example, changes the statistics.
            seen.append(training)
            return data

    class Recorded(Model):

        def forward(self, inputs, mode='tensor'):
            seen.append(mode)
            return super().forward(inputs, mode)

    model = Recorded().train()
    model.data_preprocessor = Preprocessor()
    precise_bn(model, _batches(1))
    assert seen == [True, 'loss']


def test_frozen_norms_keep_their_statistics():
    model = Model().train()
    model.norm.eval()
    assert precise_bn(model, _batches()) == 0
    assert model.norm.running_mean.abs().max() == 0


def test_draws_no_batches_without_batch_norm():
    def fails():
        raise AssertionError
        yield

    model = Model(lambda channels: nn.GroupNorm(2, channels)).train()
    assert precise_bn(model, fails()) == 0


def _runner(model, work_dir, hook):
    frames = torch.cat([batch['inputs'] for batch in _batches()]).unbind()
    return Runner(
        model,
        str(work_dir),
        train_dataloader=dict(
            batch_size=6,
            sampler=dict(type='DefaultSampler', shuffle=False),
            dataset=frames,
            collate_fn=lambda frames: dict(inputs=torch.stack(frames))),
        train_cfg=dict(by_epoch=True, max_epochs=3),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01)),
        custom_hooks=[hook],
        experiment_name=f'precise_bn_{next(NUMBERS)}')


def test_runs_after_epochs_of_training(tmp_path):
    init_default_scope('mmaction')
    model = Model()
    seen = []

    class Seen(PreciseBNHook):

        def after_train_epoch(self, runner):
            super().after_train_epoch(runner)
            seen.append(runner.model.norm.running_mean.clone())

    batches = _batches()
    _runner(model, tmp_path, Seen(num_batches=2, interval=2)).train()
    values = _all_values(model, batches[:2])
    # The hook runs after the second epoch and after the last one.
    assert torch.allclose(seen[2], values.mean(0), atol=1e-4)
    assert not torch.allclose(seen[0], seen[1], atol=1e-2)
    assert log_of(tmp_path).count('BatchNorm over 2 batches') == 2
