# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that saves a run on Ctrl-C or preemption by a cluster."""
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from mmaction.registry import HOOKS
from mmengine.hooks import EMAHook, Hook
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from ...utils.arguments import check_arguments
from ...utils.exits import Stopped
from . import find_hook
from .atomic_checkpoint_hook import AtomicCheckpointHook

# Seconds that a data loader worker continues after the signal.
SECONDS = 10


def outlive_signal(worker_id: int, number: int,
                   then: Callable[[int], None] | None = None) -> None:
    """Initialize a data loader worker that ends only seconds after a signal.

    A scheduler sends its signal ``number`` to the workers as well. They
    continue, so that the main process can finish its step and save. They must
    then end, because Python ends its child processes with the same signal, and
    waits for them. ``then`` is another initialization to call afterwards.
    """
    # A terminal sends Ctrl-C to the workers as well.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # torch treats any code except 0 as a crash.
    signal.signal(signal.SIGALRM, lambda *args: os._exit(0))
    signal.signal(number, lambda *args: signal.alarm(SECONDS))
    if then is not None:
        then(worker_id)


@HOOKS.register_module()
@check_arguments
class PreemptionHook(Hook):
    """Save a checkpoint on SIGTERM or Ctrl-C, and exit.

    After the signal, the run finishes the current iteration of training or
    validation, writes the checkpoint ``interrupted.pth``, from which
    ``--resume`` continues, and exits. The exit code is 143 (128 + SIGTERM),
    which Slurm, Kubernetes and similar systems recognize as a stopped job;
    after Ctrl-C, it is 130 (128 + SIGINT). A second Ctrl-C stops at once,
    without saving.

    All processes stop at the same iteration, even if only one receives the
    signal. For this, they exchange a number after each iteration.

    Without :class:`AtomicCheckpointHook`, this hook has no effect.

    Args:
        signal_name: Name of the signal. Defaults to 'SIGTERM'.
    """
    priority = 'VERY_LOW'

    def __init__(self, signal_name: str = 'SIGTERM') -> None:
        number = getattr(signal, signal_name, None)
        if not isinstance(number, signal.Signals):
            raise ValueError('signal_name must be the name of a signal, such '
                             f"as 'SIGTERM', got {signal_name!r}")
        self.signal = number
        # Number of the received signal, or 0.
        self._received = 0
        self._group = None
        self._handlers_before: dict[int, Any] = {}
        self._may_stop_in_val = True

    def before_train(self, runner: Runner) -> None:
        main = threading.current_thread() is threading.main_thread()
        if find_hook(runner, AtomicCheckpointHook) is None or not main:
            return
        for loop in filter(None, (runner.train_loop, runner.val_loop)):
            loader = loop.dataloader
            if isinstance(loader, DataLoader):
                loader.worker_init_fn = partial(
                    outlive_signal, number=self.signal,
                    then=loader.worker_init_fn)
        self._received = 0
        self._handlers_before = {
            number: signal.signal(number, self._request)
            for number in (self.signal, signal.SIGINT)}
        if dist.is_available() and dist.is_initialized():
            self._group = dist.new_group(backend='gloo')

    def after_train(self, runner: Runner) -> None:
        self._restore_handlers()

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)
        self._handlers_before = {}

    def _request(self, number: int, *args: Any) -> None:
        if number == signal.SIGINT:
            if self._received == number:
                self._restore_handlers()
                raise KeyboardInterrupt
            print('\nsaving after this step; Ctrl-C again stops without '
                  'saving', file=sys.stderr)
        self._received = number

    def after_train_iter(self, runner: Runner, *args: Any,
                         **kwargs: Any) -> None:
        if self.is_requested():
            # The loop counts the iteration after its hooks.
            self.leave(runner, runner.iter + 1)

    def before_val(self, runner: Runner) -> None:
        # If processes have different numbers of batches, the exchange would
        # deadlock.
        self._may_stop_in_val = True
        if self._group is not None:
            length = len(runner.val_dataloader)
            ends = torch.tensor([length, -length])
            dist.all_reduce(ends, dist.ReduceOp.MAX, self._group)
            self._may_stop_in_val = bool(ends[0] == -ends[1])

    def after_val_iter(self, runner: Runner, *args: Any,
                       **kwargs: Any) -> None:
        if not self._may_stop_in_val or not self.is_requested():
            return
        for hook in runner.hooks:
            if isinstance(hook, EMAHook):
                # Swap back the averaged weights that validation uses.
                hook.after_val_epoch(runner)
        self.leave(runner, runner.iter)

    def is_requested(self) -> bool:
        """Return True if the run must stop; all processes must call it."""
        if not self._handlers_before:
            return False
        if self._group is not None:
            received = torch.tensor(self._received)
            dist.all_reduce(received, dist.ReduceOp.MAX, self._group)
            self._received = int(received)
        return bool(self._received)

    def leave(self, runner: Runner, iter: int) -> None:
        """Save the run after ``iter`` iterations, and exit."""
        saved = find_hook(runner, AtomicCheckpointHook).save_interrupted(
            runner, runner.epoch, iter)
        reason = (f'stopped after epoch {runner.epoch}, iteration {iter}'
                  + ('' if saved else ', but no checkpoint could be saved'))
        runner.logger.info(f'{signal.Signals(self._received).name}: {reason}')
        code = 128 + self._received
        if self._group is not None:
            # Skip the regular shutdown, in which gloo may abort the process.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        self._restore_handlers()
        raise Stopped(code, reason, saved)
