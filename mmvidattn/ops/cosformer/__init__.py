# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .cosformer import cosformer_attention
from .naive import naive_cosformer_attention

__all__ = ['cosformer_attention', 'naive_cosformer_attention']
