# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""mmengine's training loops with exact resumption and preemption."""
from collections.abc import Iterator
from itertools import count
from typing import Any

from mmaction.registry import LOOPS
from mmengine.dataset import InfiniteSampler
from mmengine.dist import get_rank, get_world_size
from mmengine.runner import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    Runner,
    ValLoop,
)
from mmengine.runner.base_loop import BaseLoop
from torch import nn
from torch.utils.data import DataLoader

from .hooks import ExactResumeHook, PreemptionHook, find_hook
from .seeded_samples import (
    LazyLoader,
    SeededBatches,
    loader_like,
    seed_samples,
)

# Name in configs of earlier versions.
LOOPS.register_module('SafeValLoop', module=ValLoop)


class SafeTrainLoop(BaseLoop):
    """Base class of the two training loops.

    With :class:`~mmvidattn.engine.PreemptionHook`, a loop stops after the
    iteration in which the signal arrives. With
    :class:`~mmvidattn.engine.ExactResumeHook`, the seed of a sample depends on
    its position in the run, and a resumed run continues at the position of its
    checkpoint.

    Attributes:
        batches: Batch sampler that knows the position in the run; None without
            the hook, or if the data loader is not a plain ``DataLoader``.
        first: Number of the current epoch, and of its first iteration.
    """

    def __init__(self, runner: Runner, dataloader: DataLoader | dict) -> None:
        super().__init__(runner, dataloader)
        self.preemption = find_hook(runner, PreemptionHook)
        self.exact_resume = find_hook(runner, ExactResumeHook)
        self.batches: SeededBatches | None = None
        self.first = (0, 0)
        loader = self.dataloader
        if (type(loader) not in (DataLoader, LazyLoader)
                or loader.batch_sampler is None):
            # Loaders of other types stay unchanged.
            return
        if self.exact_resume is None:
            self.dataloader = loader_like(loader)
            return
        self.dataloader = seed_samples(
            loader, runner.seed, get_rank(), get_world_size())
        self.batches = self.dataloader.batch_sampler

    @property
    def sampler(self) -> Any:
        """Sampler of single samples, or None."""
        loader = self.dataloader
        return getattr(loader.batch_sampler, 'sampler', loader.sampler)

    def batches_done(self, epoch: int, iter: int) -> int:
        """Return how many batches of an epoch precede an iteration."""
        return iter - self.first[1] if epoch == self.first[0] else 0

    def resume(self) -> None:
        """Move to the position of the checkpoint, if the run is resumed."""
        hook = self.exact_resume
        state = hook and hook.resumed
        if self.batches is not None:
            if hook.of_rank is not None:
                self.batches.seed = hook.of_rank['seed']
                if hook.of_rank['sampler_seed'] is not None:
                    # Samplers read their seed when an epoch starts.
                    self.sampler.seed = hook.of_rank['sampler_seed']
            self._go_to(state)
        if state is not None and not state['validated'] and self._val_is_due():
            self.runner.logger.info(
                'Repeating the validation that was interrupted')
            self.runner.val_loop.run()

    def _val_is_due(self) -> bool:
        by_epoch = isinstance(self, EpochBasedTrainLoop)
        done, end = ((self._epoch, self._max_epochs) if by_epoch
                     else (self._iter, self._max_iters))
        self._decide_current_val_interval()
        return (self.runner.val_loop is not None
                and done >= max(self.val_begin, 1)
                and (done % self.val_interval == 0 or done == end))

    def _stop_if_requested(self) -> None:
        if self.preemption is not None and self.preemption.is_requested():
            self.preemption.leave(self.runner)


@LOOPS.register_module()
class SafeEpochBasedTrainLoop(EpochBasedTrainLoop, SafeTrainLoop):
    """mmengine's ``EpochBasedTrainLoop``, as a :class:`SafeTrainLoop`."""

    def run(self) -> nn.Module:
        """Train."""
        self.runner.call_hook('before_train')
        self.resume()
        while self._epoch < self._max_epochs and not self.stop_training:
            self.run_epoch()
            if self._val_is_due():
                self.runner.val_loop.run()
        self.runner.call_hook('after_train')
        return self.runner.model

    def run_epoch(self) -> None:
        """Train for an epoch, or for the rest of it."""
        self.runner.call_hook('before_train_epoch')
        start = 0
        if self.batches is not None:
            start, self.batches.epoch = self.batches.start, self._epoch
        if start:
            # Restore again, because a hook may have changed the generators.
            self.exact_resume.restore_generators(self.runner)
        self.first = (self._epoch, self._iter - start)
        self.runner.model.train()
        for idx, data_batch in enumerate(self.dataloader, start):
            self.run_iter(idx, data_batch)
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1

    def run_iter(self, idx: int, data_batch: Any) -> None:
        """Train on a batch."""
        super().run_iter(idx, data_batch)
        self._stop_if_requested()

    def _go_to(self, state: dict | None) -> None:
        if state is not None:
            # Skip the same share of the epoch, whose length may have changed.
            self.batches.start = (state['batch'] * len(self.dataloader)
                                  // state['num_batches'])

    def _val_is_due(self) -> bool:
        within_epoch = self.batches is not None and self.batches.start > 0
        return not within_epoch and super()._val_is_due()


@LOOPS.register_module()
class SafeIterBasedTrainLoop(IterBasedTrainLoop, SafeTrainLoop):
    """mmengine's ``IterBasedTrainLoop``, as a :class:`SafeTrainLoop`."""

    def run(self) -> nn.Module:
        """Train."""
        self.runner.call_hook('before_train')
        self.dataloader_iterator = self._endless_batches()
        self.resume()
        self.runner.call_hook('before_train_epoch')
        if self.batches is None:
            for _ in range(self._iter):
                next(self.dataloader_iterator)
        while self._iter < self._max_iters and not self.stop_training:
            self.runner.model.train()
            self.run_iter(next(self.dataloader_iterator))
            if self._val_is_due():
                self.runner.val_loop.run()
        self.runner.call_hook('after_train_epoch')
        self.runner.call_hook('after_train')
        return self.runner.model

    def run_iter(self, data_batch: Any) -> None:
        """Train on a batch."""
        super().run_iter(data_batch)
        self._stop_if_requested()

    def batches_done(self, epoch: int, iter: int) -> int:
        return iter

    def _endless_batches(self) -> Iterator[Any]:
        for epoch in count(self.first[0]):
            if hasattr(self.sampler, 'set_epoch'):
                self.sampler.set_epoch(epoch)
            if self.batches is not None:
                self.batches.epoch = epoch
            yield from self.dataloader

    def _go_to(self, state: dict | None) -> None:
        epoch, start = divmod(self._iter, len(self.dataloader))
        if isinstance(self.sampler, InfiniteSampler):
            # This sampler is endless: there is only one epoch.
            epoch, start = 0, self._iter
        self.first, self.batches.start = (epoch, self._iter - start), start
