# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import math
from pathlib import Path

import pytest

from mmvidattn.apis.models import load_config
from mmvidattn.finetune import training

ROOT = Path(__file__).resolve().parents[2]


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
    epochs, seconds = training.fit_epochs(cfg, 1e-9)
    assert epochs == 1 and seconds > 0
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

    monkeypatch.setattr(training, 'build_runner', lambda *args: Fake())


@pytest.mark.parametrize('minutes', [0.01, 1, 100])
def test_epochs_take_70_percent_of_the_time(ten_steps, minutes):
    cfg = load_config('linear_ff_tiny_motion')
    epochs, seconds = training.fit_epochs(cfg, minutes)
    assert seconds == 5
    assert epochs == max(1, min(100, math.floor(0.7 * 60 * minutes / 5)))
