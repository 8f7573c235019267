# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that logs the time that training waits for data."""
import time
from typing import Any

from mmaction.registry import HOOKS
from mmengine.hooks import Hook
from mmengine.runner import Runner

from . import metainfos


@HOOKS.register_module()
class DataTimeHook(Hook):
    """Log the share of each epoch that training waited for data.

    The share is the sum of mmengine's ``data_time`` over the epoch, divided by
    the sum of its ``time``. The log also has the mean time in milliseconds in
    which a worker opens and decodes a clip, if a
    ``SkippingLoader`` loads the samples.
    Both figures are for the main process. They exclude validation, and the
    work of other hooks before the first step.
    """
    # Run after the hooks that save and log, to exclude their time.
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
        for metainfo in metainfos(data_batch):
            seconds = metainfo.get('decode_seconds')
            if seconds is not None:
                self._decoding += seconds
                self._num_clips += 1

    def after_val_epoch(self, runner: Runner,
                        metrics: dict | None = None) -> None:
        self._since = time.perf_counter()

    def after_train_epoch(self, runner: Runner) -> None:
        if not self._total:
            return
        message = (f'training waited for data in '
                   f'{self._waited / self._total:.0%} of its time '
                   f'({self._waited:.1f} of {self._total:.1f} s)')
        if self._num_clips:
            message += (f'; a worker opened and decoded a clip in '
                        f'{1000 * self._decoding / self._num_clips:.1f} ms')
        runner.logger.info(message)
