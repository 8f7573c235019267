# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Triton kernels as backends of ops, wrapped in operators of torch.

Importing this package registers the backends; triton itself is imported when
the first kernel runs. ``*_backend.py`` contains verifiers and the conversion
of arguments, ``*_kernels.py`` contains the kernels.
"""
from . import linear_attention_backend, rings

__all__ = ['linear_attention_backend', 'rings']
