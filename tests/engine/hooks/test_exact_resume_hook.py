# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.hooks import EMAHook, Hook
from toy_runs import Stop, build, log_of

from mmvidattn.engine.hooks import ExactResumeHook, exact_resume_hook
from mmvidattn.ops import dispatch
from mmvidattn.ops.choice import Choice
from mmvidattn.utils.random_state import get_random_state, set_random_state


@pytest.fixture(autouse=True)
def random_start():
    """Start each run from random generators in an unknown state."""
    random.seed()
    np.random.seed()
    torch.seed()


def trained(runner):
    """Train, and return the final state of the run."""
    model = runner.train()
    # Leave out times, which always differ.
    logs = {name: buffer.data[0].tolist()
            for name, buffer in runner.message_hub.log_scalars.items()
            if 'time' not in name}
    return dict(
        weights=model.state_dict(), logs=logs,
        optimizer=runner.optim_wrapper.state_dict()['state'],
        random=get_random_state(), epoch=runner.epoch, iter=runner.iter,
        best=runner.message_hub.get_info('best_score'))


def assert_same(one, two, name=''):
    if isinstance(one, dict):
        assert one.keys() == two.keys(), name
        for key in one:
            assert_same(one[key], two[key], f'{name}.{key}')
    elif isinstance(one, list):
        assert len(one) == len(two), name
        for i, (a, b) in enumerate(zip(one, two)):
            assert_same(a, b, f'{name}.{i}')
    elif torch.is_tensor(one):
        assert torch.equal(one, two), name
    else:
        assert one == two, name


class SeedEpochHook(Hook):
    """Seed each epoch, like a hook of a user."""

    def before_train_epoch(self, runner):
        np.random.seed(runner.epoch)
        torch.manual_seed(runner.epoch)


STOPS = {
    'at the end of an epoch': dict(stop=('after_train_epoch', 2)),
    'in validation': dict(stop=('after_val_iter', 3)),
    'at the end of validation': dict(stop=('after_val_epoch', 2)),
    # The first score is a new best, so the checkpoint is saved twice.
    'after a new best score': dict(stop=('after_val_epoch', 1)),
    'in the last validation': dict(stop=('after_val_iter', 8)),
    'in an epoch': dict(
        stop=('after_train_iter', 6),
        checkpoint=dict(by_epoch=False)),
    'at the last batch': dict(
        stop=('after_train_iter', 8),
        checkpoint=dict(by_epoch=False)),
    'with workers': dict(
        stop=('after_train_iter', 6), workers=1,
        checkpoint=dict(by_epoch=False)),
    'by iterations': dict(
        stop=('after_train_iter', 6), by_epoch=False),
    'by iterations in validation': dict(
        stop=('after_val_iter', 3), by_epoch=False),
    'by iterations without end': dict(
        stop=('after_train_iter', 6), by_epoch=False, workers=1,
        sampler='InfiniteSampler'),
    'with accumulated gradients': dict(
        stop=('after_train_iter', 6), wrapper=dict(accumulative_counts=4),
        checkpoint=dict(by_epoch=False)),
    'with averaged weights': dict(
        stop=('after_train_iter', 6), hooks=[EMAHook],
        checkpoint=dict(by_epoch=False)),
    'in an epoch that a hook seeds': dict(
        stop=('after_train_iter', 6), hooks=[SeedEpochHook],
        checkpoint=dict(by_epoch=False)),
    'without a seed': dict(
        stop=('after_train_iter', 6), seed=None,
        checkpoint=dict(by_epoch=False)),
}


@pytest.mark.parametrize('options', STOPS.values(), ids=STOPS)
def test_resumed_run_ends_bit_equal(tmp_path, options):
    options = dict(options)
    stop, hooks = options.pop('stop'), options.pop('hooks', [])

    def run(name, **more):
        return build(tmp_path / name, hooks=[hook() for hook in hooks],
                     **options, **more)

    if 'seed' in options:
        # The reference is a run resumed from the first checkpoint.
        with pytest.raises(Stop):
            run('start', stop=('after_train_iter', 1)).train()
        for name in 'full', 'run':
            copy_run(tmp_path / 'start', tmp_path / name)
        full = trained(run('full', resume=True))
        stop, resume = ('after_train_iter', 5), True
    else:
        full, resume = trained(run('full')), False
    with pytest.raises(Stop):
        run('run', stop=stop, resume=resume).train()
    assert_same(full, trained(run('run', resume=True)))
    assert 'from another run' not in log_of(tmp_path / 'run')


def copy_run(source, target):
    shutil.copytree(source, target)
    last = Path((source / 'last_checkpoint').read_text()).name
    (target / 'last_checkpoint').write_text(str(target / last))


