# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Functions for tests of several folders."""
import copy
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import Tensor, nn


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


def build_model(cfg: dict, seed: int = 0) -> nn.Module:
    """Build a model with initial weights, without a log of all of them."""
    init_default_scope('mmaction')
    torch.manual_seed(seed)
    model = MODELS.build(copy.deepcopy(cfg))
    model._dump_init_info = lambda *args: None
    model.init_weights()
    del model._dump_init_info
    return model


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
