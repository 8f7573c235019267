# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .naive import naive_softmax_attention
from .softmax_attention import softmax_attention

__all__ = ['naive_softmax_attention', 'softmax_attention']
