# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cross-entropy that does not suppress rare classes."""
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from mmaction.registry import MODELS
from torch import Tensor

from ..utils.arguments import (
    Fraction,
    Natural,
    NotNegative,
    Share,
    check_arguments,
)
from ..utils.files import map_numbers
from .multi_class_cross_entropy_loss import MultiClassCrossEntropyLoss


@MODELS.register_module()
@check_arguments
class EqualizationLoss(MultiClassCrossEntropyLoss):
    """Softmax equalization loss for long-tailed action classes.

    In each step, each rare class that is not the target is left out of the
    softmax with probability ``gamma``, so that frequent classes do not push
    down the logits of rare ones. This is the loss of `Equalization loss for
    long-tailed object recognition <https://arxiv.org/abs/2003.05176>`_, as
    released by TeSTra's authors.

    Like the released code, it differs from the paper: there is a separate draw
    for each step and class, instead of each step. A class is left out by
    lowering its logit by 18.4, so that it still has a small effect.

    Args:
        class_counts: Number of training segments of each class, with the
            background at index 0; or a ``.npy`` or text file of these
            numbers, written by ``mmvidattn targets``.
        gamma: Probability that a rare class is left out. Defaults to 0.95.
        tail_below: A class is rare if its share of all segments is smaller.
            Defaults to 0.003.
        ignore_index: As in :class:`MultiClassCrossEntropyLoss`. Defaults to
            0.
        loss_weight: Factor of the loss. Defaults to 1.
    """

    def __init__(self,
                 class_counts: Sequence[Natural] | str | Path,
                 gamma: Fraction = 0.95,
                 tail_below: Share = 3e-3,
                 ignore_index: Natural | None = 0,
                 loss_weight: NotNegative = 1.) -> None:
        super().__init__(ignore_index, loss_weight)
        self.class_counts = class_counts
        self.gamma = gamma
        self.tail_below = tail_below
        self.register_buffer('tail', None, persistent=False)
        # The file may be missing, because only training needs it.
        if not isinstance(class_counts, (str, Path)) or \
                Path(class_counts).is_file():
            self.tail = self._find_tail()

    def _find_tail(self) -> Tensor:
        """Return 1 for rare classes of the softmax, else 0, float (K,)."""
        counts = torch.as_tensor(
            _read(self.class_counts), dtype=torch.float64, device='cpu')
        if counts.ndim != 1 or (counts < 0).any() or counts.sum() == 0:
            raise ValueError(
                'class_counts must be one number of segments per class, at '
                f'least 0 and not all 0, got {self.class_counts}')
        if self.ignore_index is not None:
            keep = [c for c in range(len(counts)) if c != self.ignore_index]
            counts = counts[keep]
        return (counts / counts.sum() < self.tail_below).float()

    def _adjust(self, logits: Tensor, targets: Tensor) -> Tensor:
        if self.tail is None:
            self.tail = self._find_tail()
        self.tail = self.tail.to(logits.device)
        if len(self.tail) != logits.shape[-1]:
            raise ValueError(
                f'class_counts must have the {logits.shape[-1]} classes of '
                'the logits, without the ignored one, got '
                f'{len(self.tail)}')
        # Each step draws the rare classes that stay in its softmax.
        is_left_out = torch.rand_like(logits) < self.gamma
        weights = 1 - is_left_out * self.tail * (1 - targets)
        return logits + torch.log(weights + 1e-8)


def _read(class_counts: Sequence[int] | str | Path) -> np.ndarray:
    if not isinstance(class_counts, (str, Path)):
        return np.asarray(class_counts)
    path = Path(class_counts)
    if not path.is_file():
        raise ValueError(f'class_counts: there is no file {path}')
    if path.suffix == '.npy':
        return np.array(map_numbers(path))
    return np.loadtxt(path)
