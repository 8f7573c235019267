# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Dtype and gradients of a computation."""
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


def at_least_float32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Convert tensors to their widest dtype, and at least to float32."""
    dtype = reduce(torch.promote_types, (x.dtype for x in tensors),
                   torch.float32)
    return tuple(x.to(dtype) for x in tensors)


def needs_gradients(*tensors: Tensor) -> bool:
    """Return True if autograd will need the gradient of a tensor."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
