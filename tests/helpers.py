# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Functions for tests of several folders."""
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def relative(a: Tensor, b: Tensor) -> float:
    """Return RMS(a - b) / RMS(b), in float64."""
    a, b = a.detach().double(), b.detach().double()
    return ((a - b).norm() / b.norm()).item()


def with_gradients(function: Callable[..., Tensor],
                   tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the output, and the gradient of its squared sum per tensor."""
    tensors = [x.detach().requires_grad_() for x in tensors]
    y = function(*tensors)
    return y, *torch.autograd.grad(
        y.double().square().sum(), tensors, materialize_grads=True)


def slow_down(path: Path, first: int, factor: int) -> np.ndarray:
    """Slow down an mp4 of constant rate from frame ``first`` on.

    Returns:
        Begin of each frame in seconds.
    """
    data = bytearray(path.read_bytes())
    table, header = data.index(b'stts'), data.index(b'mdhd')
    entries, count, ticks = struct.unpack('>III', data[table + 8:table + 20])
    scale, = struct.unpack('>I', data[header + 16:header + 20])
    assert entries == 1
    data[table + 8:table + 20] = struct.pack(
        '>IIIII', 2, first, ticks, count - first, factor * ticks)
    for box in b'stts', b'stbl', b'minf', b'mdia', b'trak', b'moov':
        size = data.index(box) - 4
        data[size:size + 4] = struct.pack(
            '>I', struct.unpack('>I', data[size:size + 4])[0] + 8)
    # Remove the edit list, which has the old duration.
    path.write_bytes(data.replace(b'edts', b'free'))
    lasts = np.where(np.arange(count) < first, 1, factor) * ticks / scale
    return np.cumsum(lasts) - lasts
