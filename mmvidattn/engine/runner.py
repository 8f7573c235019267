# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner with the loops and guards that the hooks of this package need."""
import inspect
import itertools
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mmaction.registry import LOOPS, OPTIM_WRAPPERS, RUNNERS
from mmengine.config import Config
from mmengine.dist import broadcast_object_list, is_main_process
from mmengine.logging import MMLogger
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    Runner,
)
from mmengine.runner.base_loop import BaseLoop
from torch import nn
from torch.utils.data import DataLoader

from ..datasets.checked_datasets import skip_unreadable
from ..ops.torch_private import end_workers
from ..utils.printable import PrintableFilter
from ..utils.video_backend import apply_video_backend
from .hooks import (
    NanGuardHook,
    SkippedVideosHook,
    find_hook,
)
from .hooks.nan_guard_hook import with_nan_guard
from .loops import SafeEpochBasedTrainLoop, SafeIterBasedTrainLoop
from .scaling import check_scaling
from .seeded_samples import loader_like

OURS = {
    EpochBasedTrainLoop: SafeEpochBasedTrainLoop,
    IterBasedTrainLoop: SafeIterBasedTrainLoop,
}
# Start times of the runs of this process, which name loggers, too.
STAMPS: set[str] = set()


@RUNNERS.register_module()
class SafeRunner(Runner):
    """mmengine's ``Runner``, extended for the hooks of this package.

    Set ``runner_type = 'SafeRunner'`` in a config. The runner replaces
    mmengine's training loops by the loops of this package, and keeps custom
    loops. These hooks and options of a config have further effects:

    - ``SkippedVideosHook``: the runner adds a guard to each dataset of
      mmaction2, and reports files that crash a decoder.
    - ``NanGuardHook``: the runner adds a ``NanGuard`` to the optimizer
      wrapper.
    - ``video_backend``: the steps that decode videos.
    - ``console_log_level``: the lowest level of the messages in the terminal.
      The log file has all messages.
    """
    # SafeHook checks this attribute, because it cannot import this class.
    has_safe_parts = True

    @classmethod
    def from_cfg(cls, cfg: Config) -> 'SafeRunner':
        """Build a runner from a config that uses only supported options."""
        check_scaling(cfg)
        apply_video_backend(cfg)
        return super().from_cfg(cfg)

    def setup_env(self, env_cfg: dict) -> None:
        """Set up the environment, and make a new folder for the logs.

        mmengine names folders and loggers by the second in which a run starts.
        Runs of the same second get numbers.
        """
        super().setup_env(env_cfg)
        stamp = [self._timestamp]
        if is_main_process():
            for number in itertools.count(2):
                if stamp[0] not in STAMPS:
                    with suppress(FileExistsError):
                        os.mkdir(os.path.join(self.work_dir, stamp[0]))
                        break
                stamp[0] = f'{self._timestamp}_{number}'
            STAMPS.add(stamp[0])
        broadcast_object_list(stamp)
        self._timestamp, = stamp

    def build_logger(self, *args: Any, **kwargs: Any) -> MMLogger:
        """Build a logger that escapes unprintable characters."""
        logger = super().build_logger(*args, **kwargs)
        logger.addFilter(PrintableFilter())
        level = self.cfg.get('console_log_level')
        for handler in logger.handlers:
            if level and not isinstance(handler, logging.FileHandler):
                handler.setLevel(level)
                # mmengine warns about its own deprecated calls.
                handler.addFilter(
                    lambda record: 'deprecated' not in record.getMessage())
        return logger

    def train(self) -> nn.Module:
        """Train, and return the model."""
        with self._running():
            return super().train()

    def val(self) -> dict:
        """Validate, and return the metrics."""
        with self._running():
            return super().val()

    def test(self) -> dict:
        """Test, and return the metrics."""
        with self._running():
            return super().test()

    @contextmanager
    def _running(self) -> Iterator[None]:
        """End the workers of a loop after it."""
        try:
            yield
        finally:
            # The garbage collector waits five seconds for each worker.
            for loop in self._train_loop, self._val_loop, self._test_loop:
                end_workers(getattr(loop, 'dataloader', None))

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the training loop, and its data loader."""
        if isinstance(loop, dict):
            loop = dict(loop)
            kind = loop.pop('type', None) or (
                EpochBasedTrainLoop if loop.pop('by_epoch')
                else IterBasedTrainLoop)
            kind = LOOPS.get(kind) if isinstance(kind, str) else kind
            loop['type'] = OURS.get(kind, kind)
        return self._build('train', loop)

    def build_val_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the validation loop, and its data loader."""
        return self._build('val', loop)

    def build_test_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the test loop, and its data loader."""
        return self._build('test', loop)

    def _build(self, split: str, loop: BaseLoop | dict) -> BaseLoop:
        build = getattr(super(), f'build_{split}_loop')
        if not isinstance(loop, dict):
            return build(loop)
        name = f'_{split}_dataloader'
        hook = find_hook(self, SkippedVideosHook)
        if hook is None:
            return build(loop)
        setattr(self, name, _skip_unreadable(
            getattr(self, name), **hook.options,
            on_error='skip' if split == 'train' else 'raise'))
        return build(loop)

    def build_optim_wrapper(
            self, optim_wrapper: dict | OptimWrapper | OptimWrapperDict
    ) -> OptimWrapper | OptimWrapperDict:
        """Build the optimizer wrapper."""
        if (isinstance(optim_wrapper, dict)
                and {'optimizer', 'constructor'} & optim_wrapper.keys()
                and find_hook(self, NanGuardHook) is not None):
            kind = optim_wrapper.get('type', OptimWrapper)
            kind = OPTIM_WRAPPERS.get(kind) if isinstance(kind, str) else kind
            if inspect.isclass(kind) and issubclass(kind, OptimWrapper):
                optim_wrapper = dict(optim_wrapper, type=with_nan_guard(kind))
        return super().build_optim_wrapper(optim_wrapper)


def _skip_unreadable(loader: Any, **options: Any) -> Any:
    if isinstance(loader, dict):
        return dict(loader, dataset=skip_unreadable(
            loader['dataset'], **options))
    if isinstance(loader, DataLoader):
        dataset = skip_unreadable(loader.dataset, **options)
        if dataset is not loader.dataset:
            return loader_like(loader, dataset=dataset)
    return loader
