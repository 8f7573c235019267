# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Losses of logits and targets, registered in MODELS."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    asymmetric_loss=['AsymmetricLoss'],
    distillation_loss=['FeatureDistillationLoss', 'LogitDistillationLoss'],
    equalization_loss=['EqualizationLoss'],
    multi_class_cross_entropy_loss=['MultiClassCrossEntropyLoss', 'multi_hot'],
    token_label_loss=['TokenLabelLoss', 'soft_token_labels']))
