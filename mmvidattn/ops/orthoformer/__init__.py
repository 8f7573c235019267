# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .landmarks import orthogonal_landmarks
from .naive import naive_orthoformer_attention, naive_orthogonal_landmarks
from .orthoformer import orthoformer_attention

__all__ = [
    'naive_orthoformer_attention', 'naive_orthogonal_landmarks',
    'orthoformer_attention', 'orthogonal_landmarks'
]
