# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms of a sample, in front of the network."""
from .auto_augment import AutoAugment, RandAugment

__all__ = ['AutoAugment', 'RandAugment']
