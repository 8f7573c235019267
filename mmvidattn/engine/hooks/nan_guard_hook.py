# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Finds out where values that are not a number come from."""
from contextlib import contextmanager
from typing import Any

import torch
from mmaction.registry import HOOKS
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from ...utils.random_state import get_random_state, set_random_state
from .safe_checkpoint_hook import SafeCheckpointHook

MAX_FILES = 32
# What samples of videos, of folders of frames and of features have.
NAMES = 'filename', 'frame_dir', 'video_name'


@HOOKS.register_module()
class NanGuardHook(Hook):
    """Skip steps whose gradients are not finite, and say what made them so.

    The error in the log names the first module whose output is not finite
    although its inputs are (the forward pass is run once more to find it), or
    the parameters whose gradients are not; and the files of the batch. The
    weights and the statistics of normalisation stay as they were. After more
    than ``max_skips`` such steps in a row the run stops with an error and a
    checkpoint of the weights before them.

    With a loss scaler, which makes gradients overflow on purpose, only steps
    at a scale below 1 count.

    Looking at the gradients waits for the device once in each step.

    Args:
        max_skips: How many steps in a row may be skipped; with 0 the first
            one stops the run.
    """
    # Ahead of the hook that would average the weights.
    priority = 'HIGH'

    def __init__(self, max_skips: int = 3) -> None:
        if not isinstance(max_skips, int) or max_skips < 0:
            raise ValueError('max_skips must be an integer of at least 0, '
                             f'got {max_skips!r}')
        self.max_skips = max_skips
        self._skips = 0

    def before_train(self, runner: Runner) -> None:
        wrapper = runner.optim_wrapper
        if not isinstance(wrapper, OptimWrapper):
            runner.logger.warning('NanGuardHook does not know '
                                  f'{type(wrapper).__name__}; it is off')
            return
        self._skips = 0
        step, update = wrapper.step, wrapper.update_params

        def guarded_step(**kwargs: Any) -> None:
            if self._is_fine(runner):
                step(**kwargs)
            else:
                self._skip(runner)

        def guarded_update(loss: Tensor, *args: Any, **kwargs: Any) -> None:
            # Gradients tell all processes; the loss of one does not.
            poison = torch.where(loss.detach().isfinite(), 1., torch.nan)
            update(loss * poison.to(loss.dtype), *args, **kwargs)

        wrapper.step, wrapper.update_params = guarded_step, guarded_update

    def after_train(self, runner: Runner) -> None:
        for name in 'step', 'update_params':
            vars(runner.optim_wrapper).pop(name, None)

    def before_train_iter(self, runner: Runner, batch_idx: int,
                          data_batch: Any = None) -> None:
        self._batch = data_batch
        self._random = get_random_state()
        self._statistics = [
            (buffer, buffer.clone()) for module in runner.model.modules()
            if isinstance(module, _NormBase) for buffer in module.buffers()]

    def _is_fine(self, runner: Runner) -> bool:
        scaler = getattr(runner.optim_wrapper, 'loss_scaler', None)
        if scaler is not None and scaler.is_enabled():
            if scaler.get_scale() >= 1:
                return True
        grads = [p.grad for p in runner.model.parameters()
                 if p.grad is not None]
        if grads:
            # The largest value, not the norm, which overflows itself.
            largest = torch._foreach_norm(grads, float('inf'))
            if not torch.stack([x.float().to(largest[0].device)
                                for x in largest]).isfinite().all():
                return False
        self._skips = 0
        return True

    def _skip(self, runner: Runner) -> None:
        self._skips += 1
        with torch.no_grad():
            for buffer, value in self._statistics:
                buffer.copy_(value)
        where = self._find(runner)
        files = _files_of(self._batch)
        files = (f'files of the batch: {", ".join(files)}' if files else
                 'the batch does not say its files')
        message = (f'epoch {runner.epoch + 1}, iteration {runner.iter + 1}: '
                   f'values that are not finite, {where}; {files}')
        if self._skips <= self.max_skips:
            runner.logger.error(
                f'{message}. This step is skipped, {self._skips} in a row of '
                f'at most {self.max_skips}')
            return
        runner.optim_wrapper.zero_grad()
        set_random_state(self._random)
        saver = next((hook for hook in runner.hooks
                      if isinstance(hook, SafeCheckpointHook)), None)
        saved = saver is not None and saver.save_interrupted(
            runner, runner.epoch, runner.iter)
        raise RuntimeError(
            f'{message}. Stopped, after {self.max_skips} skipped steps in a '
            'row; the weights before this step are '
            + ('saved' if saved else 'not saved'))

    def _find(self, runner: Runner) -> str:
        """The first module that turns finite inputs into others."""
        model = runner.model
        model = model.module if is_model_wrapper(model) else model
        bad = [name for name, p in model.named_parameters()
               if p.grad is not None and not p.grad.isfinite().all()]
        now = get_random_state()
        set_random_state(self._random)
        try:
            with torch.no_grad(), _first_fault(model) as found:
                with runner.optim_wrapper.optim_context(model):
                    data = model.data_preprocessor(self._batch, True)
                    model._run_forward(data, mode='loss')
        finally:
            set_random_state(now)
            with torch.no_grad():
                for buffer, value in self._statistics:
                    buffer.copy_(value)
        if found:
            return f'first in {found[0]}'
        return ('in no output, but in the gradients of '
                + ', '.join(bad[:3]) + (', ...' if len(bad) > 3 else '')
                if bad else 'in the gradients of another process')


@contextmanager
def _first_fault(model: nn.Module):
    found: list[str] = []

    def look(name: str):

        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if not found and _finite(args) and not _finite(output):
                found.append(f'{name or "the model"} '
                             f'({type(module).__name__})')
            elif not found and not name == '' and not _finite(args):
                found.append(f'the input of {name} '
                             f'({type(module).__name__})')

        return hook

    handles = [module.register_forward_hook(look(name))
               for name, module in model.named_modules()
               if name != 'data_preprocessor']
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _finite(value: Any) -> bool:
    if torch.is_tensor(value):
        return not value.is_floating_point() or bool(value.isfinite().all())
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_finite, value))
    return True


def _files_of(batch: Any) -> list[str]:
    samples = batch.get('data_samples') if isinstance(batch, dict) else None
    names = [next(filter(None, map(sample.get, NAMES)), None)
             for sample in samples or () if hasattr(sample, 'metainfo')]
    names = [str(name) for name in names if name]
    return names[:MAX_FILES] + ['...'] * (len(names) > MAX_FILES)
