# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sums and exponentials in float32, whatever the dtype around them."""
from contextlib import AbstractContextManager, nullcontext
from functools import reduce

import torch
from torch import Tensor


def without_autocast(device_type: str) -> AbstractContextManager:
    """A context in which autocast lowers nothing on ``device_type``."""
    if torch.amp.is_autocast_available(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


def at_least_float32(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in their widest dtype, which is float32 if it is less."""
    dtype = reduce(torch.promote_types, (x.dtype for x in tensors),
                   torch.float32)
    return tuple(x.to(dtype) for x in tensors)