def test_changed_generator_state_changes_the_run(tmp_path):
    """Prove that the tests above detect a state that is not restored."""
    full = trained(build(tmp_path / 'full'))
    with pytest.raises(Stop):
        build(tmp_path / 'run', stop=('after_train_epoch', 2)).train()
    path = tmp_path / 'run/epoch_2.pth'
    checkpoint = torch.load(path, weights_only=True)
    state = checkpoint['exact_resume']['ranks'][0]['random']
    state['torch'] = torch.Generator().manual_seed(9).get_state()
    torch.save(checkpoint, path)
    other = trained(build(tmp_path / 'run', resume=True))
    assert not torch.equal(full['weights']['layers.0.weight'],
                           other['weights']['layers.0.weight'])


def test_random_state_survives_saving(tmp_path):
    random.gauss(0, 1)
    torch.save(get_random_state(), tmp_path / 'x')

    def draw():
        return (random.gauss(0, 1), random.random(), np.random.randn(),
                np.random.rand(), torch.rand(2).tolist())

    first = draw()
    set_random_state(torch.load(tmp_path / 'x', weights_only=True))
    assert draw() == first != draw()


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
    (dict(), 3, 3, 'from 1 processes, with 3 samples per step and 4 steps '
     'per epoch; this run has 3 processes, 9 samples per step and 4 .* set '
     r'train_dataloader.batch_size=1, for 3 samples per step, or start'),
    (dict(), 2, 3, ' 6 samples per step and 4 .* schedule: start a'),
    (dict(samples=None), 2, 3, None),
    (dict(samples=None), 2, 2,
     'unknown number of samples .* 4 samples per step and 6 '),
    # If the number of processes is unchanged, the batch size may change.
    (dict(), 1, 2, None)])
