# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cross-entropy that spares the classes that are rarely seen."""
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


def equalization_weights(targets: Tensor, tail: Tensor, gamma: float,
                         uniform: Tensor) -> Tensor:
    """Draw the classes that stay in the softmax of each step.

    Args:
        targets: Multi-hot ``(..., K)``.
        tail: Which classes are rare, bool ``(K,)``.
        gamma: Probability that a rare class leaves.
        uniform: Draws from [0, 1), ``(..., K)``.

    Returns:
        ``(..., K)``: 0 for a rare class that leaves, 1 for all others.
    """
    return 1 - (uniform < gamma) * tail * (1 - targets)


@MODELS.register_module()
@check_arguments
class EqualizationLoss(MultiClassCrossEntropyLoss):
    """Softmax equalization loss for long tails of actions.

    In each step, each class that is rare in the training annotations is
    taken out of the softmax with probability ``gamma``, unless it is the
    target: what is frequent no longer pushes down what is rare. `Equalization
    loss for long-tailed object recognition
    <https://arxiv.org/abs/2003.05176>`_, as TeSTra's authors released it.

    Differs from the paper: the draw is of each step and class, not of each
    step alone (as released). A class leaves by a logit 18.4 lower, and so is
    not quite gone (as released).

    Args:
        class_counts: How many training segments there are of each class,
            with those of the background in its place (0); or a ``.npy`` or
            text file of these numbers, as ``mmvidattn targets`` writes it.
        gamma: Probability that a rare class leaves the softmax.
        tail_below: A class is rare if its share of all segments is below.
        ignore_index: As of :class:`MultiClassCrossEntropyLoss`.
        loss_weight: Factor of the loss.
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
        # A model that predicts needs no file of its training set.
        if not isinstance(class_counts, (str, Path)) or \
                Path(class_counts).is_file():
            self.tail = self._find_tail()

    def _find_tail(self) -> Tensor:
        """Mark the rare ones of the classes in the softmax, float (K,)."""
        counts = torch.as_tensor(
            _read(self.class_counts), dtype=torch.float64, device='cpu')
        if counts.ndim != 1 or (counts < 0).any() or counts.sum() == 0:
            raise ValueError(
                'class_counts must be one number of segments a class, at '
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
                f'the logits that are not ignored, got {len(self.tail)}')
        weights = equalization_weights(targets, self.tail, self.gamma,
                                       torch.rand_like(logits))
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
