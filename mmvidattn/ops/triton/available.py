# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Whether kernels can run."""
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from torch import Tensor

_interprets = False
HAS_TRITON = find_spec('triton') is not None


@contextmanager
def interpreter() -> Iterator[None]:
    """A context in which kernels run on CPU tensors, in Triton's interpreter.

    It is slow, and shows whether a kernel is right. The environment variable
    ``TRITON_INTERPRET=1`` must be set before Triton is imported.

    Raises:
        RuntimeError: If it is not set, or there is no Triton.
    """
    global _interprets
    if not HAS_TRITON or os.environ.get('TRITON_INTERPRET') != '1':
        raise RuntimeError("Triton's interpreter needs Triton (pip install "
                           'triton) and the environment variable '
                           'TRITON_INTERPRET=1')
    before, _interprets = _interprets, True
    try:
        yield
    finally:
        _interprets = before


def why_no_kernel(x: Tensor) -> str | None:
    """Reason not to run a kernel where ``x`` is, or None."""
    if not (x.is_cuda or _interprets and x.device.type == 'cpu'):
        return 'not on a CUDA device'
    if not HAS_TRITON:
        return 'Triton is not installed'
    return None
