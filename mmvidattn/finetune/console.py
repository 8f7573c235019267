# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Console output: one line per epoch."""
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ..engine.hooks import NewClassifierHook, find_hook

BAR = 12
# Validation metrics to print, and what to print after the percent sign.
VALIDATED = {'acc/top1': '', 'acc/mean_average_precision': ' mAP',
             'online/mAP_stream': ' mAP',
             'online/mAP_non_overlapping': ' mAP'}
# Seconds between two updates of the bar.
INTERVAL = 0.2


@contextmanager
def no_prints() -> Iterator[None]:
    """Drop mmengine's prints, which its log file contains too."""
    with open(os.devnull, 'w') as null, redirect_stdout(null):
        yield


class ConsoleHook(Hook):
    """Print a line per epoch, with a progress bar in a terminal.

    Args:
        stream: Stream to print to. Defaults to standard output.
    """
    # Run after the hooks that change the metrics.
    priority = 'LOWEST'

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self._text = ''
        self._drawn = 0.

    def before_train(self, runner: Runner) -> None:
        self._began, self._first = time.monotonic(), runner.iter
        hook = find_hook(runner, NewClassifierHook)
        if hook is not None and hook.note:
            self.stream.write(f'{hook.note}\n')

    def before_train_epoch(self, runner: Runner) -> None:
        self.end_line()
        self._losses: list[float] = []
        self._accuracies: list[float] = []

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        self._losses.append(torch.as_tensor(outputs['loss']).item())
        if 'top1_acc' in outputs:
            self._accuracies.append(
                torch.as_tensor(outputs['top1_acc']).item())
        steps = len(runner.train_dataloader)
        self._text = self._describe(runner, runner.iter + 1)
        now = time.monotonic()
        if self.stream.isatty() and now - self._drawn >= INTERVAL:
            self._drawn = now
            full = BAR * (batch_idx + 1) // steps
            self._draw(f'[{"#" * full}{"." * (BAR - full)}] {self._text}')

    def after_val_epoch(self, runner: Runner,
                        metrics: dict | None = None) -> None:
        for name, unit in VALIDATED.items():
            value = (metrics or {}).get(name)
            if value is not None and self._text:
                self._text += f', validation {100 * value:.0f} %{unit}'

    def after_train(self, runner: Runner) -> None:
        self.end_line()

    def end_line(self) -> None:
        """Print the last epoch's line."""
        if self._text:
            self._draw(f'[{"#" * BAR}] {self._text}' if self.stream.isatty()
                       else self._text)
            self.stream.write('\n')
            self.stream.flush()
        self._text = ''

    def _describe(self, runner: Runner, done: int) -> str:
        new = done - self._first
        left = (time.monotonic() - self._began) / new * (
            runner.max_iters - done)
        text = (f'epoch {runner.epoch + 1:{len(str(runner.max_epochs))}}/'
                f'{runner.max_epochs}, {math.ceil(left)} s left, loss '
                f'{sum(self._losses) / len(self._losses):.3f}')
        if self._accuracies:
            mean = sum(self._accuracies) / len(self._accuracies)
            text += f', training {100 * mean:.0f} %'
        return text

    def _draw(self, text: str) -> None:
        # Overwrite the whole previous line.
        self.stream.write(f'\r{text:79}' if self.stream.isatty() else text)
        self.stream.flush()
