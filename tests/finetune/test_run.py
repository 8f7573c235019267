# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
import json
import os
import time
import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from mmengine.config import Config
from mmengine.hooks import CheckpointHook
from mmengine.logging import HistoryBuffer, MessageHub
from mmengine.runner import EpochBasedTrainLoop

from mmvidattn.finetune import FineTuneOptions, run
from mmvidattn.finetune.clips import complete_options
from mmvidattn.finetune.run import _choose_folder
from mmvidattn.finetune.time_limit import RESULTS, TimeLimitHook, TooFewSteps
from mmvidattn.finetune.training import NOTES, ConsoleHook
from mmvidattn.utils.lock import lock_folder


@pytest.fixture
def options():
    """Options of a run on two videos, in an empty folder."""
    for name in 'a', 'b':
        Path('mine', name).mkdir(parents=True)
        Path('mine', name, '0.mp4').touch()
    return FineTuneOptions(Path('mine'))


def write_notes(out, options, **more):
    Path(out, 'run').mkdir(parents=True, exist_ok=True)
    Path(out, NOTES).write_text(json.dumps(
        dict(options=options.fixed(), videos=2, **more)))


def test_numbers_the_runs(options):
    first, second, third, _, fifth = (
        Path(f'work_dirs/finetune_mine{end}')
        for end in ('', '_2', '_3', '_4', '_5'))
    other = replace(options, seed=1)
    assert _choose_folder(options) == first
    write_notes(first, options)
    # The same options resume the run; different options get a new folder.
    assert _choose_folder(options) == first
    assert _choose_folder(replace(options, workers=9)) == first
    assert _choose_folder(other) == second
    write_notes(second, other)
    assert _choose_folder(other) == second
    assert _choose_folder(options) == first
    assert _choose_folder(replace(options, seed=2)) == third
    # Folders of other programs stay untouched.
    Path(third, 'run').mkdir(parents=True)
    Path('work_dirs/finetune_mine_4').mkdir()
    Path('work_dirs/finetune_mine_4', NOTES).write_text('{}')
    assert _choose_folder(replace(options, seed=2)) == fifth


def test_a_complete_run_is_not_reused_for_other_videos_or_minutes(options):
    first = Path('work_dirs/finetune_mine')
    longer = replace(options, minutes=6.)
    for done in {}, dict(done=5):
        write_notes(first, options, minutes=2., **done)
        new = first.with_name('finetune_mine_2') if done else first
        assert _choose_folder(longer) == new
        assert _choose_folder(replace(options, minutes=2.)) == first
        Path('mine/a/1.mp4').touch()
        # An interrupted run continues with its lists.
        assert _choose_folder(replace(options, minutes=2.)) == new
        Path('mine/a/1.mp4').unlink()


def test_refuses_a_folder_in_use(options):
    write_notes(out := _choose_folder(options), options)
    with lock_folder(out):
        child, code = os.fork(), 0
        if not child:
            try:
                run.finetune(options, False, 0.)
            except SystemExit as end:
                code = 7 * ('in use by another run' in str(end.code))
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_auto_weights_come_with_the_package(options, capsys):
    auto = replace(options, weights='auto')
    assert complete_options(auto).weights == 'default'
    assert 'start weights: linear_ff_tiny_motion' in capsys.readouterr().out
    # The options of a run do not depend on where the package is.
    assert replace(options, weights='default').fixed()['weights'] == 'default'
    other = replace(auto, model='vivit_tiny_motion')
    assert complete_options(other).weights is None
    assert 'starts from random weights' in capsys.readouterr().out


