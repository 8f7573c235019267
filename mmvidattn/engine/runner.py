# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner for the configs of this package."""
import inspect
import itertools
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from mmaction.registry import MODEL_WRAPPERS, RUNNERS
from mmengine.config import Config
from mmengine.dist import broadcast_object_list, is_main_process
from mmengine.logging import MMLogger
from mmengine.model import MMDistributedDataParallel
from mmengine.runner import Runner
from torch import nn

from ..ops.torch_private import end_workers
from ..utils.printable import PrintableFilter
from ..utils.video_backend import apply_video_backend

# Start times of the runs of this process, which name loggers, too.
STAMPS: set[str] = set()
DDP = ('train with DistributedDataParallel (tools/dist_train.sh), and save '
       'memory with model.backbone.with_cp=True')


def check_scaling(cfg: Mapping) -> None:
    """Check that a config uses only supported strategies and wrappers.

    Only ``MMDistributedDataParallel`` and its subclasses may wrap the model:
    ``MMFullyShardedDataParallel`` hangs when it saves a checkpoint, and other
    wrappers lack ``train_step`` or rename tensors in checkpoints.

    Raises:
        ValueError: If mmengine's Runner would ignore an option, or hang.
    """
    for key, unsupported in (('strategy', cfg.get('strategy')), (
            'runner_type', cfg.get('runner_type') == 'FlexibleRunner')):
        if unsupported:
            raise ValueError(
                f'{key} {cfg[key]!r} is not supported, because FlexibleRunner '
                f'cannot resume exactly: remove {key}, and {DDP}')
    kind = (cfg.get('model_wrapper_cfg') or {}).get('type')
    found = MODEL_WRAPPERS.get(kind) if isinstance(kind, str) else kind
    if kind is not None and not (inspect.isclass(found) and issubclass(
            found, MMDistributedDataParallel)):
        raise ValueError(
            f'model_wrapper_cfg {kind!r} is not supported: use '
            'MMDistributedDataParallel (the default) or a class derived from '
            'it')


@RUNNERS.register_module()
class VideoRunner(Runner):
    """mmengine's ``Runner`` with two more options of a config.

    - ``video_backend``: the steps that decode videos.
    - ``console_log_level``: the lowest level of the messages in the terminal.
      The log file has all messages.

    The runner also makes a log folder for each run, escapes unprintable
    characters in logs, and ends the workers of data loaders after each loop.
    """

    @classmethod
    def from_cfg(cls, cfg: Config) -> 'VideoRunner':
        """Build a runner from a config, with its ``video_backend``."""
        apply_video_backend(cfg)
        return super().from_cfg(cfg)

    def setup_env(self, env_cfg: dict) -> None:
        """Set up the environment, and make a new folder for the logs.

        Folders and loggers of runs that start in the same second get numbers.
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
        with self._ending_workers():
            return super().train()

    def val(self) -> dict:
        """Validate, and return the metrics."""
        with self._ending_workers():
            return super().val()

    def test(self) -> dict:
        """Test, and return the metrics."""
        with self._ending_workers():
            return super().test()

    @contextmanager
    def _ending_workers(self) -> Iterator[None]:
        try:
            yield
        finally:
            # The garbage collector waits five seconds for each worker.
            for loop in self._train_loop, self._val_loop, self._test_loop:
                end_workers(getattr(loop, 'dataloader', None))
