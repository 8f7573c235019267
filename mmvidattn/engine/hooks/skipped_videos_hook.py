# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Counts the videos that training had to leave out."""
from collections import Counter

from mmaction.registry import HOOKS
from mmengine.dist import all_gather_object
from mmengine.hooks import Hook
from mmengine.runner import Runner

MAX_NAMES = 20


@HOOKS.register_module()
class SkippedVideosHook(Hook):
    """Log at the end of training which videos were skipped, and how often.

    Counts the ``skipped_videos`` that
    :class:`mmvidattn.datasets.GuardedVideoDataset` leaves in the meta
    information of the samples it returns, over all workers and ranks.
    """

    def before_train(self, runner: Runner) -> None:
        self.counts: Counter[str] = Counter()

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: dict | None = None,
                         outputs: dict | None = None) -> None:
        for sample in data_batch['data_samples']:
            self.counts.update(sample.get('skipped_videos', ()))

    def after_train(self, runner: Runner) -> None:
        counts = sum(all_gather_object(self.counts), Counter())
        if not counts:
            return
        names = [f'{name} ({count})'
                 for name, count in counts.most_common(MAX_NAMES)]
        if len(counts) > MAX_NAMES:
            names.append('...')
        runner.logger.warning(
            f'{len(counts)} unreadable videos were skipped, '
            f'{counts.total()} times in all: {", ".join(names)}')
