# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner with the loops and guards that the hooks of this package need."""
import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmaction.registry import HOOKS, LOOPS, OPTIM_WRAPPERS, RUNNERS
from mmengine.config import Config
from mmengine.hooks import EMAHook, Hook
from mmengine.logging import MMLogger
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.runner import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    Runner,
    TestLoop,
    ValLoop,
)
from mmengine.runner.base_loop import BaseLoop
from torch import nn
from torch.utils.data import DataLoader

from ..datasets.broken_files.guarded_dataset import guarded, guards_of
from ..datasets.broken_files.read_notes import ReadNotes
from ..datasets.feature_cache_dataset import with_feature_cache
from ..ops.torch_private import end_workers
from ..utils.printable import PrintableFilter
from ..utils.shard_folder import join_shards
from ..utils.video_backend import apply_video_backend
from .crashed_videos import crashes_named, read_crashed_videos
from .hooks import (
    FeatureCacheHook,
    NanGuardHook,
    ShardedEMAHook,
    SkippedVideosHook,
    find_hook,
)
from .loops import (
    SafeEpochBasedTrainLoop,
    SafeIterBasedTrainLoop,
    SafeValLoop,
)
from .nan_guard import with_nan_guard
from .seeded_samples import loader_like
from .sharding import FullyShard, check_scaling
from .sharding.shard_checkpoint import new_folder, shard_states
from .sharding.shards import cut_optimizer_on_load
from .sharding.whole_checkpoint import whole_states

OURS = {
    EpochBasedTrainLoop: SafeEpochBasedTrainLoop,
    IterBasedTrainLoop: SafeIterBasedTrainLoop,
    ValLoop: SafeValLoop,
}


