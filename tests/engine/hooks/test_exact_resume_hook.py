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


def interrupt(runner):
    with pytest.raises(Stop):
        runner.train()


class SeedEpochHook(Hook):
    """Seed each epoch, like a hook of a user."""

    def before_train_epoch(self, runner):
        np.random.seed(runner.epoch)
        torch.manual_seed(runner.epoch)


# Checkpoints of every second iteration.
EVERY_SECOND = dict(by_epoch=False, interval=2)


@pytest.fixture(scope='module')
def full_run(tmp_path_factory):
    """Function that returns the final state of an uninterrupted run."""
    return functools.cache(lambda by_epoch: trained(build_run(
        tmp_path_factory.mktemp('full'), by_epoch)))


def build_run(folder, by_epoch, **more):
    return build(folder, **more) if by_epoch else build(
        folder, hooks=[EMAHook(), SeedEpochHook()], workers=1,
        wrapper=dict(accumulative_counts=4), checkpoint=EVERY_SECOND, **more)


@pytest.mark.parametrize('event, number', [
    ('after_val_iter', 3), ('after_val_epoch', 2),
    # The first score is a new best, so the checkpoint is saved twice.
    ('after_val_epoch', 1), ('after_train_iter', 6)])
def test_resumed_run_ends_bit_equal(tmp_path, full_run, event, number):
    by_epoch = 'val' in event
    full = full_run(by_epoch)
    interrupt(build_run(tmp_path, by_epoch, stop=(event, number)))
    if number == 1:
        saved = torch.load(tmp_path / 'epoch_1.pth', weights_only=True)
        assert 'best_score' in saved['message_hub']['runtime_info']
    resumed = trained(build_run(tmp_path, by_epoch, resume=True))
    assert not differences(full, resumed)
    assert differences(full, full_run(not by_epoch))
    if not by_epoch:
        # Run 2 starts in the middle of epoch 2, and logs the end of it.
        assert log_of(tmp_path).count('[2][4/4]') == 1


def test_run_without_a_seed_resumes_bit_equal(tmp_path):
    """The reference is a run resumed from the first checkpoint."""
    options = dict(seed=None, checkpoint=EVERY_SECOND)
    interrupt(build(tmp_path / 'start', stop=('after_train_iter', 2),
                    **options))
    for name in 'full', 'run':
        copy_run(tmp_path / 'start', tmp_path / name)
    full = trained(build(tmp_path / 'full', resume=True, **options))
    interrupt(build(tmp_path / 'run', resume=True,
                    stop=('after_train_iter', 4), **options))
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
    interrupt(build(folder, stop=('after_train_epoch', 1), seed=3))
    return folder


@pytest.fixture
def run(stopped, tmp_path):
    """Copy of a run that was interrupted after its first epoch."""
    copy_run(stopped, tmp_path)
    return tmp_path


def processes(monkeypatch, number, rank=0):
    monkeypatch.setattr(exact_resume_hook, 'get_world_size', lambda: number)
    monkeypatch.setattr(exact_resume_hook, 'get_rank', lambda: rank)


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


def test_added_process_uses_the_same_order_of_samples(run, monkeypatch):
    change_state(run, samples=6)
    processes(monkeypatch, 2, 1)
    runner = build(run, resume=True, stop=('after_train_iter', 1), seed=5)
    interrupt(runner)
    batches = runner.train_dataloader.batch_sampler
    assert (batches.seed, batches.sampler.seed) == (3, 3)
    assert 'lacks the random generators of process 1' in log_of(run)


def test_warns_of_differences(run, monkeypatch):
    processes(monkeypatch, 3)
    # Three times as many samples fit three processes.
    change_state(run, samples=3 * 5, world_size=1)
    runner = build(run, resume=True, stop=('after_train_iter', 1),
                   loader=dict(batch_size=5))
    runner.cfg.data_set = {f'option_{i}': i for i in range(20)}
    monkeypatch.setitem(exact_resume_hook.VERSIONS, 'numpy', '0.1')
    interrupt(runner)
    log = log_of(run)
    for text in '-processes 1', '+processes 3', '+numpy 0.1', '+data_set':
        assert f'\n{text}' in log
    assert '\n... and ' in log
    # Equal values are not listed.
    assert '\n-torch' not in log and '\n+torch' not in log


def test_resumes_at_same_share_of_epoch_of_another_length(tmp_path):
    interrupt(build(tmp_path, checkpoint=EVERY_SECOND,
                    stop=('after_train_iter', 6)))
    runner = build(tmp_path, resume=True, loader=dict(batch_size=4),
                   stop=('after_train_epoch', 1))
    interrupt(runner)
    # Two of four batches of the second epoch were done; now one of three
    # counts as done.
    assert runner.iter == 6 + (3 - 1)
