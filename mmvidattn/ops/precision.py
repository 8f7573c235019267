# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Helpers to compute in float32, independent of the dtype of inputs."""
from contextlib import AbstractContextManager, nullcontext
from functools import reduce

import torch
from torch import Tensor

from .torch_private import constant_while_compiling


def without_autocast(device_type: str) -> AbstractContextManager:
    """Return a context that turns autocast off on ``device_type``."""
    if _has_autocast(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


# The compiler of torch 2.11 and earlier cannot trace this function.
@constant_while_compiling
def _has_autocast(device_type: str) -> bool:
    return torch.amp.is_autocast_available(device_type)


def computes_in_bfloat16_on_cpu(x: Tensor) -> bool:
    """Return True if a product of ``x`` is computed in bfloat16 on a CPU."""
    return x.device.type == 'cpu' and (
        x.dtype == torch.bfloat16 or torch.is_autocast_enabled('cpu')
        and torch.get_autocast_dtype('cpu') == torch.bfloat16)


def at_least_float32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Convert tensors to their widest dtype, and at least to float32."""
    dtype = reduce(torch.promote_types, (x.dtype for x in tensors),
                   torch.float32)
    return tuple(x.to(dtype) for x in tensors)