def test_resumes_only_with_the_same_samples_per_step(
        tmp_path, monkeypatch, then, now, size, message):
    with pytest.raises(Stop):
        build(tmp_path, stop=('after_train_epoch', 1)).train()
    change_state(tmp_path, **then)
    processes(monkeypatch, now)
    runner = build(tmp_path, resume=True, stop=('after_train_iter', 1),
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
    loop = runner.train_loop
    assert (loop.batches.seed, loop.sampler.seed) == (3, 3)
    assert 'lacks the random generators of process 1' in log_of(tmp_path)


def test_batches_know_rank_and_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr('mmvidattn.engine.loops.get_rank', lambda: 1)
    monkeypatch.setattr('mmvidattn.engine.loops.get_world_size', lambda: 3)
    runner = build(tmp_path, stop=('after_train_iter', 1))
    with pytest.raises(Stop):
        runner.train()
    batches = runner.train_loop.batches
    assert (batches.rank, batches.num_ranks) == (1, 3)


def test_warns_of_differences(tmp_path, monkeypatch):
    with pytest.raises(Stop):
        build(tmp_path, stop=('after_train_epoch', 1)).train()
    processes(monkeypatch, 3)
    # Three times as many samples fit three processes.
    change_state(tmp_path, samples=3 * 5, world_size=1)
    runner = build(tmp_path, resume=True, stop=('after_train_iter', 1),
                   loader=dict(batch_size=5))
    runner.cfg.data_set = {f'option_{i}': i for i in range(20)}
    monkeypatch.setattr(np, '__version__', '0.1')
    with pytest.raises(Stop):
        runner.train()
    log = log_of(tmp_path)
    for text in ('processes: 1 then, 3 now', 'batches of an epoch: 4 then, 3',
                 'numpy: ', 'then, 0.1 now', 'config: +data_set'):
        assert text in log
    lines = [line for line in log.splitlines()
             if line.startswith('  config: ')]
    assert len(lines) == 13 and lines[-1].startswith('  config: ... and ')


def test_resumes_at_same_share_of_epoch_of_another_length(tmp_path):
    with pytest.raises(Stop):
        build(tmp_path, checkpoint=dict(by_epoch=False),
              stop=('after_train_iter', 6)).train()
    runner = build(tmp_path, resume=True, loader=dict(batch_size=4))
    runner.train()
    # Two of four batches of the second epoch were done; now one of three
    # counts as done. Two more epochs follow.
    assert runner.iter == 6 + (3 - 1) + 2 * 3


def test_resumes_checkpoint_of_mmengine_with_warning(tmp_path):
    with pytest.raises(Stop):
        build(tmp_path, stop=('after_train_epoch', 1),
              checkpoint=dict(type='CheckpointHook'),
              exact_resume=None).train()
    runner = build(tmp_path, resume=True)
    runner.train()
    assert runner.epoch == 4
    assert 'lacks the state of the random generators' in log_of(tmp_path)


def test_warns_that_gradients_of_several_processes_are_not_saved(
        tmp_path, monkeypatch):
    runner = build(tmp_path, wrapper=dict(accumulative_counts=4),
                   checkpoint=dict(by_epoch=False),
                   stop=('after_train_iter', 6))
    processes(monkeypatch, 2)
    with pytest.raises(Stop):
        runner.train()
    assert 'save after a multiple of accumulative_counts=4 iterations' in \
        log_of(tmp_path)
    saved = torch.load(tmp_path / 'iter_6.pth', weights_only=True)
    assert saved['exact_resume']['gradients'] == {}


def test_wrapper_without_counts_saves_no_gradients():
    """mmengine's OptimWrapperDict is such a wrapper."""
    runner = SimpleNamespace(
        optim_wrapper=object(), max_iters=8, model=torch.nn.Linear(1, 1))
    runner.model.weight.grad = torch.ones(1, 1)
    for iter in range(1, 8):
        assert ExactResumeHook._gradients(runner, iter) == {}


def test_iterations_resume_without_this_hook(tmp_path):
    """mmengine draws and skips the batches that are done; so do our loops."""
    seen = []

    class Look(Hook):

        def before_train_iter(self, runner, batch_idx, data_batch=None):
            seen.append([sample.filename
                         for sample in data_batch['data_samples']])

    def run(name, **options):
        return build(tmp_path / name, by_epoch=False, exact_resume=None,
                     hooks=[Look()], **options)

    run('full').train()
    full = seen.copy()
    with pytest.raises(Stop):
        run('run', stop=('after_train_iter', 6)).train()
    seen.clear()
    run('run', resume=True).train()
    assert len(full) == 16 and seen == full[6:]


def test_long_difference_is_truncated(monkeypatch):
    config = '\n'.join(f'option_{i} = {i}' for i in range(40))
    runner = SimpleNamespace(
        train_dataloader=[1, 2], cfg=SimpleNamespace(pretty_text=config))
    state = dict(versions=exact_resume_hook._versions(), world_size=1,
                 num_batches=2)
    lines = exact_resume_hook._differences(
        runner, {exact_resume_hook.KEY: state, 'meta': dict(cfg='')})
    most = exact_resume_hook.MAX_LINES
    assert len(lines) == most + 1 and f'{40 - most} more' in lines[-1]


ONE, OTHER = (f'linear/oneDNN/{mode}/float32/eager'
              for mode in ('training', 'inference'))


@pytest.fixture
def chosen(monkeypatch):
    """Set the choice of this machine; it ends with the test."""
    monkeypatch.setattr(dispatch, '_enabled', True)
    monkeypatch.setattr(dispatch, '_unmeasured', False)

    def choose(*keys):
        dispatch.set_choice('cpu', Choice(dict.fromkeys(keys, 2.), 'test'))

    yield choose
    dispatch.set_choice('cpu', None)


def stop_after_an_epoch(folder):
    with pytest.raises(Stop):
        build(folder, stop=('after_train_epoch', 1)).train()


def resume_one_step(folder):
    with pytest.raises(Stop):
        build(folder, resume=True, stop=('after_train_iter', 1)).train()
    return [line for line in log_of(folder).splitlines()
            if 'backends: the checkpoint' in line]


def test_resumed_run_follows_the_choice_of_the_checkpoint(tmp_path, chosen):
    chosen(ONE)
    stop_after_an_epoch(tmp_path)
    saved = torch.load(tmp_path / 'epoch_1.pth', weights_only=True)
    assert saved['exact_resume']['backends'] == [ONE]
    chosen(OTHER)
    line, = resume_one_step(tmp_path)
    assert ONE in line and OTHER in line and 'follows' in line
    assert dispatch.running_keys() == [ONE]


def test_the_same_choice_is_resumed_without_a_line(tmp_path, chosen):
    chosen(ONE)
    stop_after_an_epoch(tmp_path)
    assert resume_one_step(tmp_path) == []


def test_a_switch_that_is_set_wins_over_the_checkpoint(tmp_path, chosen):
    chosen(ONE)
    stop_after_an_epoch(tmp_path)
    with dispatch.use_backends(False):
        line, = resume_one_step(tmp_path)
        assert dispatch.running_keys() == []
    assert 'MMVIDATTN_DISPATCH takes precedence' in line


@pytest.mark.parametrize('unmeasured', [False, True])
def test_the_checkpoint_selects_the_switch(tmp_path, chosen, unmeasured):
    chosen(ONE)
    with dispatch.use_backends(unmeasured, unmeasured):
        expected = dispatch.running_keys()
        stop_after_an_epoch(tmp_path)
    assert len(resume_one_step(tmp_path)) == 1
    assert dispatch.running_keys() == expected
    assert unmeasured == (len(expected) > 1)


def test_earlier_checkpoints_have_no_choice(tmp_path, chosen):
    chosen(ONE)
    stop_after_an_epoch(tmp_path)
    path = tmp_path / 'epoch_1.pth'
    checkpoint = torch.load(path, weights_only=True)
    del checkpoint['exact_resume']['backends']
    torch.save(checkpoint, path)
    chosen(OTHER)
    assert resume_one_step(tmp_path) == []
    assert dispatch.running_keys() == [OTHER]
