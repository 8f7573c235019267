# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What a student has yet to learn of its teacher's features and logits."""
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops.precision import at_least_float32
from ..utils.arguments import NotNegative, Positive, check_arguments


@MODELS.register_module()
@check_arguments
class FeatureDistillationLoss(nn.Module):
    """Squared distance of normalized features, the mean of all tokens.

    The loss of hidden states of `Patient Knowledge Distillation
    <https://arxiv.org/abs/1908.09355>`_: each token's features are divided by
    their norm, so that layers of any scale count alike. The distance is twice
    one minus the cosine, from 0 to 4.

    Differs from the paper: all tokens count, not the class token alone, and
    the mean is taken, not the sum.

    Args:
        loss_weight: Factor of the loss.
    """

    def __init__(self, loss_weight: NotNegative = 1.) -> None:
        super().__init__()
        self.loss_weight = loss_weight

    def forward(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Compute the loss of features [*, C] of both, a scalar.

        Raises:
            ValueError: If the shapes differ.
        """
        _check_shapes('features', student, teacher)
        student, teacher = at_least_float32(student, teacher)
        difference = F.normalize(student, dim=-1) - F.normalize(
            teacher, dim=-1)
        return self.loss_weight * difference.square().sum(-1).mean()


@MODELS.register_module()
@check_arguments
class LogitDistillationLoss(nn.Module):
    """Kullback-Leibler divergence of softened classes, the mean of all clips.

    `Distilling the Knowledge in a Neural Network
    <https://arxiv.org/abs/1503.02531>`_, Sec. 2: the logits of both are
    divided by a temperature before the softmax, and the loss is multiplied by
    its square, so that the gradients are as large at any temperature. (The
    paper has the cross-entropy, which differs by a constant.)

    Args:
        temperature: What the logits are divided by.
        loss_weight: Factor of the loss.
    """

    def __init__(self,
                 temperature: Positive = 4.,
                 loss_weight: NotNegative = 1.) -> None:
        super().__init__()
        self.temperature = temperature
        self.loss_weight = loss_weight

    def forward(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Compute the loss of logits [B, K] of both, a scalar.

        Raises:
            ValueError: If the shapes differ.
        """
        _check_shapes('logits', student, teacher)
        student, teacher = (
            F.log_softmax(x / self.temperature, dim=-1)
            for x in at_least_float32(student, teacher))
        divergence = F.kl_div(
            student, teacher, reduction='batchmean', log_target=True)
        return self.loss_weight * self.temperature**2 * divergence


def _check_shapes(name: str, student: Tensor, teacher: Tensor) -> None:
    if student.shape != teacher.shape:
        raise ValueError(
            f'the {name} of student and teacher must have the same shape, '
            f'got {tuple(student.shape)} and {tuple(teacher.shape)}')
