# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .linear_attention import ORDERS, cheaper_order, linear_attention
from .naive import naive_linear_attention

__all__ = [
    'ORDERS', 'cheaper_order', 'linear_attention', 'naive_linear_attention'
]
