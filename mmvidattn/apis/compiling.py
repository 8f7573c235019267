# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""torch.compile with a fallback for machines without a compiler."""
import functools
import sys
import warnings

import torch
from torch import Tensor, nn

from ..ops.torch_private import without_compile_caches


@functools.cache
def why_not_compile(device: str = 'cpu') -> str | None:
    """Try torch.compile on a tiny function, once per process.

    Args:
        device: Type of the device to compile for. Defaults to 'cpu'.

    Returns:
        The error in one line; None if torch.compile works.
    """

    def probe(x: Tensor) -> Tensor:
        return x.sin() + 1

    try:
        # A cached result would not test the compiler. torch warns that the
        # caches are off.
        with without_compile_caches(), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            torch.compile(probe)(torch.ones(8, device=device))
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        return reason.splitlines()[0]
    return None


def compile_in_place(module: nn.Module) -> bool:
    """Compile a module; its parameter names and weights do not change.

    If torch.compile does not work, print one line on stderr and leave the
    module unchanged.

    Returns:
        True if the first calls of the module will compile it.
    """
    reason = why_not_compile(next(module.parameters()).device.type)
    if reason is None:
        module.compile()
    else:
        print(f'{type(module).__name__} runs eagerly, because torch.compile '
              f'fails: {reason}', file=sys.stderr)
    return reason is None
