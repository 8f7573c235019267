# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that skips training steps with infinite or NaN gradients."""
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from mmaction.registry import HOOKS
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement
from torch.nn.modules.batchnorm import _NormBase

from ...utils.arguments import Natural, check_arguments
from ...utils.random_state import get_random_state, set_random_state
from ...utils.unwrap import unwrap
from ..batch_samples import FILE_KEYS, name_files
from ..first_fault import is_finite, name_bad_gradients, watch_outputs
from ..nan_guard import NanGuard
from .safe_checkpoint_hook import SafeCheckpointHook
from .safe_hook import SafeHook, find_hook


@HOOKS.register_module()
@check_arguments
class NanGuardHook(SafeHook):
    """Skip steps whose gradients are not finite, and log the cause.

    A skipped step changes neither the weights nor the statistics of
    normalization layers. The log names the files of the batch. It also names
    the first module whose output is not finite although its inputs are, which
    a second forward pass finds, or else the parameters whose gradients are not
    finite. After more than ``max_skips`` skipped steps in a row, the hook
    saves a checkpoint with the weights before these steps, and stops the run
    with an error.

    Validation and test stop with an error if a prediction is not finite,
    because most metrics would count it like any other prediction.

    :class:`mmvidattn.engine.nan_guard.NanGuard`, a mixin of the optimizer
    wrapper, checks the gradients. The check synchronizes with the device once
    per step.

    Args:
        max_skips: Number of consecutive steps that may be skipped; with 0, the
            first bad step stops the run. Defaults to 3.
    """
    priority = 'HIGH'

    def __init__(self, max_skips: Natural = 3) -> None:
        self.max_skips = max_skips

    def before_train(self, runner: Runner) -> None:
        wrapper = runner.optim_wrapper
        if not isinstance(wrapper, NanGuard):
            runner.logger.warning('NanGuardHook does not support '
                                  f'{type(wrapper).__name__}; it is off')
            return
        wrapper.skips, wrapper.report = 0, partial(self._report, runner)

    def after_train(self, runner: Runner) -> None:
        if isinstance(runner.optim_wrapper, NanGuard):
            runner.optim_wrapper.report = None

    def before_train_iter(self, runner: Runner, batch_idx: int,
                          data_batch: Any = None) -> None:
        self._batch = data_batch
        self._random = get_random_state()
        self._statistics = [
            (buffer, buffer.clone()) for module in runner.model.modules()
            if isinstance(module, _NormBase) for buffer in module.buffers()]

    def after_val_iter(self, runner: Runner, batch_idx: int,
                       data_batch: Any = None,
                       outputs: Sequence[Any] | None = None) -> None:
        for sample in outputs or ():
            if not isinstance(sample, BaseDataElement):
                continue
            for key, value in sample.all_items():
                if key.startswith('pred_') and not is_finite(value):
                    name = next(filter(None, map(sample.get, FILE_KEYS)),
                                f'a sample of batch {batch_idx}')
                    raise ValueError(
                        f'{key} of {name} must be finite; possible causes are '
                        'bad inputs, a diverged model or a number format that '
                        'overflows')

    after_test_iter = after_val_iter

    def _report(self, runner: Runner) -> None:
        skips = runner.optim_wrapper.skips
        self._restore_statistics()
        where = self._find(runner)
        files = name_files(self._batch)
        files = (f'files of the batch: {", ".join(files)}' if files else
                 'the files of the batch are unknown')
        message = (f'epoch {runner.epoch + 1}, iteration {runner.iter + 1}: '
                   f'values that are not finite, {where}; {files}')
        if skips <= self.max_skips:
            runner.logger.error(
                f'{message}. This step is skipped, {skips} in a row of '
                f'at most {self.max_skips}')
            return
        runner.optim_wrapper.zero_grad()
        set_random_state(self._random)
        saver = find_hook(runner, SafeCheckpointHook)
        saved = saver is not None and saver.save_interrupted(
            runner, runner.epoch, runner.iter)
        raise RuntimeError(
            f'{message}. Stopped after {self.max_skips} skipped steps in a '
            'row; the weights before this step are '
            + ('saved' if saved else 'not saved'))

    def _find(self, runner: Runner) -> str:
        """Describe the cause; run the batch again without side effects."""
        model = unwrap(runner.model)
        bad = name_bad_gradients(model)
        now = get_random_state()
        set_random_state(self._random)
        try:
            with torch.no_grad(), watch_outputs(model) as faulty:
                with runner.optim_wrapper.optim_context(model):
                    data = model.data_preprocessor(self._batch, True)
                    model._run_forward(data, mode='loss')
        finally:
            set_random_state(now)
            self._restore_statistics()
        if faulty:
            return f'first in {faulty[0]}'
        return (f'not in an output, but in the gradients of {bad}' if bad else
                'in the gradients of another process')

    @torch.no_grad()
    def _restore_statistics(self) -> None:
        for buffer, value in self._statistics:
            buffer.copy_(value)
