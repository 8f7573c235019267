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
from mmvidattn.utils.random_state import get_random_state, set_random_state


@pytest.fixture(autouse=True)
def other_numbers():
    """A process starts from any state; here, never from that of the last."""
    random.seed()
    np.random.seed()
    torch.seed()


def trained(runner):
    """Everything that a run ends with."""
    model = runner.train()
    # Of the hub without times, which are never the same.
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
    """Seed each epoch, as users' hooks may."""

    def before_train_epoch(self, runner):
        np.random.seed(runner.epoch)
        torch.manual_seed(runner.epoch)


STOPS = {
    'at the end of an epoch': dict(stop=('after_train_epoch', 2)),
    'in validation': dict(stop=('after_val_iter', 3)),
    'at the end of validation': dict(stop=('after_val_epoch', 2)),
    # The first score is the best so far, so the checkpoint is saved again.
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
        # The reference is a run from the first checkpoint on.
        with pytest.raises(Stop):
            run('start', stop=('after_train_iter', 1)).train()
        for name in 'whole', 'run':
            copy_run(tmp_path / 'start', tmp_path / name)
        whole = trained(run('whole', resume=True))
        stop, resume = ('after_train_iter', 5), True
    else:
        whole, resume = trained(run('whole')), False
    with pytest.raises(Stop):
        run('run', stop=stop, resume=resume).train()
    assert_same(whole, trained(run('run', resume=True)))
    assert 'of another run' not in log_of(tmp_path / 'run')


def copy_run(source, target):
    shutil.copytree(source, target)
    last = Path((source / 'last_checkpoint').read_text()).name
    (target / 'last_checkpoint').write_text(str(target / last))


def test_what_is_resumed_matters(tmp_path):
    """The tests above would see a state that is not restored."""
    whole = trained(build(tmp_path / 'whole'))
    with pytest.raises(Stop):
        build(tmp_path / 'run', stop=('after_train_epoch', 2)).train()
    path = tmp_path / 'run/epoch_2.pth'
    checkpoint = torch.load(path, weights_only=True)
    state = checkpoint['exact_resume']['ranks'][0]['random']
    state['torch'] = torch.Generator().manual_seed(9).get_state()
    torch.save(checkpoint, path)
    other = trained(build(tmp_path / 'run', resume=True))
    assert not torch.equal(whole['weights']['layers.0.weight'],
                           other['weights']['layers.0.weight'])


def test_random_state_goes_through_a_file(tmp_path):
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


@pytest.mark.parametrize('then, now, size, told', [
    (dict(samples=6), 3, 2, None),
    # Three samples in each of four steps were those of one process.
    (dict(), 3, 3, 'saved by 1 processes, with 3 samples in a step and 4 '
     'steps in an epoch; this run has 3, with 9 and 4: .* Set '
     r'train_dataloader.batch_size=1, which gives 3 as before, or start'),
    (dict(), 2, 3, 'with 6 and 4: its schedule .* one. Either start from'),
    (dict(samples=None), 2, 3, None),
    (dict(samples=None), 2, 2, 'unknown number of samples .* with 4 and 6'),
    # A batch of another size, in as many processes, is the user's choice.
    (dict(), 1, 2, None)])
def test_goes_on_with_as_many_samples_in_a_step_or_not_at_all(
        tmp_path, monkeypatch, then, now, size, told):
    with pytest.raises(Stop):
        build(tmp_path, stop=('after_train_epoch', 1)).train()
    change_state(tmp_path, **then)
    processes(monkeypatch, now)
    runner = build(tmp_path, resume=True, stop=('after_train_iter', 1),
                   loader=dict(batch_size=size))
    with pytest.raises(ValueError if told else Stop, match=told):
        runner.train()


def test_a_process_more_orders_samples_like_the_others(
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
    assert 'has no generators for process 1' in log_of(tmp_path)


def test_each_process_draws_its_own_samples(tmp_path, monkeypatch):
    monkeypatch.setattr('mmvidattn.engine.loops.get_rank', lambda: 1)
    monkeypatch.setattr('mmvidattn.engine.loops.get_world_size', lambda: 3)
    runner = build(tmp_path, stop=('after_train_iter', 1))
    with pytest.raises(Stop):
        runner.train()
    batches = runner.train_loop.batches
    assert (batches.rank, batches.num_ranks) == (1, 3)


def test_says_what_differs(tmp_path, monkeypatch):
    with pytest.raises(Stop):
        build(tmp_path, stop=('after_train_epoch', 1)).train()
    processes(monkeypatch, 3)
    # Checkpoints of earlier versions do not say how many samples they had.
    change_state(tmp_path, samples=3 * 5, world_size=1)
    runner = build(tmp_path, resume=True, stop=('after_train_iter', 1),
                   loader=dict(batch_size=5))
    runner.cfg.data_set = {f'option_{i}': i for i in range(20)}
    monkeypatch.setattr(np, '__version__', '0.1')
    with pytest.raises(Stop):
        runner.train()
    log = log_of(tmp_path)
    for said in ('processes: 1 then, 3 now', 'batches of an epoch: 4 then, 3',
                 'numpy: ', 'then, 0.1 now', 'config: +data_set'):
        assert said in log
    lines = [line for line in log.splitlines()
             if line.startswith('  config: ')]
    assert len(lines) == 13 and lines[-1].startswith('  config: ... and ')


def test_goes_on_in_the_same_part_of_an_epoch_of_another_length(tmp_path):
    with pytest.raises(Stop):
        build(tmp_path, checkpoint=dict(by_epoch=False),
              stop=('after_train_iter', 6)).train()
    runner = build(tmp_path, resume=True, loader=dict(batch_size=4))
    runner.train()
    # Of the second epoch two of four batches were done, now one of three is;
    # and there are two more epochs.
    assert runner.iter == 6 + (3 - 1) + 2 * 3


def test_checkpoint_of_mmengine_is_resumed_with_a_warning(tmp_path):
    with pytest.raises(Stop):
        build(tmp_path, stop=('after_train_epoch', 1),
              checkpoint=dict(type='CheckpointHook'),
              exact_resume=None).train()
    runner = build(tmp_path, resume=True)
    runner.train()
    assert runner.epoch == 4
    assert 'no state of the random generators' in log_of(tmp_path)


def test_gradients_of_many_processes_are_not_saved_and_it_is_told(
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


def test_a_wrapper_that_does_not_count_accumulates_no_gradients():
    """Such as mmengine's OptimWrapperDict."""
    runner = SimpleNamespace(
        optim_wrapper=object(), max_iters=8, model=torch.nn.Linear(1, 1))
    runner.model.weight.grad = torch.ones(1, 1)
    for iter in range(1, 8):
        assert ExactResumeHook._gradients(runner, iter) == {}


def test_iterations_resume_where_they_were_without_this_hook(tmp_path):
    """As mmengine's: the batches that are done are drawn, and left out."""
    seen = []

    class Look(Hook):

        def before_train_iter(self, runner, batch_idx, data_batch=None):
            seen.append([sample.filename
                         for sample in data_batch['data_samples']])

    def run(name, **options):
        return build(tmp_path / name, by_epoch=False, exact_resume=None,
                     hooks=[Look()], **options)

    run('whole').train()
    whole = seen.copy()
    with pytest.raises(Stop):
        run('run', stop=('after_train_iter', 6)).train()
    seen.clear()
    run('run', resume=True).train()
    assert len(whole) == 16 and seen == whole[6:]


def test_a_long_difference_is_cut(monkeypatch):
    config = '\n'.join(f'option_{i} = {i}' for i in range(40))
    runner = SimpleNamespace(
        train_dataloader=[1, 2], cfg=SimpleNamespace(pretty_text=config))
    state = dict(versions=exact_resume_hook._versions(), world_size=1,
                 num_batches=2)
    lines = exact_resume_hook._differences(
        runner, {exact_resume_hook.KEY: state, 'meta': dict(cfg='')})
    most = exact_resume_hook.MAX_LINES
    assert len(lines) == most + 1 and f'{40 - most} more' in lines[-1]
