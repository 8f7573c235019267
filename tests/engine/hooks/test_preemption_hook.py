# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
import torch
from killed_runs import differences
from mmengine.hooks import EMAHook, Hook
from toy_runs import Stop, StopHook, build, log_of

from mmvidattn.engine import PreemptionHook
from mmvidattn.engine.hooks import preemption_hook


class SignalHook(Hook):
    """Signal this process and its workers at the ``count``-th event."""

    def __init__(self, event, count, number=signal.SIGTERM):
        self.left, self.number = count, number
        setattr(self, event, self.count_down)

    def count_down(self, runner, *args, **kwargs):
        self.left -= 1
        if not self.left:
            for worker in multiprocessing.active_children():
                os.kill(worker.pid, self.number)
            os.kill(os.getpid(), self.number)


def run(work_dir, *hooks, **options):
    return build(work_dir, hooks=[*hooks, EMAHook(momentum=0.1)],
                 preemption=dict(type='PreemptionHook'), **options)


# No regular checkpoint is due in the first epochs.
LATE = dict(checkpoint=dict(interval=4, save_best=None))


@pytest.fixture(scope='module')
def full(tmp_path_factory):
    """Weights, and their averages, of an uninterrupted run."""
    before = signal.getsignal(signal.SIGTERM)
    results = results_of(tmp_path_factory.mktemp('full'))
    assert signal.getsignal(signal.SIGTERM) is before
    return results


def results_of(folder, **options):
    weights = run(folder, **LATE, **options).train().state_dict()
    return weights, torch.load(folder / 'epoch_4.pth')['ema_state_dict']


@pytest.mark.parametrize('event, count, epoch, iter, workers', [
    ('before_train_iter', 6, 1, 6, 2), ('before_val_iter', 4, 2, 8, 0)])
def test_saves_and_resumes(full, tmp_path, event, count, epoch, iter, workers):
    """A scheduler signals the workers as well."""
    of_other_tests = {*multiprocessing.active_children()}
    with pytest.raises(SystemExit) as end:
        run(tmp_path, SignalHook(event, count), workers=workers,
            **LATE).train()
    assert end.value.code == 143
    assert {*multiprocessing.active_children()} <= of_other_tests
    path = tmp_path / 'interrupted.pth'
    meta = torch.load(path, weights_only=True)['meta']
    assert (meta['epoch'], meta['iter']) == (epoch, iter)
    assert (tmp_path / 'last_checkpoint').read_text() == str(path)
    assert 'SIGTERM: stopped after' in log_of(tmp_path)
    resumed = results_of(tmp_path, resume=True, workers=workers)
    assert not differences(full, resumed)
    # The next regular checkpoint replaces it.
    assert not path.exists()


def test_signal_to_any_process_stops_all(monkeypatch):
    other_ranks = []

    def all_reduce(tensor, op, group):
        tensor.copy_(torch.stack([tensor, *other_ranks]).amax(dim=0))

    monkeypatch.setattr(preemption_hook.dist, 'all_reduce', all_reduce)
    hook = PreemptionHook()
    hook._handlers_before, hook._group = {signal.SIGTERM: None}, 'here'
    for received in 0, signal.SIGTERM:
        other_ranks[:] = [torch.tensor(int(received))]
        assert hook.is_requested() == bool(received)
    # Processes with validations of unequal length would deadlock.
    runner, hook.leave = Mock(val_dataloader=range(5), hooks=[]), Mock()
    for length in 5, 4, 6:
        other_ranks[:] = [torch.tensor([length, -length])]
        hook.before_val(runner)
        other_ranks[:] = [torch.tensor(1)]
        hook.after_val_iter(runner)
        hook.leave.assert_called_once_with(runner, runner.iter)


def test_ctrl_c_saves_and_a_second_one_stops_at_once(tmp_path, capsys):
    before = signal.getsignal(signal.SIGINT)
    for times, error in (1, SystemExit), (2, KeyboardInterrupt):
        with pytest.raises(error) as end:
            run(tmp_path / str(times), *(
                SignalHook('after_train_iter', 2, signal.SIGINT)
                for _ in range(times))).train()
        assert signal.getsignal(signal.SIGINT) is before
        assert (tmp_path / f'{times}/interrupted.pth').is_file() == (
            times == 1)
        assert 'Ctrl-C again stops' in capsys.readouterr().err
        if times == 1:
            assert end.value.code == 130
            assert end.value.reason == 'stopped after epoch 0, iteration 2'


def test_trains_in_another_thread_and_handles_another_signal(tmp_path):
    """Python only handles signals in the main thread."""
    before = signal.getsignal(signal.SIGTERM)
    runner = build(
        tmp_path, hooks=[SignalHook('after_val_epoch', 1, signal.SIGUSR1)],
        preemption=dict(type='PreemptionHook', signal_name='SIGUSR1'))
    with ThreadPoolExecutor() as pool, pytest.raises(Stop):
        runner.register_hook(StopHook('after_train_iter', 1))
        pool.submit(runner.train).result()
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(SystemExit) as end:
        runner.train()
    assert end.value.code == 128 + signal.SIGUSR1
    with pytest.raises(ValueError, match='signal_name.*SIG_DFL'):
        PreemptionHook(signal_name='SIG_DFL')


def _worker(ready):
    preemption_hook.outlive_signal(0, signal.SIGTERM)
    ready.set()
    time.sleep(1000)


def test_worker_ends_seconds_after_the_signal(monkeypatch):
    monkeypatch.setattr(preemption_hook, 'SECONDS', 1)
    context = multiprocessing.get_context('fork')
    ready = context.Event()
    worker = context.Process(target=_worker, args=(ready, ))
    worker.start()
    ready.wait()
    worker.terminate()
    worker.join(0.3)
    assert worker.is_alive()
    worker.join(30)
    # torch treats any other exit code of a worker as a crash.
    assert worker.exitcode == 0
