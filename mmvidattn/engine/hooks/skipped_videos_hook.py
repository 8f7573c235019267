# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that counts the unreadable videos skipped in training."""
from collections import Counter
from pathlib import Path
from typing import Any

from mmaction.registry import HOOKS
from mmengine.dist import all_gather_object, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ...utils.files import write_atomically
from . import metainfos

MAX_NAMES = 20


@HOOKS.register_module()
class SkippedVideosHook(Hook):
    """Count the unreadable videos that data sets skip in training.

    ``CheckedVideoDataset`` and the wrapper ``SkipUnreadable`` replace an
    unreadable video by another one, and name it in the meta information of the
    next sample (``SkippingLoader``). The
    hook counts the skipped videos over all workers and ranks.
    After each epoch, it writes ``skipped_videos.txt`` to the work directory,
    one video per line (count, path and error, separated by tabs). At the end
    of training, it logs the counts.
    """

    def before_train(self, runner: Runner) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        for metainfo in metainfos(data_batch):
            self.counts.update(metainfo.get('skipped_videos', ()))
            self.reasons.update(metainfo.get('skipped_reasons', {}))

    def after_train_epoch(self, runner: Runner) -> None:
        rows = self._gather()
        if not rows or not is_main_process():
            return
        text = ''.join(f'{count}\t{name}\t{reason}\n'
                       for name, count, reason in rows)
        try:
            write_atomically(
                Path(runner.work_dir, 'skipped_videos.txt'), text)
        except OSError as error:
            runner.logger.error(f'cannot write skipped_videos.txt: {error}')

    def after_train(self, runner: Runner) -> None:
        rows = self._gather()
        if not rows:
            return
        names = [f'{name} ({count})' for name, count, _ in rows[:MAX_NAMES]]
        if len(rows) > MAX_NAMES:
            names.append('...')
        runner.logger.warning(
            f'{len(rows)} unreadable videos were skipped, '
            f'{sum(count for _, count, _ in rows)} times in all: '
            f'{", ".join(names)}')

    def _gather(self) -> list[list]:
        """Return [name, count, error] of each file, summed over all ranks."""
        counts, reasons = Counter(), {}
        mine = [[name, count, self.reasons.get(name, '')]
                for name, count in self.counts.items()]
        for rows in all_gather_object(mine):
            for name, count, reason in rows:
                counts[name] += count
                reasons[name] = reason
        return [[name, count, reasons[name]]
                for name, count in counts.most_common()]
