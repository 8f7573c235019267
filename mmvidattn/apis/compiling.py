# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""torch.compile, with eager execution as fallback without a compiler."""
import functools
import sys
import warnings

import torch
from torch import Tensor, nn

from ..ops.torch_private import without_compile_caches


@functools.cache
def why_not_compile(device: str = 'cpu') -> str | None:
    """Return why torch.compile fails on this machine, or None.

    It compiles a tiny function, once per process and type of device.

    Args:
        device: Type of the device to compile for. Defaults to 'cpu'.

    Returns:
        First line of the error; None if torch.compile works.
    """

    def probe(x: Tensor) -> Tensor:
        return x.sin() + 1

    try:
        # A cached result would not test the compiler. Ignore torch's warning
        # about disabled caches.
        with without_compile_caches(), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            torch.compile(probe)(torch.ones(8, device=device))
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        return reason.splitlines()[0]
    return None


def compile_in_place(module: nn.Module) -> bool:
    """Compile a module without a change of its parameters or their names.

    If torch.compile does not work, print one line on stderr and leave the
    module unchanged.

    Returns:
        True if torch.compile works; the module is then compiled in its first
        call.
    """
    reason = why_not_compile(next(module.parameters()).device.type)
    if reason is None:
        module.compile()
    else:
        print(f'{type(module).__name__} runs eagerly, because torch.compile '
              f'fails: {reason}', file=sys.stderr)
    return reason is None
