# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training on synthetic streams with mmengine's runner."""
import pytest
import torch
from mmengine.hooks import Hook

from mmvidattn.apis import load_config
from mmvidattn.apis.runner import build_runner
from tools.data.online.make_synthetic import Recipe, make_synthetic


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp('online') / 'set'
    make_synthetic(out, 4, 1, 0, Recipe(steps=500))
    return out


class Stop(Exception):
    """Interruption of a run."""


class StopHook(Hook):

    def __init__(self, at):
        self.at = at

    def after_train_iter(self, runner, batch_idx, **kwargs):
        if runner.iter + 1 == self.at:
            raise Stop


@pytest.fixture
def train(data, tmp_path, stream_options):

    def run(name, stop=None, resume=False):
        options = {
            **stream_options(data, tmp_path / name),
            'default_hooks.exact_resume': dict(type='ExactResumeHook'),
            'default_hooks.checkpoint.save_best': None,
            'train_cfg.max_epochs': 2,
            'train_cfg.val_interval': 2,
            'param_scheduler.end': 2,
            'train_dataloader.batch_size': 4,
            'train_dataloader.num_workers': 0,
            'model.backbone.embed_dims': 16,
            'model.backbone.ffn_dims': 16,
            'model.cls_head.in_channels': 16,
        }
        cfg = load_config('testra_tiny_synthetic', options)
        cfg.resume = resume
        runner = build_runner(cfg, strict=False)
        if stop is not None:
            runner.register_hook(StopHook(stop))
        runner.train()
        return torch.load(tmp_path / name / 'epoch_2.pth', weights_only=True)

    return run


def test_resumed_run_equals_uninterrupted_run(train, data):
    full = train('full')
    steps = full['message_hub']['runtime_info']['iter'] + 1
    # Stop in the middle of the second epoch, after the first was saved.
    with pytest.raises(Stop):
        train('stopped', stop=3 * steps // 4)
    resumed = train('stopped', resume=True)
    assert len(full['state_dict']) > 20
    for name, value in full['state_dict'].items():
        assert torch.equal(value, resumed['state_dict'][name]), name
    # With MixClip and dropout, all random numbers must be equal.
    cfg = load_config('testra_tiny_synthetic')
    assert cfg.model.backbone.drop_rate > 0
    assert cfg.train_dataloader.dataset.pipeline[0].type == 'MixClip'
