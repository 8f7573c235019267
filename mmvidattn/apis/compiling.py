# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""torch.compile, on machines that have a compiler."""
import functools
import sys
import warnings

import torch
from torch import Tensor, nn

from ..ops.torch_private import without_compile_caches


@functools.cache
def why_not_compile(device: str = 'cpu') -> str | None:
    """Find out whether torch.compile works, once per process.

    Args:
        device: Type of the device to compile for.

    Returns:
        The error of compiling a tiny function, in one line; None if it works.
    """

    def probe(x: Tensor) -> Tensor:
        return x.sin() + 1

    try:
        # What was compiled earlier needs no compiler; torch warns of that.
        with without_compile_caches(), \
                warnings.catch_warnings():
            warnings.simplefilter('ignore')
            torch.compile(probe)(torch.ones(8, device=device))
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        return reason.splitlines()[0]
    return None


def compile_in_place(module: nn.Module) -> bool:
    """Compile a module without a change of its names and weights.

    If compiling fails here, print one line on stderr and keep the module as it
    is.

    Returns:
        True if the first calls of the module will compile it.
    """
    reason = why_not_compile(next(module.parameters()).device.type)
    if reason is None:
        module.compile()
    else:
        print(f'{type(module).__name__} is not compiled, and runs as it is: '
              f'{reason}', file=sys.stderr)
    return reason is None
