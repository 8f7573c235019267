# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Choice of the number of steps, so that a run ends in time."""
import math
import time
from collections.abc import Iterator
from typing import Any

from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch.utils.data import DataLoader

from ..engine.hooks import find_hook
from .options import MAX_EPOCHS

MAX_VALIDATIONS = 10
# Share of the warm-up of the learning rate.
WARMUP = 0.1
# Steps that show if the time is too short, and the largest share of the time
# for them.
MIN_STEPS, MEASURED = 8, .05
# Share of the time for training, as long as the time for a validation is
# unknown.
SHARE = 0.7
# Seconds for the files of results, without the test.
RESULTS = 10.
# Weight of a step in the mean of recent steps, and the largest part of an
# epoch that is left out at the end.
RECENT, SHORT = 0.05, 0.2
# Least share of the time for the training, if features take long.
LEAST = 0.1


class TooFewSteps(Exception):
    """The time is too short; the argument is the number of steps that fit."""


class TimeLimitHook(Hook):
    """Choose the number of steps during training, to end the run in time.

    After each step, the hook compares the time that is left with the time that
    steps and validations took. The schedule of the learning rate follows the
    number of steps. The last epoch may be incomplete. So may the first, which
    takes at most a tenth of the training, because its validation shows how
    much time validations and tests need. A resumed run has the time that
    earlier ones left.

    Args:
        began: When the command began, by ``time.monotonic``.
        seconds: Time for the whole command.
        tests: Work of the tests after the training, in validations.
        limit: Largest number of epochs, also of the loop of the runner.
        min_steps: Raise :class:`TooFewSteps` if fewer steps fit. Defaults to
            0.

    Attributes:
        max_epochs: Planned number of epochs.
        max_iters: Planned number of steps.
    """
    # Before the checkpoint hook, which saves the last epoch.
    priority = 'LOW'
    KEY = 'finetune_seconds'

    def __init__(self, began: float, seconds: float, tests: float,
                 limit: int, min_steps: int = 0) -> None:
        self.began, self.seconds, self.tests = began, seconds, tests
        self.limit, self.min_steps = limit, min_steps
        # The first step waits for the processes that read.
        self.spent, self.step, self.measured = 0., 0., -1
        self.validation: float | None = None
        # Next epoch with a validation, and step that ends an epoch.
        self._due, self.stop = 0., math.inf

    def before_train(self, runner: Runner) -> None:
        self.max_epochs = min(MAX_EPOCHS, self.limit)
        self.max_iters = self.max_epochs * len(runner.train_dataloader)
        if self.KEY in runner.message_hub.runtime_info:
            self.spent, self.validation = runner.message_hub.get_info(self.KEY)
            self.min_steps = 0
            self.max_epochs = min(runner.epoch + 1, self.limit)
            # Epochs with a checkpoint are validated.
            runner.train_loop.dynamic_intervals = [1]
        elif (lacking := LEAST * self.seconds - self._left()) > 0:
            self.began += lacking

    def before_train_epoch(self, runner: Runner) -> None:
        loop = runner.train_loop
        # Here, because other hooks prepare the loader before the training.
        if not isinstance(loop.dataloader, _UntilStop):
            loop.dataloader = _UntilStop(loop.dataloader, loop, self)
        self._start = time.monotonic()
        self._end = runner.iter + len(loop.dataloader)

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        now = time.monotonic()
        seconds, self._start = now - self._start, now
        self.measured += 1
        if not self.measured:
            return
        # The load of a machine changes: recent steps count more.
        self.step += (seconds - self.step) * max(RECENT, 1 / self.measured)
        self._revise(runner, runner.iter + 1)
        if self.measured == MIN_STEPS or (
                self.measured * self.step > MEASURED * self.seconds):
            self._check_steps(runner)

    def after_train_epoch(self, runner: Runner) -> None:
        loop, done = runner.train_loop, runner.epoch + 1
        self._end = runner.iter
        self._revise(runner, runner.iter)
        if self.measured > 0:
            # Before there is a checkpoint.
            self._check_steps(runner)
        loop.stop_training |= done >= self.max_epochs
        interval = done + 1
        if done >= self._due or loop.stop_training:
            interval = 1
            self._due = done + self.max_epochs / MAX_VALIDATIONS
        loop.dynamic_intervals = [interval]
        find_hook(runner, CheckpointHook).interval = interval

    def before_val(self, runner: Runner) -> None:
        self._start = time.monotonic()

    def after_val(self, runner: Runner) -> None:
        self.validation = time.monotonic() - self._start

    def _check_steps(self, runner: Runner) -> None:
        # A limit of epochs does not make the time too short.
        if self.max_iters < self.min_steps and self.max_epochs < self.limit:
            raise TooFewSteps(self.max_iters)
        self.min_steps = 0

    def _left(self) -> float:
        return self.seconds - self.spent - (time.monotonic() - self.began)

    def _revise(self, runner: Runner, done: int) -> None:
        loop, left, step = runner.train_loop, self._left(), self.step
        runner.message_hub.update_info(
            self.KEY, [self.seconds - left, self.validation])
        length, epoch = len(loop.dataloader), runner.epoch + 1
        if self.validation is None:
            left *= SHARE
        else:
            # The last epoch is validated, too.
            left -= RESULTS + (self.tests + 1) * self.validation
            step += self.validation / length / max(
                1, self.max_epochs / MAX_VALIDATIONS)
        steps = done + max(0, round(left / max(step, 1e-4)))
        # Without a short last epoch.
        more = max(0, math.ceil((steps - self._end) / length - SHORT))
        self.max_epochs = max(epoch, min(epoch + more, self.limit))
        self.max_iters = self.stop = max(done, min(
            steps, self._end + (self.max_epochs - epoch) * length))
        if self.validation is None and runner.val_loop is not None and (
                not self.min_steps and self.max_epochs < self.limit):
            self.stop //= MAX_VALIDATIONS
        for scheduler in runner.param_schedulers:
            scheduler.end = self.max_iters
            scheduler.warmup = WARMUP * scheduler.end


class _UntilStop:
    """Data loader whose epochs end at the step ``stop`` of a hook."""

    def __init__(self, loader: DataLoader, loop: EpochBasedTrainLoop,
                 hook: TimeLimitHook) -> None:
        self.loader, self.loop, self.hook = loader, loop, hook

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            yield batch
            if self.loop.iter >= self.hook.stop:
                return
