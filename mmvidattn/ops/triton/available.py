# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Whether kernels can run."""
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import torch
from torch import Tensor

_interprets = False
HAS_TRITON = find_spec('triton') is not None


@contextmanager
def interpreter() -> Iterator[None]:
    """A context in which kernels run on CPU tensors, in Triton's interpreter.

    It is slow, and shows whether a kernel is right. The environment variable
    ``TRITON_INTERPRET=1`` must be set before Triton is imported.

    Raises:
        RuntimeError: If it is not set, or there is no Triton.
    """
    global _interprets
    if not HAS_TRITON or os.environ.get('TRITON_INTERPRET') != '1':
        raise RuntimeError("Triton's interpreter needs Triton (pip install "
                           'triton) and the environment variable '
                           'TRITON_INTERPRET=1')
    before, _interprets = _interprets, True
    try:
        yield
    finally:
        _interprets = before


def why_no_kernel(x: Tensor) -> str | None:
    """Reason not to run a kernel where ``x`` is, or None."""
    if not (x.is_cuda or _interprets and x.device.type == 'cpu'):
        return 'not on a CUDA device'
    if not HAS_TRITON:
        return 'Triton is not installed'
    return None


def why_not_fits(dtype: torch.dtype, head_dims: int, gate: str,
                 training: bool) -> str | None:
    """Reason why a program would spill registers or lack shared memory.

    What is left fits on compute capabilities 8.0, 9.0 and 10.0, which
    :mod:`mmvidattn.ops.triton.resources` shows.
    """
    if dtype == torch.bfloat16:
        fits = head_dims <= 64 or gate == 'none' or not (
            training or gate == 'unshared')
    elif dtype == torch.float16:
        fits = head_dims <= 64
    else:
        fits = head_dims <= 32 or head_dims <= 64 and not (
            training or gate == 'unshared')
    if fits:
        return None
    return (f'heads of {head_dims} channels in {dtype} do not fit '
            f'(gate: {gate}, {"training" if training else "inference"})')
