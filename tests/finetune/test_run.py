# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import io
import json
import math
import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from mmengine.logging import MessageHub

from mmvidattn.apis.models import load_config
from mmvidattn.finetune import FineTuneOptions, training
from mmvidattn.finetune.clips import complete_options
from mmvidattn.finetune.run import _choose_folder
from mmvidattn.finetune.training import NOTES, ConsoleHook


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Options of a run on two videos, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in 'a', 'b':
        Path('mine', name).mkdir(parents=True)
        Path('mine', name, '0.mp4').touch()
    return FineTuneOptions(Path('mine'))


def write_notes(out, options, **more):
    Path(out, 'run').mkdir(parents=True)
    Path(out, NOTES).write_text(json.dumps(
        dict(options=options.fixed(), videos=2, **more)))


def test_numbers_the_runs(options):
    first = Path('work_dirs/finetune_mine')
    other = replace(options, seed=1)
    assert _choose_folder(options) == first
    write_notes(first, options)
    # The same options resume the run; different options get a new folder.
    assert _choose_folder(options) == first
    assert _choose_folder(replace(options, workers=9)) == first
    second = first.with_name('finetune_mine_2')
    assert _choose_folder(other) == second
    write_notes(second, other)
    assert _choose_folder(other) == second
    assert _choose_folder(options) == first
    third = first.with_name('finetune_mine_3')
    assert _choose_folder(replace(options, seed=2)) == third
    # Folders of other programs stay untouched.
    Path(third, 'run').mkdir(parents=True)
    Path(first.with_name('finetune_mine_4')).mkdir()
    Path(first.with_name('finetune_mine_4'), NOTES).write_text('{}')
    assert _choose_folder(replace(options, seed=2)).name == 'finetune_mine_5'


def test_new_videos_start_a_new_run_when_the_last_is_complete(options):
    first = Path('work_dirs/finetune_mine')
    write_notes(first, options)
    Path('mine/a/1.mp4').touch()
    # An interrupted run continues with its lists.
    assert _choose_folder(options) == first
    Path(first, NOTES).write_text(json.dumps(
        json.loads(Path(first, NOTES).read_text()) | dict(done=5)))
    assert _choose_folder(options).name == 'finetune_mine_2'
    Path('mine/a/1.mp4').unlink()
    assert _choose_folder(options) == first


def test_auto_weights_come_with_the_package(options, capsys):
    auto = replace(options, weights='auto')
    assert complete_options(auto).weights == 'default'
    assert 'start weights: linear_ff_tiny_motion' in (
        capsys.readouterr().out)
    # The options of a run do not depend on where the package is.
    assert replace(options, weights='default').fixed()['weights'] == 'default'
    other = replace(auto, model='vivit_tiny_motion')
    assert complete_options(other).weights is None
    assert 'starts from random weights' in capsys.readouterr().out


class Screen(io.StringIO):

    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


def train(stream, epochs=2, steps=4):
    """Call the hook like a run that validates in the last epoch."""
    hook = ConsoleHook(stream)
    runner = SimpleNamespace(
        iter=0, epoch=0, max_epochs=epochs, max_iters=epochs * steps, hooks=[],
        train_dataloader=range(steps))
    hook.before_train(runner)
    for runner.epoch in range(epochs):
        hook.before_train_epoch(runner)
        for step in range(steps):
            hook.after_train_iter(runner, step, outputs=dict(
                loss=step, top1_acc=0.5))
            runner.iter += 1
    hook.after_val_epoch(runner, {'acc/top1': 0.75})
    hook.after_train(runner)
    return stream.getvalue()


def test_prints_a_line_per_epoch_to_a_file():
    first, second = train(Screen(False)).splitlines()
    assert first.startswith('epoch 1/2, ')
    assert first.endswith(' s left, loss 1.500, training 50 %')
    assert second.startswith('epoch 2/2, 0 s left, ')
    assert second.endswith('validation top-1 75 %')


def test_updates_the_line_in_a_terminal(monkeypatch):
    monkeypatch.setattr(training, 'INTERVAL', 0.)
    lines = train(Screen(True)).split('\n')
    assert len(lines) == 3 and not lines[2]
    assert lines[0].count('\r') == 5
    assert all(len(part) <= 79 for line in lines for part in line.split('\r'))


