# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Losses that compare a student's features and logits with a teacher's."""
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops.precision import at_least_float32
from ..utils.arguments import NotNegative, Positive, check_arguments


@MODELS.register_module()
@check_arguments
class FeatureDistillationLoss(nn.Module):
    """Mean squared distance of the normalized features of all tokens.

    This is the loss of hidden states of `Patient Knowledge Distillation
    <https://arxiv.org/abs/1908.09355>`_. The features of each token are
    divided by their norm, so that the scale of a layer does not matter. The
    distance is 2 (1 - cosine), from 0 to 4.

    Differs from the paper: all tokens count instead of only the class token,
    and the mean replaces the sum.

    Args:
        loss_weight: Factor of the loss. Defaults to 1.
    """

    def __init__(self, loss_weight: NotNegative = 1.) -> None:
        super().__init__()
        self.loss_weight = loss_weight

    def forward(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Compute the scalar loss of two features [*, C].

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
    """Mean Kullback-Leibler divergence of softened class distributions.

    This is the loss of `Distilling the Knowledge in a Neural Network
    <https://arxiv.org/abs/1503.02531>`_, Sec. 2. The logits of student and
    teacher are divided by a temperature before the softmax. The loss is
    multiplied by the square of the temperature, so that the gradients have the
    same size at any temperature. (The paper has the cross-entropy, which
    differs by a constant.)

    Args:
        temperature: Divisor of the logits. Defaults to 4.
        loss_weight: Factor of the loss. Defaults to 1.
    """

    def __init__(self, temperature: Positive = 4.,
                 loss_weight: NotNegative = 1.) -> None:
        super().__init__()
        self.temperature = temperature
        self.loss_weight = loss_weight

    def forward(self, student: Tensor, teacher: Tensor) -> Tensor:
        """Compute the scalar loss of two logits [B, K].

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
