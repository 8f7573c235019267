# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""All uses of private names of torch, with a note for each.

The notes ("If removed") explain what to do if torch removes a name. Only
``compat`` uses other private names of torch; its registry has similar notes.
"""
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn

# If removed: always return False from `dispatch.is_known` while compiling.
# Exports then run the plain code of both branches, which is slower.
from torch.fx.experimental.symbolic_shapes import statically_known_true

# If removed: count with torch.utils.flop_counter, which counts products only.
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader

__all__ = [
    'CAN_PACK', 'HAS_ONEDNN', 'ONEDNN_LINEAR', 'TorchDispatchMode',
    'any_export_sizes', 'constant_while_compiling', 'end_workers',
    'has_bfloat16_instructions', 'has_hooks',
    'is_functional_transform',
    'is_mkldnn_bf16_supported', 'is_operator', 'largest_values',
    'onednn_linear', 'reorder_weight', 'shallow_copy',
    'statically_known_true', 'without_compile_caches'
]

# If removed: HAS_ONEDNN is False, and ops run their plain code.
HAS_ONEDNN = (
    torch.backends.mkldnn.is_available()
    and hasattr(torch.ops.mkldnn, '_linear_pointwise'))
ONEDNN_LINEAR = torch.ops.mkldnn._linear_pointwise if HAS_ONEDNN else None
# If removed: set to False, and streams use unpacked weights. Older versions of
# torch pack only tensors in oneDNN's layout.
CAN_PACK = HAS_ONEDNN and torch._C._dispatch_has_kernel_for_dispatch_key(
    'mkldnn::_reorder_linear_weight', 'CPU')


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute ``x W^T + b`` by oneDNN; ``weight`` may be packed.

    If removed: see :data:`HAS_ONEDNN`.
    """
    return ONEDNN_LINEAR(x, weight, bias, 'none', [], '')


def is_mkldnn_bf16_supported() -> bool:
    """Return True if oneDNN supports bfloat16 on this processor.

    If removed: return False, and streams use bfloat16 weights unpacked.
    """
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def has_bfloat16_instructions() -> bool:
    """Return True if this processor multiplies in bfloat16.

    This needs AVX512_BF16 or AMX on x86, or the BF16 extension on ARM;
    :func:`is_mkldnn_bf16_supported` is True with any AVX-512.

    If removed: return False, and half precision computes in float32. Older
    versions of torch lack the x86 queries.
    """
    if platform.machine() in ('x86_64', 'AMD64'):
        names = '_is_avx512_bf16_supported', '_is_amx_tile_supported'
        return any(getattr(torch.cpu, name, bool)() for name in names)
    return HAS_ONEDNN and is_mkldnn_bf16_supported()


def reorder_weight(weight: Tensor, rows: int) -> Tensor:
    """Copy a weight into the memory layout that oneDNN needs.

    If removed: set :data:`CAN_PACK` to False.
    """
    return torch.ops.mkldnn._reorder_linear_weight(weight, rows)


def is_functional_transform() -> bool:
    """Return True inside torch.func or forward-mode derivatives.

    If removed: return True; the custom operators are then off in eager mode.
    """
    return (torch._C._functorch.maybe_current_level() is not None
            or torch.autograd.forward_ad._current_level >= 0)


def constant_while_compiling(function: Callable) -> Callable:
    """Mark a function whose result the compiler treats as a constant.

    If removed: return ``torch.compiler.assume_constant_result(function)``,
    which imports the compiler: 0.7 of the 3.7 s that this package needs.
    """
    function._dynamo_marked_constant = True
    return function


def has_hooks(module: nn.Module) -> bool:
    """Return True if a module has forward or backward hooks.

    If removed: let this function return True; attentions then run without
    fused ops.
    """
    return bool(module._forward_hooks or module._forward_pre_hooks
                or module._backward_hooks or module._backward_pre_hooks)


def shallow_copy(module: nn.Module,
                 convert: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """Return a copy of a module that has the same tensors and hooks.

    Its children are replaced by the results of ``convert``.

    If removed: use ``copy.deepcopy``, which needs the memory of the weights
    a second time.
    """
    new = object.__new__(type(module))
    new.__dict__ = dict(module.__dict__)
    for kind in '_parameters', '_buffers', '_modules':
        new.__dict__[kind] = dict(module.__dict__[kind])
    for name, child in new._modules.items():
        if child is not None:
            new._modules[name] = convert(child)
    return new


def largest_values(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the largest absolute value of each tensor.

    If removed: ``[x.abs().max() for x in tensors]``, one launch per tensor.
    """
    return torch._foreach_norm(tensors, float('inf'))


def is_operator(target: object) -> bool:
    """Return True if a graph node calls an operator of torch.

    If removed: return ``hasattr(target, 'overloadpacket')``.
    """
    return isinstance(target, torch._ops.OpOverload)


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


@contextmanager
def without_compile_caches() -> Iterator[None]:
    """Make torch.compile ignore its caches.

    If removed: only yield. A probe may then load its program from a cache and
    pass without a compiler.
    """
    from torch._inductor import config

    with warnings.catch_warnings(), config.patch(force_disable_caches=True):
        # torch warns that its caches are off.
        warnings.filterwarnings('ignore', 'dynamo_pgo')
        yield
