# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Saves a run that its cluster wants to stop."""
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from mmaction.registry import HOOKS
from mmengine.hooks import EMAHook, Hook
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from .safe_checkpoint_hook import SafeCheckpointHook


class _OutliveSignal:
    """A worker's first step: a scheduler signals the workers as well.

    They go on for a while, for the main process to save. But they do end:
    Python ends those that are left over with the same signal, and waits.
    """
    seconds = 10

    def __init__(self, number: int, then: Callable | None) -> None:
        self.number, self.then = number, then

    def __call__(self, worker_id: int) -> None:
        signal.signal(self.number, self._end_later)
        if self.then is not None:
            self.then(worker_id)

    def _end_later(self, *args: Any) -> None:
        timer = threading.Timer(self.seconds, os._exit, [0])
        timer.daemon = True
        timer.start()


@HOOKS.register_module()
class PreemptionHook(Hook):
    """Save at once on SIGTERM, and leave as a process that it ended.

    The checkpoint is written after the running iteration of training or
    validation, and the program then exits with 143 (128 + SIGTERM), which
    Slurm, Kubernetes and their like take for a job that was told to stop.
    ``--resume`` goes on from there.

    All processes stop at the same iteration, also if the signal reaches only
    one of them; for that they exchange a number after each iteration.

    Needs :class:`SafeCheckpointHook`; without it the signal ends the program
    as it does any other.

    Args:
        signal_name: The signal to heed.
    """
    priority = 'VERY_LOW'

    def __init__(self, signal_name: str = 'SIGTERM') -> None:
        number = getattr(signal, signal_name, None)
        if not isinstance(number, signal.Signals):
            raise ValueError('signal_name must be the name of a signal, such '
                             f"as 'SIGTERM', got {signal_name!r}")
        self.signal = number
        self._asked = False
        self._group = None
        self._before: Any = None
        self._can_tell_in_val = True

    def before_train(self, runner: Runner) -> None:
        self._saver = next((hook for hook in runner.hooks
                            if isinstance(hook, SafeCheckpointHook)), None)
        main = threading.current_thread() is threading.main_thread()
        if self._saver is None or not main:
            return
        self._asked = False
        self._before = signal.signal(self.signal, self._note)
        for loop in runner.train_loop, runner.val_loop:
            loader = getattr(loop, 'dataloader', None)
            if isinstance(loader, DataLoader):
                loader.worker_init_fn = _OutliveSignal(
                    self.signal, loader.worker_init_fn)
        if _is_distributed():
            self._group = dist.new_group(backend='gloo')

    def after_train(self, runner: Runner) -> None:
        if self._before is not None:
            signal.signal(self.signal, self._before)
            self._before = None

    def _note(self, *args: Any) -> None:
        self._asked = True

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: Any = None) -> None:
        if self._is_asked():
            self._leave(runner, runner.epoch, runner.iter + 1)

    def before_val(self, runner: Runner) -> None:
        # With unequal numbers of batches the processes would wait for each
        # other for ever.
        self._can_tell_in_val = True
        if self._group is not None:
            length = len(runner.val_dataloader)
            ends = torch.tensor([length, -length])
            dist.all_reduce(ends, dist.ReduceOp.MAX, self._group)
            self._can_tell_in_val = bool(ends[0] == -ends[1])

    def after_val_iter(self, runner: Runner, batch_idx: int,
                       data_batch: Any = None,
                       outputs: Any = None) -> None:
        if self._can_tell_in_val and self._is_asked():
            for hook in runner.hooks:
                if isinstance(hook, EMAHook):
                    # The model has the averaged weights while it validates.
                    hook._swap_ema_parameters()
            self._leave(runner, runner.epoch, runner.iter)

    def _is_asked(self) -> bool:
        if self._before is None:
            return False
        if self._group is None:
            return self._asked
        asked = torch.tensor(int(self._asked))
        dist.all_reduce(asked, dist.ReduceOp.MAX, self._group)
        return bool(asked)

    def _leave(self, runner: Runner, epoch: int, iter: int) -> None:
        saved = self._saver.save_interrupted(runner, epoch, iter)
        runner.logger.warning(
            f'{self.signal.name}: stopped after epoch {epoch}, iteration '
            f'{iter}; '
            + ('--resume goes on from there' if saved else
               'this could not be saved'))
        code = 128 + self.signal
        if self._group is not None:
            # gloo may abort a process that shuts down in good order.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        raise SystemExit(code)


def _is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized()