@pytest.mark.parametrize('is_terminal', [False, True])
def test_prints_a_line_per_epoch(monkeypatch, is_terminal):
    """Call the hook like a run that validates in the last epoch."""
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setattr('sys.stdout', stream)
    monkeypatch.setattr('mmvidattn.finetune.training.INTERVAL', 0.)
    hook = ConsoleHook()
    runner = SimpleNamespace(
        iter=0, epoch=0, max_epochs=2, max_iters=8, hooks=[],
        train_dataloader=range(4))
    hook.before_train(runner)
    for runner.epoch in range(2):
        hook.before_train_epoch(runner)
        for step in range(4):
            hook.after_train_iter(runner, step, outputs=dict(
                loss=step, top1_acc=0.5))
            runner.iter += 1
    hook.after_val_epoch(runner, {'acc/top1': 0.75})
    hook.after_train(runner)
    # A terminal shows each step in the same line.
    lines = [line.split('\r') for line in stream.getvalue().split('\n')]
    assert [*map(len, lines)] == [1 + 5 * is_terminal] * 2 + [1]
    assert all(len(part) <= 79 for line in lines for part in line)
    first, second, rest = (line[-1].rstrip() for line in lines)
    assert first.startswith('epoch 1/2, ') and not rest
    assert first.endswith(' s left, loss 1.500, training top-1 50 %')
    assert second.startswith('epoch 2/2, 0 s left, ')
    assert second.endswith('validation top-1 75 %')


class FakeRunner:
    """Runner of mmengine's loop of 10 steps, with a clock that work moves.

    ``epoch_seconds`` maps the time to the seconds of an epoch, ``validation``
    is the seconds of one, ``now`` the time of the start, and ``hub`` the
    message hub of an interrupted run of 12 epochs.
    """
    epoch = property(lambda self: self.train_loop.epoch)
    iter = property(lambda self: self.train_loop.iter)
    train_dataloader = property(lambda self: self.train_loop.dataloader)

    def __init__(self, hook, monkeypatch, epoch_seconds, validation=2.,
                 now=1000., hub=None):
        self.hook, self.validation, self.now = hook, validation, now
        monkeypatch.setattr(time, 'monotonic', lambda: self.now)
        self.epoch_seconds = epoch_seconds
        self.message_hub = hub or MessageHub.get_instance(uuid.uuid4().hex)
        self.visualizer, self.optim_wrapper = SimpleNamespace(), None
        self.hooks = [CheckpointHook(), hook]
        self.param_schedulers = [SimpleNamespace(end=1000, warmup=100)]
        self.val_loop, self.validated = SimpleNamespace(run=self.validate), []
        self.model = SimpleNamespace(
            train=lambda: None, train_step=self.train_step)
        loader = Loader(range(10))
        self.train_loop = EpochBasedTrainLoop(self, loader, hook.limit)
        if hub:
            self.train_loop._epoch, self.train_loop._iter = 12, 120

    def call_hook(self, name, **options):
        getattr(self.hook, name)(self, **options)

    def train_step(self, data, optim_wrapper):
        self.now += self.epoch_seconds(self.now) / 10

    def validate(self):
        self.call_hook('before_val')
        self.now += self.validation
        self.call_hook('after_val')
        self.validated.append((self.epoch, self.hooks[0].interval))

    def run(self):
        """Train and test; return the time of the end."""
        self.train_loop.run()
        return self.now + self.hook.tests * self.validation + RESULTS


class Loader(list):
    dataset = SimpleNamespace(metainfo={})


@pytest.mark.parametrize('epoch_seconds, validation', [
    (lambda now: 2., 2.), (lambda now: 15., 2.), (lambda now: .1, 2.),
    # Validation and tests are as long as the training.
    (lambda now: 200., 25.), (lambda now: 600., 2.),
    # A load begins or ends.
    (lambda now: 3. if now < 1060 else 9., 2.),
    (lambda now: 9. if now < 1060 else 3., 2.)], ids=[
        'even', 'long', 'short', 'validation', 'endless', 'slower', 'faster'])
def test_ends_in_time(monkeypatch, epoch_seconds, validation):
    # The command began 20 s ago.
    runner = FakeRunner(TimeLimitHook(980., 180., 2., 10**6), monkeypatch,
                        epoch_seconds, validation)
    assert runner.run() - 980 == pytest.approx(180, rel=.15)
    # The learning rate ends with the training.
    scheduler, = runner.param_schedulers
    assert scheduler.end == runner.iter
    assert scheduler.warmup == pytest.approx(scheduler.end / 10)
    # Each validation follows a checkpoint.
    epochs, intervals = zip(*runner.validated)
    assert epochs[-1] == runner.epoch == runner.hook.max_epochs
    assert {*intervals} == {1}
    assert len(epochs) <= 13