def test_measures_a_real_training(motion_dir, monkeypatch):
    monkeypatch.setattr(training, 'MIN_SECONDS', 0.)
    monkeypatch.chdir(motion_dir.parent)
    files = {*Path().iterdir()}
    cfg = load_config('linear_ff_tiny_motion', dict(
        # A short path, because mmengine's yapf needs seconds for long ones.
        data_root=motion_dir.name,
        **{'train_dataloader.batch_size': 4,
           'train_dataloader.num_workers': 0,
           'train_dataloader.persistent_workers': False}))
    cfg.work_dir = 'none'
    before = copy.deepcopy(cfg.to_dict())
    epochs, seconds, steps = training.fit_epochs(cfg, 1e-9)
    assert epochs == 1 and seconds > 0 < steps
    assert cfg.to_dict() == before
    assert {*Path().iterdir()} == files


class Clock:
    """A clock that only work moves."""

    def __init__(self, monkeypatch):
        self.now = 1000.
        monkeypatch.setattr(training.time, 'monotonic', lambda: self.now)

    def run(self, hook, epochs, seconds_of, validation=2., stop=math.inf,
            hub=None):
        """Train with the hook, and test; return its runner."""
        loop = SimpleNamespace(
            val_interval=math.ceil(epochs / 10), _max_epochs=epochs,
            _max_iters=10 * epochs, dataloader=range(10))
        runner = SimpleNamespace(
            epoch=0, iter=0, train_loop=loop,
            message_hub=hub or MessageHub.get_instance(uuid.uuid4().hex),
            param_schedulers=[SimpleNamespace(end=10 * epochs, warmup=9)])
        if hub:
            runner.epoch, runner.iter = stop, 10 * stop
        hook.before_train(runner)
        while runner.epoch < loop._max_epochs:
            hook.before_train_epoch(runner)
            for index in range(10):
                self.now += seconds_of(self.now - 1000) / 10
                hook.after_train_iter(runner, index)
                runner.iter += 1
                if runner.iter >= loop._max_iters:
                    break
            hook.after_train_epoch(runner)
            runner.epoch += 1
            if runner.epoch == stop and not hub:
                return runner
            if runner.epoch == loop._max_epochs or (
                    runner.epoch % loop.val_interval == 0):
                hook.before_val(runner)
                self.now += validation
                hook.after_val(runner)
        self.now += hook.tests * validation + training.RESULTS
        return runner


@pytest.mark.parametrize('planned', [1, 15, 500])
@pytest.mark.parametrize('seconds_of', [
    lambda now: 2., lambda now: 15., lambda now: .1, lambda now: 600.,
    # A load begins or ends.
    lambda now: 3. if now < 60 else 9., lambda now: 9. if now < 60 else 3.],
    ids=['even', 'long', 'short', 'endless', 'slower', 'faster'])
def test_ends_in_time(monkeypatch, planned, seconds_of):
    clock = Clock(monkeypatch)
    # The command began 20 s ago.
    runner = clock.run(training.TimeLimitHook(980., 180., 2.), planned,
                       seconds_of)
    assert clock.now - 980 == pytest.approx(180, rel=.2)
    # The learning rate ends with the training.
    assert runner.param_schedulers[0].end == runner.iter


def test_a_resumed_run_has_the_rest_of_the_time(monkeypatch):
    clock = Clock(monkeypatch)
    runner = clock.run(training.TimeLimitHook(1000., 180., 1.), 20,
                       lambda now: 5., stop=12)
    before, clock.now = clock.now - 1000, 9000.
    clock.run(training.TimeLimitHook(9000., 180., 1.), 2, lambda now: 5.,
              stop=12, hub=runner.message_hub)
    assert before + clock.now - 9000 == pytest.approx(180, rel=.2)


def test_a_limit_of_epochs_ends_earlier(monkeypatch):
    clock = Clock(monkeypatch)
    assert clock.run(training.TimeLimitHook(1000., 600., 1., 100), 100,
                     lambda now: .2).epoch == 100
