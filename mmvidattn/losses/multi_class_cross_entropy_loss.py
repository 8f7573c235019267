# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cross-entropy of targets that may name several classes."""
import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Natural, NotNegative, check_arguments


def multi_hot(targets: Tensor, num_classes: int) -> Tensor:
    """Write targets as one row of zeros and ones a step.

    Args:
        targets: Class ids ``(...)``, int64, of which a negative one is no
            class; or multi-hot ``(..., K)``, which are returned as float32.
        num_classes: ``K``.

    Returns:
        ``(..., K)`` float32.

    Raises:
        ValueError: If a class id is ``K`` or more.
    """
    if targets.is_floating_point():
        return targets.float()
    if targets.numel() and targets.max() >= num_classes:
        raise ValueError(
            f'targets must be below the {num_classes} classes of the logits, '
            f'got {int(targets.max())}')
    hot = nn.functional.one_hot(targets.clamp(min=0), num_classes)
    return hot.float() * (targets >= 0).unsqueeze(-1)


@MODELS.register_module()
@check_arguments
class MultiClassCrossEntropyLoss(nn.Module):
    """Cross-entropy of scores and multi-hot targets, without one class.

    The class that is ignored takes no part in the softmax, and steps whose
    target it is count nowhere. A step of several classes has the sum of their
    cross-entropies. This is the loss of `LSTR
    <https://arxiv.org/abs/2107.03377>`_ and `TeSTra
    <https://arxiv.org/abs/2209.09236>`_, as released.

    Args:
        ignore_index: The class that is ignored: THUMOS'14's "Ambiguous" 21,
            EPIC-Kitchens' background 0. None ignores none.
        loss_weight: Factor of the loss.
        normalize_targets: Divide a step's targets by their norm, as MiniROAD
            does: each of two classes counts 0.71.
    """

    def __init__(self,
                 ignore_index: Natural | None = None,
                 loss_weight: NotNegative = 1.,
                 normalize_targets: bool = False) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.loss_weight = loss_weight
        self.normalize_targets = normalize_targets

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Compute the loss.

        Args:
            logits: ``(..., K)``.
            targets: Class ids ``(...)`` int64, or multi-hot ``(..., K)``
                floats.

        Returns:
            The mean over the steps that count, a scalar; zero without any.
        """
        return self.loss_weight * self._loss(logits.float(), targets)

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        num_classes = logits.shape[-1]
        wanted = (*logits.shape[:-1], num_classes)
        if targets.is_floating_point() and targets.shape != wanted or (
                not targets.is_floating_point()
                and targets.shape != wanted[:-1]):
            raise ValueError(
                f'targets must be class ids {wanted[:-1]} or floats {wanted}, '
                f'got {tuple(targets.shape)} of {targets.dtype}')
        hot = multi_hot(targets, num_classes).reshape(-1, num_classes)
        logits = logits.reshape(-1, num_classes)
        # Class ids below zero name no class, and padded steps have none.
        counts = hot.new_ones(len(hot), dtype=torch.bool)
        if not targets.is_floating_point():
            counts = targets.reshape(-1) >= 0
        ignored = self.ignore_index
        if ignored is not None:
            if ignored >= num_classes:
                raise ValueError(
                    f'ignore_index must be below the {num_classes} classes, '
                    f'got {ignored}')
            counts = counts & (hot[:, ignored] != 1)
            keep = [c for c in range(num_classes) if c != ignored]
            logits, hot = logits[:, keep], hot[:, keep]
        logits = self._adjust(logits, hot)
        if self.normalize_targets:
            hot = nn.functional.normalize(hot, dim=-1)
        entropy = -(hot * logits.log_softmax(dim=-1)).sum(dim=-1)
        # Without an index of a size known only at run time, for compilers.
        return (entropy * counts).sum() / counts.sum().clamp(min=1)

    def _adjust(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Logits without the ignored class, and targets, ``(steps, K)``."""
        return logits
