# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""How many epochs fit into a time."""
import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from .finetune_config import CACHE
from .runner import build_runner

MIN_STEPS, MIN_SECONDS = 8, 5.
# Of the time; the rest is for validation, tests and what varies.
SHARE = 0.7
MAX_EPOCHS = 100
# Of the time of an epoch, that of one whose features are on disk: at most.
CACHED_SHARE = 1 / 20


class _Stop(Exception):
    """Ends a training that was timed for long enough."""


class _StepTimerHook(Hook):
    """Measure the time of a step, without the first one."""

    def __init__(self) -> None:
        self.began = self.seconds = 0.
        self.steps = -1

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: dict | None = None,
                         outputs: dict | None = None) -> None:
        """Count the step."""
        now = time.monotonic()
        self.steps += 1
        if not self.steps:
            self.began = now
        self.seconds = now - self.began
        if self.steps >= MIN_STEPS and self.seconds >= MIN_SECONDS:
            raise _Stop


def fit_epochs(cfg: Config, minutes: float) -> tuple[int, float]:
    """Train for a moment, and count the epochs that fit into a time.

    Args:
        cfg: Of the training; it is not changed. Nothing of what is trained is
            kept.
        minutes: For training, validation and test.

    Returns:
        The epochs, 1 to ``MAX_EPOCHS``, and the seconds of an epoch, or of
        the first one where features are kept on disk.
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
        loader = runner.train_dataloader
        steps = len(loader)
        # Left to the garbage collector, they may be waited for.
        workers = getattr(loader, '_iterator', None)
        if hasattr(workers, '_shutdown_workers'):
            workers._shutdown_workers()
    epoch = steps * timer.seconds / max(1, timer.steps)
    fits = SHARE * 60 * minutes / max(epoch, 1e-3)
    slow = _epochs_without_cache(cfg)
    if fits > slow:
        fits = slow + (fits - slow) / CACHED_SHARE
    return min(max(1, math.floor(fits)), MAX_EPOCHS), epoch


def _epochs_without_cache(cfg: Config) -> float:
    """The epochs in which features of what is frozen are computed."""
    for hook in cfg.get('custom_hooks') or ():
        if hook.type == CACHE:
            return hook.get('num_variants') or 1
    return math.inf
