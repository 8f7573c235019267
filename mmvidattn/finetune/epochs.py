# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compute the number of epochs that fit into a given time."""
import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ..apis.runner import build_runner
from .options import MAX_EPOCHS

MIN_STEPS, MIN_SECONDS = 8, 5.
# Share of the time for training. The rest is for validation and test.
SHARE = 0.7


class _Stop(Exception):
    """End of a measurement."""


class _StepTimerHook(Hook):
    """Timer of training steps after the first one."""

    def __init__(self) -> None:
        self.began = self.seconds = 0.
        self.steps = -1

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: dict | None = None,
                         outputs: dict | None = None) -> None:
        now = time.monotonic()
        self.steps += 1
        if not self.steps:
            self.began = now
        self.seconds = now - self.began
        if self.steps >= MIN_STEPS and self.seconds >= MIN_SECONDS:
            raise _Stop


def fit_epochs(cfg: Config, minutes: float) -> tuple[int, float]:
    """Time some training steps, and compute how many epochs fit into a time.

    The config does not change, and no files remain.

    Args:
        cfg: Config of the training.
        minutes: Time for training, validation and test.

    Returns:
        Number of epochs, 1 to ``MAX_EPOCHS``, and the seconds of the first
        epoch.
    """
    timer = _StepTimerHook()
    cfg = cfg.copy()
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    cfg.test_cfg = cfg.test_dataloader = cfg.test_evaluator = None
    cfg.train_cfg = dict(by_epoch=True, max_epochs=MAX_EPOCHS)
    cfg.default_hooks = dict(cfg.default_hooks, checkpoint=None)
    cfg.log_level = 'WARNING'
    with TemporaryDirectory() as folder:
        cfg.work_dir = str(Path(folder, 'timing'))
        runner = build_runner(cfg, False)
        runner.register_hook(timer)
        try:
            runner.train()
        except _Stop:
            pass
        steps = len(runner.train_dataloader)
    epoch = steps * timer.seconds / max(1, timer.steps)
    fits = SHARE * 60 * minutes / max(epoch, 1e-3)
    return min(max(1, math.floor(fits)), MAX_EPOCHS), epoch
