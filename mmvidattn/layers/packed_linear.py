# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any

import torch
from torch import Tensor, nn

from ..ops.packed_linear import pack_weight, packed_linear
from ..ops.torch_private import shallow_copy
from .linear import Linear


class PackedLinear(Linear):
    """:class:`Linear` with a packed weight, for inference.

    Calls :func:`mmvidattn.ops.packed_linear`. The weight must not change
    after :meth:`pack`.
    """
    packed: Tensor | None = None

    def pack(self) -> None:
        self.packed = pack_weight(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        # torch.compile cannot handle packed tensors.
        if torch.compiler.is_compiling():
            return super().forward(x)
        return packed_linear(x, self.weight, self.bias, self.packed)

    # Drop the packed tensor, which can be neither copied nor saved.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, 'packed': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.pack()


@torch.no_grad()
def with_packed_layers(module: nn.Module) -> nn.Module:
    """Return a shallow copy of a module with packed linear layers.

    The copy shares parameters, buffers and hooks with ``module``, which does
    not change. Each :class:`Linear` becomes a :class:`PackedLinear`.
    """
    new = shallow_copy(module, with_packed_layers)
    if type(module) is Linear:
        new.__class__ = PackedLinear
        new.pack()
    return new
