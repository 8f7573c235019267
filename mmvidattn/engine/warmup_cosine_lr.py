# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math
from typing import Literal

from mmengine.optim import BaseOptimWrapper
from mmengine.optim.scheduler.param_scheduler import _ParamScheduler
from mmengine.registry import PARAM_SCHEDULERS
from torch.optim import Optimizer

from ..utils.arguments import Fraction, NotNegative, check_arguments


@PARAM_SCHEDULERS.register_module()
@check_arguments
class WarmupCosineLR(_ParamScheduler):
    """Learning rate with a cosine and a linear warm-up from the first step.

    The cosine falls from ``lr`` to 0 over all steps. (With two consecutive
    schedulers of mmengine, it would start only after the warm-up.) There are
    two kinds of warm-up:

    - ``curve='product'``, as in TeSTra: the rate of step i is the cosine times
      a factor that grows from ``start_factor`` to 1. The first step is i = 1,
      so that the rate of the last step is 0.
    - ``curve='line'``, as in SlowFast: the rate grows on a straight line from
      ``start_factor * lr`` to the value that the cosine has at the end of the
      warm-up, which is below ``lr``. The first step is i = 0.

    Args:
        optimizer: Optimizer or optimizer wrapper.
        warmup: Number of steps of the warm-up.
        end: Last step of the cosine.
        start_factor: Rate at the start of the warm-up, relative to ``lr``.
            Defaults to 0.3.
        curve: ``'product'`` or ``'line'``. Defaults to ``'product'``.
        begin: First step of warm-up and cosine. Defaults to 0.
        **kwargs: ``last_step``, ``by_epoch`` and ``verbose`` of mmengine's
            schedulers.
    """

    def __init__(self, optimizer: Optimizer | BaseOptimWrapper,
                 warmup: NotNegative, end: NotNegative,
                 start_factor: Fraction = 0.3,
                 curve: Literal['product', 'line'] = 'product',
                 begin: NotNegative = 0, **kwargs) -> None:
        if not 0 <= warmup <= end - begin:
            raise ValueError('warmup must be between 0 and end - begin = '
                             f'{end - begin}, got {warmup}')
        self.warmup = warmup
        self.start_factor = start_factor
        self.curve = curve
        super().__init__(optimizer, 'lr', begin=begin, end=end, **kwargs)

    @classmethod
    def build_iter_from_epoch(
            cls, *args, warmup: float, end: float, epoch_length: int,
            begin: float = 0, by_epoch: bool = True,
            **kwargs) -> 'WarmupCosineLR':
        """Build a schedule in iterations from lengths in epochs."""
        if not by_epoch:
            raise ValueError('convert_to_iter_based needs by_epoch=True')
        begin, end, warmup = (
            int(x * epoch_length) for x in (begin, end, warmup))
        return cls(*args, warmup=warmup, begin=begin, end=end, by_epoch=False,
                   **kwargs)

    def _get_value(self) -> list[float]:
        line = self.curve == 'line'
        step = self.last_step + (not line)
        factor = self._cosine(step)
        if step < self.warmup:
            done = step / self.warmup
            peak = self._cosine(self.warmup) if line else 1
            warm = self.start_factor * (1 - done) + peak * done
            factor = warm if line else factor * warm
        return [base * factor for base in self.base_values]

    def _cosine(self, step: float) -> float:
        return 0.5 * (1 + math.cos(math.pi * step / (self.end - self.begin)))
