# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backends of ops by Triton kernels, as operators of torch.

Importing this package registers them; nothing imports triton before a kernel
is to run. ``*_backend.py`` has verifiers and conversions of arguments,
``*_kernels.py`` the kernels.
"""
from . import linear_attention_backend, rings

__all__ = ['linear_attention_backend', 'rings']
