# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training on several processes that share one model."""
from .fully_shard import FullyShard
from .supported import check_scaling

__all__ = ['FullyShard', 'check_scaling']
