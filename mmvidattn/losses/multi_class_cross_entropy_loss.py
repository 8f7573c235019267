# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cross-entropy for targets with several classes."""
import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Natural, NotNegative, check_arguments


def multi_hot(targets: Tensor, num_classes: int) -> Tensor:
    """Convert targets to multi-hot vectors.

    Args:
        targets: Class ids ``(...)``, int64, where a negative id means no
            class; or multi-hot ``(..., K)``.
        num_classes: Number of classes ``K``.

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
    """Cross-entropy of logits and multi-hot targets, with an ignored class.

    The softmax leaves out the ignored class, and the loss leaves out steps
    with this target. The loss of a step with several classes is the sum of
    their cross-entropies. This is the loss of `LSTR
    <https://arxiv.org/abs/2107.03377>`_ and `TeSTra
    <https://arxiv.org/abs/2209.09236>`_, as released.

    Args:
        ignore_index: Ignored class, such as THUMOS'14's "Ambiguous" 21 or
            EPIC-Kitchens' background 0. Defaults to None, no class.
        loss_weight: Factor of the loss. Defaults to 1.
        normalize_targets: Divide the targets of a step by their norm, like
            MiniROAD. For example, two classes then count 0.71 each. Defaults
            to False.
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
            Scalar, the mean over the steps that count, or 0 if none counts.
        """
        return self.loss_weight * self._loss(logits.float(), targets)

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        shape, num_classes = tuple(logits.shape), logits.shape[-1]
        is_hot = targets.is_floating_point()
        if targets.shape != (shape if is_hot else shape[:-1]):
            raise ValueError(
                f'targets must be class ids {shape[:-1]} or floats {shape}, '
                f'got {tuple(targets.shape)} of {targets.dtype}')
        hot = multi_hot(targets, num_classes).reshape(-1, num_classes)
        logits = logits.reshape(-1, num_classes)
        # Steps with a negative class id, such as padding, do not count.
        counts = hot.new_ones(len(hot), dtype=torch.bool) if is_hot else (
            targets.reshape(-1) >= 0)
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
        # Multiply instead of indexing, because compilers need static sizes.
        return (entropy * counts).sum() / counts.sum().clamp(min=1)

    def _adjust(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Change the logits before the softmax, in a derived class.

        Both tensors are ``(steps, K)``, without the ignored class.
        """
        return logits
