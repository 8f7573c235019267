# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backends of ops by Triton kernels, as operators of torch.

A file ``*_kernels.py`` has the kernels and imports triton; the file beside it
has the operators, with fake rules. Nothing here needs triton before a kernel
is to run.
"""
