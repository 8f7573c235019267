# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .fixed_linear_attention import fixed_linear_attention
from .naive import naive_fixed_linear_attention

__all__ = ['fixed_linear_attention', 'naive_fixed_linear_attention']
