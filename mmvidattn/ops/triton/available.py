# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks whether Triton kernels can run."""
import os
from importlib.util import find_spec

import torch
from torch import Tensor

HAS_TRITON = find_spec('triton') is not None
# Maximum bytes of spilled registers per thread.
MOST_SPILLED = 64


def why_no_kernel(x: Tensor) -> str | None:
    """Return why no kernel can run on the device of ``x``, or None.

    If the environment variable ``TRITON_INTERPRET=1`` is set before Triton is
    imported, Triton's interpreter runs kernels on CPU tensors. It is slow and
    only for testing.
    """
    if not HAS_TRITON:
        return 'Triton is not installed'
    interprets = os.environ.get('TRITON_INTERPRET') == '1'
    if x.device.type != ('cpu' if interprets else 'cuda'):
        return 'not on a CUDA device'
    return None


def capability(device: torch.device) -> int:
    """Return the compute capability, times 10, that kernels are tuned for.

    Rounds down to 80, 90 or 100; 0 stands for capabilities below 8.0. For
    the interpreter on a CPU it is 90.
    """
    if device.type != 'cuda':
        return 90
    major, _ = torch.cuda.get_device_capability(device)
    return {8: 80, 9: 90}.get(major, 100 if major > 9 else 0)


def why_not_fits(dtype: torch.dtype, head_dims: int, gate: str,
                 training: bool, capability: int) -> str | None:
    """Return why a kernel would exceed registers or shared memory, or None.

    Accepted kernels spill at most :data:`MOST_SPILLED` bytes a thread;
    ``tools/analysis/kernel_resources.py`` measures it.

    Args:
        dtype: Dtype of the tokens.
        head_dims: Width of a head.
        gate: Name from :func:`mmvidattn.ops.feature_fixation.gate_kind`.
        training: True if gradients are needed.
        capability: Result of :func:`capability`.
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
    return (f'heads of {head_dims} channels in {dtype} do not fit the device '
            f'(gate: {gate}, {"training" if training else "inference"}, '
            f'compute capability {capability / 10})')
