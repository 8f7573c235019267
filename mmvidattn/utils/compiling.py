# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""torch.compile, where the machine is able to."""
import functools
import sys
import warnings

import torch
from torch import Tensor, nn


@functools.cache
def why_not_compile(device: str = 'cpu') -> str | None:
    """Compile a tiny function, once a process.

    Args:
        device: Type of the device to compile for.

    Returns:
        Why that fails, in one line; None if it works.
    """

    def probe(x: Tensor) -> Tensor:
        return x.sin() + 1

    try:
        from torch._inductor import config

        # What was compiled earlier needs no compiler; torch warns of that.
        with config.patch(force_disable_caches=True), \
                warnings.catch_warnings():
            warnings.simplefilter('ignore')
            torch.compile(probe)(torch.ones(8, device=device))
    except Exception as error:
        reason = str(error).strip() or type(error).__name__
        return reason.splitlines()[0]
    return None


def compile_in_place(module: nn.Module) -> bool:
    """Compile a module, whose names and weights stay as they are.

    Where nothing can be compiled, one line on stderr says so, and the module
    goes on without.

    Returns:
        Whether it will be compiled, which its first calls do.
    """
    reason = why_not_compile(next(module.parameters()).device.type)
    if reason is None:
        module.compile()
    else:
        print(f'{type(module).__name__} is not compiled, and runs as it is: '
              f'{reason}', file=sys.stderr)
    return reason is None
