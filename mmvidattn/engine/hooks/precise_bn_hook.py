# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hook that recomputes the statistics of BatchNorm."""
from itertools import islice

import torch
from mmaction.registry import HOOKS
from mmengine.dist import all_reduce
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ...utils.arguments import Count, check_arguments
from ...utils.modules import unwrap


@HOOKS.register_module()
@check_arguments
class PreciseBNHook(Hook):
    """Recompute the statistics of BatchNorm after each epoch.

    Running statistics are averages over many steps, during which the weights
    change. This hook passes training batches through the network without
    training it. The mean and variance over all batches and ranks become the
    statistics for validation, test and checkpoints, except in frozen layers.

    Args:
        num_batches: Number of training batches, limited to one epoch. Defaults
            to 200.
        interval: Epochs between two computations. Defaults to 1.
    """

    def __init__(self, num_batches: Count = 200, interval: Count = 1) -> None:
        self.num_batches = num_batches
        self.interval = interval

    def after_train_epoch(self, runner: Runner) -> None:
        if not (self.every_n_epochs(runner, self.interval)
                or self.is_last_train_epoch(runner)):
            return
        # No gradients, so DistributedDataParallel is not needed.
        count = precise_bn(
            unwrap(runner.model),
            islice(runner.train_dataloader, self.num_batches))
        if count:
            runner.logger.info(
                f'PreciseBNHook: statistics of BatchNorm over {count} batches')


@torch.no_grad()
def precise_bn(model: nn.Module, batches) -> int:
    """Set the statistics of BatchNorm of a model in train mode over batches.

    Returns the number of batches used; 0 without BatchNorm layers.
    """
    norms = [module for module in model.modules()
             if isinstance(module, _BatchNorm) and module.training
             and module.track_running_stats]
    if not norms:
        return 0
    momenta = [norm.momentum for norm in norms]
    # Means and mean squares of each layer, [2, channels].
    sums, count = [0.] * len(norms), 0
    try:
        # With momentum 1, the running statistics are those of the last batch.
        for norm in norms:
            norm.momentum = 1.
        for batch in batches:
            model(**model.data_preprocessor(batch, True), mode='loss')
            count += 1
            for i, norm in enumerate(norms):
                mean, var = norm.running_mean, norm.running_var
                sums[i] = sums[i] + torch.stack([mean, var + mean**2])
    finally:
        # Ctrl-C in a notebook must not change later training.
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
    for norm, total in zip(norms, sums):
        moments = total / count
        all_reduce(moments, 'mean')
        mean, square = moments
        norm.running_mean.copy_(mean)
        # The variance within batches plus the variance of their means.
        norm.running_var.copy_((square - mean**2).clamp(min=0))
    return count
