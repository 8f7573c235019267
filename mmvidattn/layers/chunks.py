# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Large intermediate results, formed and used a piece at a time."""
import math
from collections.abc import Callable

import torch
from torch import Tensor

# On a CPU a piece should stay in the cache between two passes over it. On
# other devices only the memory matters, and only where no graph keeps it all.
CPU_BYTES = 12 * 2**20
OTHER_BYTES = 2**30


def in_chunks(function: Callable[..., Tensor], tensors: tuple[Tensor, ...],
              dim: int, width: int) -> Tensor:
    """``function(*tensors)``, by slices of ``dim`` where that saves time.

    Args:
        function: Treats each index of ``dim`` on its own.
        tensors: Tensors [*, C] that agree in ``dim``.
        dim: Dimension to slice, of the arguments and of the result.
        width: Channels of the largest tensor that ``function`` forms.
    """
    x = tensors[0]
    if torch.compiler.is_compiling() or (x.device.type != 'cpu'
                                         and torch.is_grad_enabled()):
        return function(*tensors)
    limit = CPU_BYTES if x.device.type == 'cpu' else OTHER_BYTES
    size = math.prod(x.shape[:-1]) * width * x.element_size()
    pieces = min(math.ceil(size / limit), x.shape[dim])
    if pieces < 2:
        return function(*tensors)
    return torch.cat([
        function(*piece)
        for piece in zip(*(t.chunk(pieces, dim) for t in tensors))
    ], dim)
