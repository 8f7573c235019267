# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that skips training steps with infinite or NaN gradients."""
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from mmaction.registry import HOOKS
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement
from torch.nn.modules.batchnorm import _NormBase
from torch.optim import Optimizer

from ...ops.torch_private import largest_values
from ...utils.arguments import Natural, check_arguments
from ...utils.modules import unwrap
from ...utils.random_state import get_random_state, set_random_state
from . import find_hook, is_finite, metainfos
from .atomic_checkpoint_hook import AtomicCheckpointHook

# Keys with the name of a video, a folder of frames, or a feature stream.
FILE_KEYS = 'filename', 'frame_dir', 'video_name'


@HOOKS.register_module()
@check_arguments
class SkipNanStepsHook(Hook):
    """Skip steps whose gradients are not finite, and log the cause.

    The check before each step of the optimizer synchronizes with the device
    once. A skipped step changes neither the weights nor the statistics of
    normalization layers. The log names the files of the batch, and a parameter
    whose gradient is not finite. After more than ``max_skips`` skipped steps
    in a row, the hook saves a checkpoint with the weights before these steps,
    and stops the run with an error.

    A loss scaler skips steps itself to find its scale. They count only once
    its scale is below 1. Validation and test stop with an error if a
    prediction is not finite, because most metrics would count it like others.

    Args:
        max_skips: Number of consecutive steps that may be skipped; with 0, the
            first bad step stops the run. Defaults to 3.
    """
    priority = 'HIGH'

    def __init__(self, max_skips: Natural = 3) -> None:
        self.max_skips = max_skips
        self._skips, self._scale, self._handle = 0, 0., None

    def before_train(self, runner: Runner) -> None:
        optimizer = getattr(runner.optim_wrapper, 'optimizer', None)
        if optimizer is None:
            runner.logger.warning(
                'SkipNanStepsHook does not support '
                f'{type(runner.optim_wrapper).__name__}; it is off')
            return
        self._skips = 0
        self._handle = optimizer.register_step_pre_hook(
            partial(self._before_step, runner))

    def after_train(self, runner: Runner) -> None:
        if self._handle is not None:
            self._handle.remove()

    def before_train_iter(self, runner: Runner, batch_idx: int,
                          data_batch: Any = None) -> None:
        self._batch = data_batch
        self._random = get_random_state()
        self._statistics = [
            (buffer, buffer.clone()) for module in runner.model.modules()
            if isinstance(module, _NormBase) for buffer in module.buffers()]

    def after_train_iter(self, runner: Runner, *args: Any,
                         **kwargs: Any) -> None:
        scaler = getattr(runner.optim_wrapper, 'loss_scaler', None)
        if scaler is not None and scaler.is_enabled():
            before, self._scale = self._scale, scaler.get_scale()
            # The scaler lowers its scale after each step that it skips.
            if self._scale < min(1, before):
                self._report(runner)

    def after_val_iter(self, runner: Runner, batch_idx: int,
                       data_batch: Any = None,
                       outputs: Sequence[Any] | None = None) -> None:
        for sample in outputs or ():
            if not isinstance(sample, BaseDataElement):
                continue
            for key, value in sample.all_items():
                if key.startswith('pred_') and not is_finite(value):
                    name = _file(sample) or f'a sample of batch {batch_idx}'
                    raise ValueError(
                        f'{key} of {name} must be finite; possible causes are '
                        'bad inputs, a diverged model or a number format that '
                        'overflows')

    after_test_iter = after_val_iter

    def _before_step(self, runner: Runner, optimizer: Optimizer,
                     *args: Any) -> None:
        parameters = [p for group in optimizer.param_groups
                      for p in group['params']
                      if p.grad is not None and p.grad.numel()]
        # Check the largest values instead of the norm, which may overflow.
        if not parameters or torch.stack([
                x.float().to(parameters[0].device) for x in largest_values(
                    [p.grad for p in parameters])]).isfinite().all():
            self._skips = 0
            return
        self._report(runner)
        # An optimizer ignores parameters without a gradient.
        for parameter in parameters:
            parameter.grad = None

    def _report(self, runner: Runner) -> None:
        """Log a skipped step, or stop the run after too many of them."""
        self._skips += 1
        layer = (self._skips > self.max_skips
                 and _first_bad_layer(runner, self._batch))
        with torch.no_grad():
            for buffer, value in self._statistics:
                buffer.copy_(value)
        bad = [f', such as that of {name}' for name, p in
               unwrap(runner.model).named_parameters()
               if p.grad is not None and not is_finite(p.grad)]
        files = ', '.join(filter(None, map(_file, metainfos(self._batch))))
        message = (f'epoch {runner.epoch + 1}, iteration {runner.iter + 1}: '
                   f'gradients that are not finite{"".join(bad[:1])}; '
                   f'files of the batch: {files or "unknown"}')
        if self._skips <= self.max_skips:
            runner.logger.error(
                f'{message}. This step is skipped, {self._skips} in a row of '
                f'at most {self.max_skips}')
            return
        runner.optim_wrapper.zero_grad()
        set_random_state(self._random)
        saver = find_hook(runner, AtomicCheckpointHook)
        saved = saver is not None and saver.save_interrupted(
            runner, runner.epoch, runner.iter)
        raise RuntimeError(
            f'{message}. Stopped after {self.max_skips} skipped steps in a '
            'row; the weights before this step are '
            + ('saved' if saved else 'not saved')
            + (f'. The first layer whose output is not finite: {layer}'
               if layer else ''))


def _first_bad_layer(runner: Runner, batch: Any) -> str:
    """Return the first layer whose output is not finite, or ''."""
    model, bad = unwrap(runner.model), []
    handles = [module.register_forward_hook(
        # A hook that returns a value would replace the output.
        lambda module, args, out, name=name: None if is_finite(
            out) else bad.append(name))
        for name, module in model.named_modules()]
    with torch.no_grad(), runner.optim_wrapper.optim_context(model):
        model(**model.data_preprocessor(batch, True), mode='loss')
    for handle in handles:
        handle.remove()
    return ''.join(bad[:1])


def _file(info: Mapping | BaseDataElement) -> str:
    """Return the file of a sample, or ''."""
    return str(next(filter(None, map(info.get, FILE_KEYS)), ''))
