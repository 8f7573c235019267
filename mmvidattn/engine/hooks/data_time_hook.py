# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tells how long training waits for its data."""
import time
from typing import Any

from mmaction.registry import HOOKS
from mmengine.hooks import Hook
from mmengine.runner import Runner


@HOOKS.register_module()
class DataTimeHook(Hook):
    """Log, after each epoch, how much of it was spent waiting for data.

    mmengine logs ``data_time``, the seconds of a step before its batch was
    there, beside ``time``, those of the whole step. This is their sum over
    the epoch, as a share, and the milliseconds that opening and decoding a
    clip took the workers (of samples that a guard has loaded, see
    :class:`~mmvidattn.datasets.broken_files.guard.Guard`). The main process
    tells of its own rank. Validation does not count, nor what other hooks do
    before the first step.
    """
    # After hooks that save and log: what they take is no waiting.
    priority = 'LOWEST'

    def before_train_epoch(self, runner: Runner) -> None:
        self._waited = self._total = self._decoding = 0.
        self._num_clips = 0
        self._since = time.perf_counter()

    def before_train_iter(self, runner: Runner, batch_idx: int,
                          data_batch: Any = None) -> None:
        self._waited += time.perf_counter() - self._since

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        now = time.perf_counter()
        self._total += now - self._since
        self._since = now
        samples = data_batch.get('data_samples') if isinstance(
            data_batch, dict) else None
        for sample in samples or ():
            seconds = getattr(sample, 'metainfo', {}).get('decode_seconds')
            if seconds is not None:
                self._decoding += seconds
                self._num_clips += 1

    def after_val_epoch(self, runner: Runner,
                        metrics: dict | None = None) -> None:
        self._since = time.perf_counter()

    def after_train_epoch(self, runner: Runner) -> None:
        if not self._total:
            return
        said = (f'{self._waited / self._total:.0%} of the time of training '
                f'steps went to waiting for data ({self._waited:.1f} of '
                f'{self._total:.1f} s)')
        if self._num_clips:
            said += (f'; opening and decoding a clip took '
                     f'{1000 * self._decoding / self._num_clips:.1f} ms of a '
                     'worker')
        runner.logger.info(said)
