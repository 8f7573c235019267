# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear layers with packed weights, for streams on a CPU."""
from typing import Any

import torch
from torch import Tensor, nn

from ..ops.torch_private import is_eager, pack_weight, packed_linear

# Smaller weights are not packed.
LEAST_WEIGHTS = 2**16


class PackedLinear(nn.Linear):
    """``nn.Linear`` for inference, with its weight in oneDNN's layout.

    Without packing, each product copies the weight first. With the few rows
    of a stream, this takes as long as the product: packed, a step of TeSTra is
    1.24 times faster on two cores of an AMD EPYC. The weight must not change.

    Gradients, autocast, other dtypes and compilers use the plain weight.
    """
    packed: Tensor

    def forward(self, x: Tensor) -> Tensor:
        if (not is_eager() or torch.is_grad_enabled()
                or torch.is_autocast_enabled('cpu')
                or x.device.type != 'cpu' or x.dtype != torch.float32):
            return super().forward(x)
        return packed_linear(x, self.packed, self.bias)

    # A packed tensor can be neither copied nor saved.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, 'packed': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.packed = pack_weight(self.weight)


def pack_linears(module: nn.Module) -> nn.Module:
    """Return a module whose large linear layers have packed weights.

    Only float32 weights on a CPU are packed. The result shares parameters,
    buffers and hooks with ``module``, which does not change.
    """
    new = object.__new__(type(module))
    new.__dict__ = {**module.__dict__, '_modules': {
        name: child and pack_linears(child)
        for name, child in module._modules.items()}}
    if (type(module) is nn.Linear and type(module.weight) is nn.Parameter
            and module.weight.device.type == 'cpu'
            and module.weight.dtype == torch.float32
            and module.weight.numel() >= LEAST_WEIGHTS):
        packed = pack_weight(module.weight)
        if packed is not None:
            new.__class__, new.packed = PackedLinear, packed
    return new
