# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Asymmetric loss for several labels per sample."""
from typing import Literal

import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Fraction, NotNegative, check_arguments


@MODELS.register_module()
@check_arguments
class AsymmetricLoss(nn.Module):
    """Binary cross-entropy with less weight of easy negatives.

    This is the loss of `ASL <https://arxiv.org/abs/2009.14119>`_. With the
    probability p = sigmoid(logit) and p_m = max(p - margin, 0), a positive
    costs ``-(1 - p)^gamma_pos log(p)``, and a negative costs ``-p_m^gamma_neg
    log(1 - p_m)``.

    Differs from the paper: the loss is the mean over samples and classes, as
    in ``BCELossWithLogits``, instead of the sum. With ``gamma_neg`` equal to
    ``gamma_pos`` and no margin, it is the focal loss.

    Args:
        gamma_neg: Focusing of negatives. Defaults to 4, as in the paper.
        gamma_pos: Focusing of positives. Defaults to 1, as in the released
            code.
        margin: Negatives with a probability below it do not count. Defaults to
            0.05, as in the paper.
        loss_weight: Factor of the loss. Defaults to 1.
        alpha: Weight of positives; negatives have the weight 1 - alpha.
            Defaults to None: both have the weight 1.
        reduction: 'mean' or 'sum' over samples and classes. Defaults to
            'mean'.
    """

    def __init__(self, gamma_neg: NotNegative = 4.,
                 gamma_pos: NotNegative = 1., margin: Fraction = 0.05,
                 loss_weight: NotNegative = 1.,
                 alpha: Fraction | None = None,
                 reduction: Literal['mean', 'sum'] = 'mean') -> None:
        super().__init__()
        self.gamma_neg = gamma_neg
        self.gamma_pos = gamma_pos
        self.margin = margin
        self.loss_weight = loss_weight
        self.alpha = alpha
        self.reduction = reduction

    def forward(self, cls_score: Tensor, label: Tensor) -> Tensor:
        """Compute the scalar loss of logits and targets of 0 and 1, [*, K].

        Raises:
            ValueError: If the shapes differ.
        """
        if label.shape != cls_score.shape:
            raise ValueError(
                f'label must have the shape {tuple(cls_score.shape)} of the '
                f'logits, got {tuple(label.shape)}')
        logits = cls_score.float()
        # 1 - p is the sigmoid of -logits, without cancellation.
        p, rest = logits.sigmoid(), (-logits).sigmoid()
        positive = -F.logsigmoid(logits) * _power(rest, self.gamma_pos)
        if self.margin:
            shifted = (p - self.margin).clamp(min=0)
            # log1p is accurate for rare classes.
            negative = -(-shifted).log1p() * _power(shifted, self.gamma_neg)
        else:
            # log(1 - p) of large logits would be -inf.
            negative = -F.logsigmoid(-logits) * _power(p, self.gamma_neg)
        if self.alpha is not None:
            positive = self.alpha * positive
            negative = (1 - self.alpha) * negative
        loss = label * positive + (1 - label) * negative
        total = loss.sum() if self.reduction == 'sum' else loss.mean()
        return self.loss_weight * total


def _power(base: Tensor, exponent: float) -> Tensor:
    """Raise to a power; the gradient at 0 is 0 for exponents below 1 too."""
    is_zero = base <= torch.finfo(base.dtype).tiny
    power = base.masked_fill(is_zero, 1)**exponent
    return power.masked_fill(is_zero, 0) if exponent else power