@RUNNERS.register_module()
class SafeRunner(Runner):
    """mmengine's ``Runner``, extended for the hooks of this package.

    Set ``runner_type = 'SafeRunner'`` in a config. The runner replaces
    mmengine's loops by the loops of this package, and keeps custom loops.
    These hooks and options of a config have further effects:

    - ``SkippedVideosHook``: the runner adds a guard to each dataset of
      mmaction2, and reports files that crash a decoder.
    - ``NanGuardHook``: the runner adds a ``NanGuard`` to the optimizer
      wrapper.
    - ``FeatureCacheHook``: datasets return the features of a frozen network.
    - ``FullyShard`` as model wrapper: the runner shards the initialized model,
      and gathers it to save it.
    - ``video_backend``: the library that decodes videos.
    - ``console_log_level``: the lowest level of the messages in the terminal.
      The log file has all messages.
    """
    # SafeHook checks this attribute, because it cannot import this class.
    has_safe_parts = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # For each data loader, the file that each of its workers reads.
        self._notes: list[ReadNotes] = []
        super().__init__(*args, **kwargs)

    @classmethod
    def from_cfg(cls, cfg: Config) -> 'SafeRunner':
        """Build a runner from a config that uses only supported options."""
        check_scaling(cfg)
        apply_video_backend(cfg)
        return super().from_cfg(cfg)

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
        with self._running(initialize=True):
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
    def _running(self, initialize: bool = False) -> Iterator[None]:
        """Shard the model before a loop, and end the loop's workers after it.

        If a signal ends the program, the workers are left to Python.

        Args:
            initialize: Initialize the weights before sharding. Defaults to
                False.
        """
        self._shard(initialize)
        try:
            with crashes_named(self._notes, self.work_dir):
                yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            self._end_workers()
            raise
        self._end_workers()

    def _shard(self, initialize: bool) -> None:
        if not isinstance(self.model, FullyShard) or self.model.is_sharded:
            return
        if initialize:
            # Each process can initialize only a complete model.
            super()._init_model_weights()
        self.model.shard()
        part, whole = self.model.count_parameters()
        self.logger.info(
            f'FullyShard: {self.model.num_units} units; this '
            f'process stores {part:,} of {whole:,} parameters')

    def _init_model_weights(self) -> None:
        if not isinstance(self.model, FullyShard):
            super()._init_model_weights()

    def register_hook(self, hook: Hook | dict, *args: Any,
                      **kwargs: Any) -> None:
        """Register a hook."""
        if isinstance(hook, dict) and isinstance(self.model, FullyShard):
            kind = hook.get('type')
            kind = HOOKS.get(kind) if isinstance(kind, str) else kind
            if kind is EMAHook:
                hook = dict(hook, type=ShardedEMAHook)
        super().register_hook(hook, *args, **kwargs)

    def save_checkpoint(self, out_dir: str, filename: str, *args: Any,
                        save_optimizer: bool = True, **kwargs: Any) -> None:
        """Save a checkpoint in the first process.

        With :class:`FullyShard`, all processes must call it.
        """
        owners: dict[str, Any] = {}
        if isinstance(self.model, FullyShard):
            owners['model'] = self.model.module
            if save_optimizer:
                owners['optimizer'] = self.optim_wrapper.optimizer
            ema = find_hook(self, ShardedEMAHook)
            if ema is not None:
                owners['ema'] = ema.ema_model
        if owners and self.model.sharded_checkpoints:
            folder = new_folder(out_dir, filename)
            kwargs['meta'] = dict(
                kwargs.get('meta') or {}, shards=folder.name,
                num_shards=self.world_size)
            states = shard_states(owners, folder)
        else:
            states = whole_states(owners)
        with states:
            super().save_checkpoint(out_dir, filename, *args,
                                    save_optimizer=save_optimizer, **kwargs)

    def load_checkpoint(self, filename: str, *args: Any,
                        **kwargs: Any) -> dict:
        """Load a checkpoint, and return it."""
        self._loading = filename
        return super().load_checkpoint(filename, *args, **kwargs)

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:
        """Call a method of all hooks."""
        if fn_name == 'after_load_checkpoint':
            # Hooks and model receive complete tensors.
            join_shards(kwargs['checkpoint'], self._loading)
        super().call_hook(fn_name, **kwargs)

    def _end_workers(self) -> None:
        for loop in self._train_loop, self._val_loop, self._test_loop:
            end_workers(getattr(loop, 'dataloader', None))

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the training loop, and its data loader."""
        if isinstance(loop, dict) and 'type' not in loop:
            loop = dict(loop)
            loop['type'] = EpochBasedTrainLoop if loop.pop(
                'by_epoch') else IterBasedTrainLoop
        return self._build('train', loop)

    def build_val_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the validation loop, and its data loader."""
        return self._build('val', loop, ValLoop)

    def build_test_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        """Build the test loop, and its data loader."""
        return self._build('test', loop, TestLoop)

    def _build(self, split: str, loop: BaseLoop | dict,
               default: type[BaseLoop] | None = None) -> BaseLoop:
        build = getattr(super(), f'build_{split}_loop')
        if not isinstance(loop, dict):
            return build(loop)
        kind = loop.get('type', default)
        kind = LOOPS.get(kind) if isinstance(kind, str) else kind
        if kind in OURS:
            loop = dict(loop, type=OURS[kind])
        name = f'_{split}_dataloader'
        if find_hook(self, FeatureCacheHook) is not None:
            setattr(self, name, _cached(getattr(self, name)))
        hook = find_hook(self, SkippedVideosHook)
        if hook is None:
            return build(loop)
        setattr(self, name, _guarded(
            getattr(self, name), **hook.options,
            on_error='skip' if split == 'train' else hook.in_test))
        loop = build(loop)
        crashed = read_crashed_videos(self.work_dir) if self._resume else ()
        notes = None
        if getattr(loop.dataloader, 'num_workers', 0):
            notes = ReadNotes(loop.dataloader.num_workers)
            self._notes.append(notes)
        for guard in guards_of(loop.dataloader.dataset):
            guard.notes = notes
            guard.given_up.update(
                dict.fromkeys(crashed, 'it crashed its decoder'))
        return loop

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
        is_new = isinstance(optim_wrapper, dict)
        built = super().build_optim_wrapper(optim_wrapper)
        if is_new and isinstance(self.model, FullyShard):
            cut_optimizer_on_load(built.optimizer)
        return built


def _cached(loader: Any) -> Any:
    if not isinstance(loader, dict):
        raise ValueError('cached features need the config of a data loader, '
                         f'got a {type(loader).__name__}')
    return dict(loader, dataset=with_feature_cache(loader['dataset']))


def _guarded(loader: Any, **options: Any) -> Any:
    if isinstance(loader, dict):
        return dict(loader, dataset=guarded(loader['dataset'], **options))
    if isinstance(loader, DataLoader):
        dataset = guarded(loader.dataset, **options)
        if dataset is not loader.dataset:
            return loader_like(loader, dataset=dataset)
    return loader
