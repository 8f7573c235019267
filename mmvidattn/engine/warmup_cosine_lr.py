# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math
from typing import Literal

from mmengine.optim import BaseOptimWrapper
from mmengine.optim.scheduler.lr_scheduler import LRSchedulerMixin
from mmengine.optim.scheduler.param_scheduler import _ParamScheduler
from mmengine.registry import PARAM_SCHEDULERS
from torch.optim import Optimizer

from ..utils.arguments import Fraction, check_arguments


@check_arguments
class WarmupCosineParamScheduler(_ParamScheduler):
    """Schedule of :class:`WarmupCosineLR` for any optimizer parameter."""

    def __init__(self,
                 optimizer: Optimizer | BaseOptimWrapper,
                 param_name: str,
                 warmup: float,
                 end: float,
                 start_factor: Fraction = 0.3,
                 curve: Literal['product', 'line'] = 'product',
                 begin: float = 0,
                 **kwargs) -> None:
        if not 0 <= warmup <= end - begin:
            raise ValueError('warmup must be between 0 and end - begin = '
                             f'{end - begin}, got {warmup}')
        self.warmup = warmup
        self.start_factor = start_factor
        self.curve = curve
        super().__init__(optimizer, param_name, begin=begin, end=end, **kwargs)

    @classmethod
    def build_iter_from_epoch(cls,
                              *args,
                              warmup: float,
                              end: float,
                              epoch_length: int,
                              begin: float = 0,
                              by_epoch: bool = True,
                              **kwargs) -> 'WarmupCosineParamScheduler':
        """Build a schedule in iterations from lengths in epochs."""
        if not by_epoch:
            raise ValueError('convert_to_iter_based needs by_epoch=True')
        begin, end, warmup = (
            int(x * epoch_length) for x in (begin, end, warmup))
        return cls(
            *args,
            warmup=warmup,
            begin=begin,
            end=end,
            by_epoch=False,
            **kwargs)

    def _get_value(self) -> list[float]:
        line = self.curve == 'line'
        step = self.last_step + (not line)
        factor = self._cosine(step)
        if step < self.warmup:
            done = step / self.warmup
            if line:
                factor = (self.start_factor * (1 - done) +
                          self._cosine(self.warmup) * done)
            else:
                factor *= self.start_factor * (1 - done) + done
        return [base * factor for base in self.base_values]

    def _cosine(self, step: float) -> float:
        return 0.5 * (1 + math.cos(math.pi * step / (self.end - self.begin)))


@PARAM_SCHEDULERS.register_module()
class WarmupCosineLR(LRSchedulerMixin, WarmupCosineParamScheduler):
    """Cosine schedule with linear warm-up, both from the first step.

    With two consecutive schedulers of mmengine, the cosine would start only
    after the warm-up.

    - ``curve='product'`` (TeSTra): the rate is ``lr * cosine(i) *
      warm-up(i)``. ``i`` is 1 in the first step, so that the rate of the last
      step is 0.
    - ``curve='line'`` (SlowFast): the warm-up is a straight line to the value
      of the cosine at the end of the warm-up, which is below ``lr``. ``i`` is
      0 in the first step.

    Args:
        optimizer: Optimizer or optimizer wrapper.
        warmup: Number of steps of the warm-up.
        end: Last step of the cosine.
        start_factor: Factor of the rate at the start of the warm-up. Defaults
            to 0.3.
        curve: ``'product'`` or ``'line'``. Defaults to ``'product'``.
        begin: First step of warm-up and cosine. Defaults to 0.
        **kwargs: ``last_step``, ``by_epoch`` and ``verbose`` of mmengine.
    """
