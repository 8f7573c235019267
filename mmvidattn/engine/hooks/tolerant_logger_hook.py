# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that logs, and continues if the disk is full."""
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmaction.registry import HOOKS
from mmengine.dist import is_main_process
from mmengine.hooks import LoggerHook
from mmengine.runner import Runner


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
                runner.logger.error(f'cannot write the logs: {error}; '
                                    'training continues without them')
