# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

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


@pytest.fixture
def ten_steps(monkeypatch):
    """Fake a training with 10 steps of half a second each."""
    class Loader(list):
        pass

    class Fake:
        train_dataloader = Loader(range(10))

        def register_hook(self, hook):
            hook.steps, hook.seconds = 4, 2.

        def train(self):
            raise training._Stop

    monkeypatch.setattr(
        training, 'build_runner', lambda *args, **options: Fake())


@pytest.mark.parametrize('minutes', [0.01, 1, 100])
def test_epochs_take_70_percent_of_the_time(ten_steps, minutes):
    cfg = load_config('linear_ff_tiny_motion')
    epochs, seconds, steps = training.fit_epochs(cfg, minutes)
    assert (seconds, steps) == (5, 10)
    assert epochs == max(1, min(100, math.floor(0.7 * 60 * minutes / 5)))
