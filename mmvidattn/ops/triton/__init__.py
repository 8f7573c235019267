# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backends of ops as Triton kernels, for CUDA devices.

Nothing here is imported before a kernel is to run, so Triton is not needed
elsewhere. Kernels stand in ``*_kernels.py``; beside them what launches them.
"""
