# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What tests of several folders compute alike."""
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from mmvidattn.ops import dispatch


def relative(a: Tensor, b: Tensor) -> float:
    """RMS of ``a - b`` relative to that of ``b``, in float64."""
    a, b = a.detach().double(), b.detach().double()
    return ((a - b).norm() / b.norm()).item()


def with_gradients(function: Callable[..., Tensor],
                   tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The output, and the gradient of its squares for each tensor."""
    tensors = [x.detach().requires_grad_() for x in tensors]
    y = function(*tensors)
    return y, *torch.autograd.grad(
        y.double().square().sum(), tensors, materialize_grads=True)


@contextmanager
def only_backends(op: str, *backends: dispatch.Backend) -> Iterator[None]:
    """A context in which an op has these backends and no others."""
    found = dispatch._backends[op]
    before = [*found]
    found[:] = backends
    try:
        yield
    finally:
        found[:] = before
