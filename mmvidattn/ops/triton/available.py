# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Whether kernels can run."""
import os
from importlib.util import find_spec

import torch
from torch import Tensor

HAS_TRITON = find_spec('triton') is not None


def why_no_kernel(x: Tensor) -> str | None:
    """Reason not to run a kernel where ``x`` is, or None.

    With the environment variable ``TRITON_INTERPRET=1``, set before Triton is
    imported, Triton's interpreter runs kernels on CPU tensors: slowly, to show
    that they are right.
    """
    if not HAS_TRITON:
        return 'Triton is not installed'
    interprets = os.environ.get('TRITON_INTERPRET') == '1'
    if x.device.type != ('cpu' if interprets else 'cuda'):
        return 'not on a CUDA device'
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
