# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Optimizer wrappers that skip steps whose gradients are not finite."""
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from mmengine.optim import OptimWrapper
from torch import Tensor

from ..ops.torch_private import largest_values


class NanGuard(OptimWrapper):
    """Optimizer wrapper mixin that skips steps with non-finite gradients.

    With a loss scaler, only steps with a scale below 1 are checked, because at
    larger scales, the scaler lets gradients overflow to find its scale.

    Attributes:
        skips: Number of consecutive skipped steps until now.
        report: Function called at each skipped step, before the gradients are
            cleared. None turns the guard off.
    """
    skips = 0
    report: Callable[[], None] | None = None

    def update_params(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Compute gradients, and step after enough accumulations."""
        # Make the gradients NaN if the loss is not finite, because other
        # processes receive only the gradients.
        poison = torch.where(loss.detach().isfinite(), 1., torch.nan)
        super().update_params(loss * poison.to(loss.dtype), *args, **kwargs)

    def step(self, **kwargs: Any) -> None:
        """Step unless a gradient is not finite."""
        if self.report is None or self._may_step():
            self.skips = 0
            super().step(**kwargs)
            return
        self.skips += 1
        self.report()

    def _may_step(self) -> bool:
        scaler = getattr(self, 'loss_scaler', None)
        if (scaler is not None and scaler.is_enabled()
                and scaler.get_scale() >= 1):
            return True
        grads = [p.grad for group in self.optimizer.param_groups
                 for p in group['params'] if p.grad is not None]
        if not grads:
            return True
        # Check the largest values instead of the norm, which may overflow.
        return bool(torch.stack([
            x.float().to(grads[0].device)
            for x in largest_values(grads)]).isfinite().all())


@cache
def with_nan_guard(kind: type[OptimWrapper]) -> type[OptimWrapper]:
    """Derive a class from an optimizer wrapper and :class:`NanGuard`."""
    if issubclass(kind, NanGuard):
        return kind
    return type(f'NanGuard{kind.__name__}', (NanGuard, kind), {})
