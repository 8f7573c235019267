# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hooks that report on a run: logs, waiting for data, and skipped videos."""
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mmaction.registry import HOOKS
from mmengine.dist import all_gather_object, is_main_process
from mmengine.hooks import Hook, LoggerHook
from mmengine.runner import Runner

from ...utils.files import write_atomically
from ...utils.printable import count, describe_error
from . import metainfos

MAX_NAMES = 20


@HOOKS.register_module()
class TolerantLoggerHook(LoggerHook):
    """mmengine's ``LoggerHook``, without an exception if writing fails.

    The terminal shows one error, and training continues. Only the main
    process writes the metrics of a test.
    """

    def after_train_iter(self, runner: Runner, *args: Any,
                         **kwargs: Any) -> None:
        with self._tolerant(runner):
            super().after_train_iter(runner, *args, **kwargs)

    def after_val_epoch(self, runner: Runner, *args: Any,
                        **kwargs: Any) -> None:
        with self._tolerant(runner):
            super().after_val_epoch(runner, *args, **kwargs)

    def after_test_epoch(self, runner: Runner, *args: Any,
                         **kwargs: Any) -> None:
        # In mmengine, all processes write the same file at the same time.
        if is_main_process():
            super().after_test_epoch(runner, *args, **kwargs)

    @contextmanager
    def _tolerant(self, runner: Runner) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not getattr(self, '_has_failed', False):
                self._has_failed = True
                runner.logger.error(
                    f'cannot write the logs: {describe_error(error)}; '
                    'training continues without them')


@HOOKS.register_module()
class DataTimeHook(Hook):
    """Log the share of each epoch that training waited for data.

    The log also has the mean time in which a worker opens and decodes a clip,
    if a ``SkippingLoader`` loads the samples. Both figures are for the main
    process, without validation.
    """

    def before_train_epoch(self, runner: Runner) -> None:
        self._first = runner.iter
        self._decoding: list[float] = []

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        self._decoding += [info['decode_seconds']
                           for info in metainfos(data_batch)
                           if info.get('decode_seconds') is not None]

    def after_train_epoch(self, runner: Runner) -> None:
        number = runner.iter - self._first
        if not number:
            return
        waited, total = (
            runner.message_hub.get_scalar(f'train/{name}').data[0][
                -number:].sum() for name in ('data_time', 'time'))
        message = (f'training waited for data in {waited / total:.0%} of its '
                   f'time ({waited:.1f} of {total:.1f} s)')
        if self._decoding:
            mean = 1000 * sum(self._decoding) / len(self._decoding)
            message += f'; a worker opened and decoded a clip in {mean:.1f} ms'
        runner.logger.info(message)


@HOOKS.register_module()
class SkippedVideosHook(Hook):
    """Count the unreadable videos that data sets skip in training.

    ``CheckedVideoDataset`` and the wrapper ``SkipUnreadable`` name these in
    the meta information of the next sample (``SkippingLoader``). The hook
    counts them over all workers and ranks. After each epoch, it writes
    ``skipped_videos.txt`` to the work directory, one video per line (count,
    path and error, separated by tabs). At the end, it logs the counts.
    """

    def before_train(self, runner: Runner) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        for info in metainfos(data_batch):
            self.counts.update(info.get('skipped_videos', ()))
            self.reasons.update(info.get('skipped_reasons', {}))

    def after_train_epoch(self, runner: Runner) -> None:
        counts, reasons = self._gather()
        if not counts or not is_main_process():
            return
        try:
            write_atomically(
                Path(runner.work_dir, 'skipped_videos.txt'),
                ''.join(f'{number}\t{name}\t{reasons.get(name, "")}\n'
                        for name, number in counts.most_common()))
        except OSError as error:
            runner.logger.error('cannot write skipped_videos.txt: '
                                f'{describe_error(error)}')

    def after_train(self, runner: Runner) -> None:
        counts, _ = self._gather()
        if not counts:
            return
        names = [f'{name} ({number})'
                 for name, number in counts.most_common(MAX_NAMES)]
        names += ['...'] * (len(counts) > MAX_NAMES)
        runner.logger.warning(
            f'skipped {count(counts, "unreadable video")}, '
            f'{count(counts.total(), "time")} in all: {", ".join(names)}')

    def _gather(self) -> tuple[Counter[str], dict[str, str]]:
        """Return the count and the error of each file over all ranks."""
        counts, reasons = Counter(), {}
        for each in all_gather_object((self.counts, self.reasons)):
            counts.update(each[0])
            reasons.update(each[1])
        return counts, reasons
