# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import functools
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from killed_runs import differences
from mmengine.hooks import EMAHook, Hook
from toy_runs import Stop, build, log_of

from mmvidattn.engine.hooks import exact_resume_hook
from mmvidattn.utils.random_state import get_random_state


@pytest.fixture(autouse=True)
def random_start():
    """Start each run from random generators in an unknown state."""
    random.seed()
    np.random.seed()
    torch.seed()


def trained(runner):
    """Train, and return the final state of the run."""
    model = runner.train()
    return dict(
        weights=model.state_dict(), logs={**runner.message_hub.log_scalars},
        optimizer=runner.optim_wrapper.state_dict()['state'],
        random=get_random_state(), epoch=runner.epoch, iter=runner.iter,
        best=runner.message_hub.get_info('best_score'))


class SeedEpochHook(Hook):
    """Seed each epoch, like a hook of a user."""

    def before_train_epoch(self, runner):
        np.random.seed(runner.epoch)
        torch.manual_seed(runner.epoch)


# Checkpoints of every second iteration.
EVERY_SECOND = dict(by_epoch=False, interval=2)
# Event and number of it after which a run stops, and options of the run.
STOPS = {
    'in validation': (('after_val_iter', 3), {}),
    'at the end of validation': (('after_val_epoch', 2), {}),
    # The first score is a new best, so the checkpoint is saved twice.
    'after a new best score': (('after_val_epoch', 1), {}),
    'in an epoch': (('after_train_iter', 6), dict(
        save='iter', workers=1, counts=4, hooks=(EMAHook, SeedEpochHook))),
}


@pytest.fixture(scope='module')
def full_run(tmp_path_factory):
    """Function that returns the final state of an uninterrupted run."""

    @functools.cache
    def run(**options):
        return trained(build_run(tmp_path_factory.mktemp('full'), **options))

    return run


def build_run(folder, hooks=(), counts=1, save='epoch', **more):
    """Build a run whose options, except ``more``, can be hashed."""
    return build(
        folder, hooks=[hook() for hook in hooks],
        wrapper=dict(accumulative_counts=counts),
        checkpoint={} if save == 'epoch' else EVERY_SECOND, **more)


@pytest.mark.parametrize('stop, options', STOPS.values(), ids=STOPS)
def test_resumed_run_ends_bit_equal(tmp_path, full_run, stop, options):
    full = full_run(**options)
    with pytest.raises(Stop):
        build_run(tmp_path, stop=stop, **options).train()
    resumed = trained(build_run(tmp_path, resume=True, **options))
    assert not [*differences(full, resumed)]
    if 'save' in options:
        # Run 2 starts in the middle of epoch 2, and logs the end of it.
        assert log_of(tmp_path).count('[2][4/4]') == 1


def test_run_without_a_seed_resumes_bit_equal(tmp_path):
    """The reference is a run resumed from the first checkpoint."""
    options = dict(seed=None, checkpoint=EVERY_SECOND)
    with pytest.raises(Stop):
        build(tmp_path / 'start', stop=('after_train_iter', 2),
              **options).train()
    for name in 'full', 'run':
        copy_run(tmp_path / 'start', tmp_path / name)
    full = trained(build(tmp_path / 'full', resume=True, **options))
    with pytest.raises(Stop):
        build(tmp_path / 'run', resume=True, stop=('after_train_iter', 4),
              **options).train()
    resumed = trained(build(tmp_path / 'run', resume=True, **options))
    assert not [*differences(full, resumed)]


def copy_run(source, target):
    shutil.copytree(source, target, dirs_exist_ok=True)
    last = Path((source / 'last_checkpoint').read_text()).name
    (target / 'last_checkpoint').write_text(str(target / last))


@pytest.fixture(scope='module')
def stopped(tmp_path_factory):
    """Folder of a run that was interrupted after its first epoch."""
    folder = tmp_path_factory.mktemp('stopped')
    with pytest.raises(Stop):
        build(folder, stop=('after_train_epoch', 1)).train()
    return folder


@pytest.fixture
def run(stopped, tmp_path):
    """Copy of a run that was interrupted after its first epoch."""
    copy_run(stopped, tmp_path)
    return tmp_path


def processes(monkeypatch, number):
    monkeypatch.setattr('mmvidattn.engine.hooks.exact_resume_hook'
                        '.get_world_size', lambda: number)


def change_state(folder, **changes):
    path = folder / 'epoch_1.pth'
    checkpoint = torch.load(path, weights_only=True)
    checkpoint['exact_resume'].update(changes)
    torch.save(checkpoint, path)


@pytest.mark.parametrize('then, now, size, message', [
    (dict(samples=6), 3, 2, None),
    (dict(), 3, 3, 'from 1 processes with 3 samples per step, got 3 processes '
     'with 9, .* set train_dataloader.batch_size to 3 / 3, or start'),
    (dict(samples=None), 2, 2, 'with None samples .* 2 processes with 4'),
    # If the number of processes is unchanged, the batch size may change.
    (dict(), 1, 2, None)])
def test_resumes_only_with_the_same_samples_per_step(
        run, monkeypatch, then, now, size, message):
    change_state(run, **then)
    processes(monkeypatch, now)
    runner = build(run, resume=True, stop=('after_train_iter', 1),
                   loader=dict(batch_size=size))
    with pytest.raises(ValueError if message else Stop, match=message):
        runner.train()


def test_added_process_uses_the_same_order_of_samples(
        tmp_path, monkeypatch):
    with pytest.raises(Stop):
        build(tmp_path, stop=('after_train_epoch', 1), seed=3).train()
    change_state(tmp_path, samples=6)
    processes(monkeypatch, 2)
    monkeypatch.setattr(
        'mmvidattn.engine.hooks.exact_resume_hook.get_rank', lambda: 1)
    runner = build(tmp_path, resume=True, stop=('after_train_iter', 1),
                   seed=5)
    with pytest.raises(Stop):
        runner.train()
    batches = runner.train_dataloader.batch_sampler
    assert (batches.seed, batches.sampler.seed) == (3, 3)
    assert 'lacks the random generators of process 1' in log_of(tmp_path)


def test_warns_of_differences(run, monkeypatch):
    processes(monkeypatch, 3)
    # Three times as many samples fit three processes.
    change_state(run, samples=3 * 5, world_size=1)
    runner = build(run, resume=True, stop=('after_train_iter', 1),
                   loader=dict(batch_size=5))
    runner.cfg.data_set = {f'option_{i}': i for i in range(20)}
    monkeypatch.setitem(exact_resume_hook.VERSIONS, 'numpy', '0.1')
    with pytest.raises(Stop):
        runner.train()
    log = log_of(run)
    for text in '-processes 1', '+processes 3', '+numpy 0.1', '+data_set':
        assert f'\n{text}' in log
    assert '\n... and ' in log
    # Equal values are not listed.
    assert '\n-torch' not in log and '\n+torch' not in log


def test_resumes_at_same_share_of_epoch_of_another_length(tmp_path):
    with pytest.raises(Stop):
        build(tmp_path, checkpoint=EVERY_SECOND,
              stop=('after_train_iter', 6)).train()
    runner = build(tmp_path, resume=True, loader=dict(batch_size=4))
    runner.train()
    # Two of four batches of the second epoch were done; now one of three
    # counts as done. Two more epochs follow.
    assert runner.iter == 6 + (3 - 1) + 2 * 3
