# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""All uses of private names of torch, with a note for each.

The notes ("If removed") explain what to do if torch removes a name. Only
``compat`` uses other private names of torch; its docstrings have such notes.
"""
import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

# If removed: always return False from `sizes.is_known` while compiling.
# Exports then run the plain code of both branches, which is slower.
from torch.fx.experimental.symbolic_shapes import statically_known_true

# If removed: count with torch.utils.flop_counter.FlopCounterMode.
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader

__all__ = [
    'TorchDispatchMode', 'any_export_sizes', 'constant_while_compiling',
    'end_workers', 'has_bfloat16_instructions', 'has_hooks',
    'is_eager', 'largest_values', 'pack_weight', 'packed_linear',
    'statically_known_true'
]


def has_bfloat16_instructions() -> bool:
    """Return True if this processor multiplies in bfloat16.

    This needs AVX512_BF16 or AMX on x86, or the BF16 extension on ARM.

    If removed: return False, and half precision computes in float32. Older
    versions of torch lack the x86 queries.
    """
    if platform.machine() in ('x86_64', 'AMD64'):
        names = '_is_avx512_bf16_supported', '_is_amx_tile_supported'
        return any(getattr(torch.cpu, name, bool)() for name in names)
    # On x86, this is True with any AVX-512.
    return (torch.backends.mkldnn.is_available()
            and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack_weight(weight: Tensor) -> Tensor | None:
    """Copy a float32 weight [K, C] into oneDNN's layout for 32 rows.

    This layout is fast for any number of rows; the layout for one row is not.

    If removed: return None, and streams use unpacked weights.
    """
    if not (torch.backends.mkldnn.is_available()
            and torch._C._dispatch_has_kernel_for_dispatch_key(
                'mkldnn::_reorder_linear_weight', 'CPU')):
        return None
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach(), 32)


def packed_linear(x: Tensor, packed: Tensor,
                  bias: Tensor | None) -> Tensor:
    """Compute ``x W^T + b`` with a weight of :func:`pack_weight`."""
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, 'none', [], '')


def constant_while_compiling(function: Callable) -> Callable:
    """Mark a function whose result the compiler treats as a constant.

    If removed: return ``torch.compiler.assume_constant_result(function)``,
    which imports the compiler: 0.7 of the 3.7 s that this package needs.
    """
    function._dynamo_marked_constant = True
    return function


def has_hooks(module: nn.Module) -> bool:
    """Return True if a module has forward or backward hooks.

    If removed: return True; attentions then train without the fused op.
    """
    return bool(module._forward_hooks or module._forward_pre_hooks
                or module._backward_hooks or module._backward_pre_hooks)


def is_eager() -> bool:
    """Return True unless a function is compiled, traced or transformed.

    ``torch.jit.trace`` loses what an autograd function does, and
    ``torch.func`` and forward derivatives refuse most of these functions.

    If removed: return False; attentions then train without the fused op.
    """
    return not (torch.compiler.is_compiling() or torch.jit.is_tracing()
                or torch._C._functorch.maybe_current_level() is not None
                or torch.autograd.forward_ad._current_level >= 0)


def largest_values(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the largest absolute value of each tensor.

    If removed: ``[x.abs().max() for x in tensors]``, one launch per tensor.
    """
    return torch._foreach_norm(tensors, float('inf'))


def any_export_sizes() -> AbstractContextManager:
    """Prevent torch.export from testing whether a computed size is 1.

    If removed: return ``nullcontext()``; a program exported with an example
    of one window then accepts no other grid.
    """
    from torch.fx.experimental import _config

    return _config.patch(backed_size_oblivious=True)


def end_workers(loader: DataLoader | None) -> None:
    """End the persistent workers of a data loader.

    If removed: do nothing. The garbage collector ends workers as well, but
    waits five seconds for each.
    """
    workers = getattr(loader, '_iterator', None)
    if hasattr(workers, '_shutdown_workers'):
        workers._shutdown_workers()
        loader._iterator = None
