# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training on long videos that is interrupted and resumed."""
import torch
from toy_runs import Stop, StopHook

from mmvidattn.apis import load_config
from mmvidattn.engine import VideoRunner
from tools.data.online.make_pixels import Recipe, make_pixels


def weights_of(videos, work_dir, resume=False, hooks=()):
    cfg = load_config('linear_ff_causal_tiny_synthetic', {
        'data_root': str(videos), 'work_dir': str(work_dir),
        'train_dataloader.dataset.clip_frames': 48,
        'train_dataloader.batch_size': 2,
        'default_hooks.checkpoint.by_epoch': False,
        'default_hooks.checkpoint.save_best': None,
        'train_cfg.max_epochs': 1, 'train_cfg.val_interval': 5,
        'resume': resume})
    cfg.experiment_name = f'{work_dir.name}_{resume}'
    runner = VideoRunner.from_cfg(cfg)
    for hook in hooks:
        runner.register_hook(hook)
    try:
        runner.train()
    except Stop:
        return None
    return runner.iter, runner.model.state_dict()


def test_resumed_run_has_the_same_weights(tmp_path):
    videos = tmp_path / 'set'
    make_pixels(videos, num_train=2, num_val=1, seed=0, recipe=Recipe(300))
    number, whole = weights_of(videos, tmp_path / 'whole')
    stopped = tmp_path / 'stopped'
    # Stop within the first epoch, and within the clips of a video.
    assert number > 5
    assert weights_of(
        videos, stopped, hooks=[StopHook('after_train_iter', 3)]) is None
    resumed, weights = weights_of(videos, stopped, resume=True)
    assert resumed == number
    assert all(torch.equal(x, weights[name]) for name, x in whole.items())
