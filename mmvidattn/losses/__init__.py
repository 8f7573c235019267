# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Losses of logits and targets, registered in MODELS."""
from .asymmetric_loss import AsymmetricLoss
from .distillation_loss import FeatureDistillationLoss, LogitDistillationLoss
from .equalization_loss import EqualizationLoss, equalization_weights
from .multi_class_cross_entropy_loss import (
    MultiClassCrossEntropyLoss,
    multi_hot,
)
from .token_label_loss import TokenLabelLoss, soft_token_labels

__all__ = [
    'AsymmetricLoss', 'EqualizationLoss', 'FeatureDistillationLoss',
    'LogitDistillationLoss', 'MultiClassCrossEntropyLoss', 'TokenLabelLoss',
    'equalization_weights', 'multi_hot', 'soft_token_labels'
]