def test_a_resumed_run_has_the_rest_of_the_time(monkeypatch):
    def seconds(now):
        if len(killed.validated) == 6:
            raise KeyboardInterrupt
        return 5.

    killed = FakeRunner(TimeLimitHook(1000., 180., 1., 10**6), monkeypatch,
                        seconds)
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    resumed = FakeRunner(TimeLimitHook(9000., 180., 1., 10**6), monkeypatch,
                         lambda now: 5., now=9000., hub=killed.message_hub)
    spent = killed.now - 1000
    assert 40 < spent < 120
    assert spent + resumed.run() - 9000 == pytest.approx(180, rel=.1)


@pytest.mark.parametrize('epochs, minutes, seconds, limit', [
    ('auto', None, 600, 100), ('auto', 30, 1800, run.NO_LIMIT),
    (5, 30, 1800, 5), (5, None, None, 5)])
def test_epochs_and_minutes_are_both_limits(options, monkeypatch, epochs,
                                            minutes, seconds, limit):
    cfg = Config(dict(work_dir='x', train_cfg=dict(
        max_epochs=100 if epochs == 'auto' else epochs)))
    hooks = []
    for name, value in dict(
            load_run_config=cfg, find_resumable=(None, []),
            read_notes=dict(tests=1.5), build_runner=SimpleNamespace(
                train_loop=None, register_hook=hooks.append)).items():
        monkeypatch.setattr(run if hasattr(run, name) else run.training, name,
                            lambda *_, value=value, **__: value)
    run._build_training(replace(options, epochs=epochs, minutes=minutes), 7.,
                        300)
    assert [vars(hook) | dict(
        began=7., seconds=seconds, tests=1.5, limit=limit, min_steps=300)
        for hook in hooks] == [vars(hook) for hook in hooks]
    assert len(hooks) == (seconds is not None)
    assert cfg.train_cfg.max_epochs == limit


@pytest.mark.parametrize('score', [.9, 1.])
def test_few_steps_are_noted_unless_the_model_is_right(
        options, monkeypatch, capsys, score):
    hook = TimeLimitHook(0., 60., 1., 100)
    hook.max_epochs = 2
    runner = SimpleNamespace(
        train_dataloader=range(4), log_dir='x', timestamp='y', hooks=[hook],
        register_hook=lambda _: None, train=lambda: None, epoch=2, iter=8,
        message_hub=MessageHub('few', log_scalars={
            'val/acc/top1': HistoryBuffer([score], [1])}))
    cfg = Config(dict(train_cfg=dict(max_epochs=2)))
    monkeypatch.setattr(run, 'load_config', lambda _: cfg)
    for name in 'read_notes', 'write_notes':
        monkeypatch.setattr(run.training, name, lambda *_: {})
    run._train(runner, options, 0.)
    assert ('fewer than usual' in capsys.readouterr().out) == (score < 1)


def test_number_of_epochs_has_limits(monkeypatch):
    runner = FakeRunner(TimeLimitHook(1000., 600., 1., 100),
                        monkeypatch, lambda now: .2)
    runner.run()
    assert runner.epoch == 100
    # Few epochs are complete, and no reason for smaller images.
    for min_steps in 0, 300:
        runner = FakeRunner(TimeLimitHook(1000., 600., 1., 3, min_steps),
                            monkeypatch, lambda now: 5.)
        runner.run()
        assert (runner.epoch, runner.iter) == (3, 30)
    runner = FakeRunner(TimeLimitHook(1000., 60., 1., 40),
                        monkeypatch, lambda now: 5.)
    assert runner.run() - 1000 == pytest.approx(60, rel=.15)
    for seconds in 5., 12.:
        runner = FakeRunner(
            TimeLimitHook(1000., 60., 1., 10**6, min_steps=300),
            monkeypatch, lambda now: seconds)
        with pytest.raises(TooFewSteps) as error:
            runner.run()
        assert error.value.args[0] == pytest.approx(420 / seconds, rel=.2)
        # A checkpoint of larger images would be resumed.
        assert runner.epoch == 0 and not runner.validated
