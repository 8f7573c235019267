# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Whether kernels can run."""
import os
from importlib.util import find_spec

import torch
from torch import Tensor

HAS_TRITON = find_spec('triton') is not None
# Bytes of a thread.
MOST_SPILLED = 64


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


def capability(device: torch.device) -> int:
    """Compute capability of a device, times 10 and rounded down to one that
    kernels are laid out for; 0 below all of these."""
    if device.type != 'cuda':
        return 90
    major, _ = torch.cuda.get_device_capability(device)
    return {8: 80, 9: 90}.get(major, 100 if major > 9 else 0)


def why_not_fits(dtype: torch.dtype, head_dims: int, gate: str,
                 training: bool, capability: int) -> str | None:
    """Reason why programs would spill many registers or lack shared memory.

    What is left spills at most :data:`MOST_SPILLED` bytes, as
    ``tools/analysis/kernel_resources.py`` shows.

    Args:
        dtype: Of the tokens.
        head_dims: Width of a head.
        gate: 'none', 'shared' (one for queries and keys), 'unshared' (two) or
            'separate' (two, each from its own).
        training: Whether gradients are needed.
        capability: Of :func:`capability`.
    """
    if not capability:
        return 'a compute capability below 8.0'
    if dtype == torch.bfloat16:
        fits = head_dims <= 64 or gate == 'none' and (
            capability >= 90 or not training)
    elif dtype == torch.float16:
        fits = head_dims <= 64 and not (training and gate == 'unshared')
    elif head_dims <= 32:
        fits = not (training and gate == 'unshared')
    else:
        fits = (head_dims <= 64 and capability >= 90
                and not (training or gate == 'unshared'))
    if fits:
        return None
    return (f'heads of {head_dims} channels in {dtype} do not fit (gate: '
            f'{gate}, {"training" if training else "inference"}, compute '
            f'capability {capability / 10})')
