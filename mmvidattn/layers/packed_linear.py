# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any

import torch
from torch import Tensor, nn

from ..ops.packed_linear import pack_weight, packed_linear
from ..ops.torch_private import shallow_copy
from .linear import Linear


class PackedLinear(Linear):
    """A :class:`Linear` for inference by :func:`mmvidattn.ops.packed_linear`.

    The weight must not change.
    """
    packed: Tensor | None = None

    def pack(self) -> None:
        self.packed = pack_weight(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """[*, C] to [*, K]."""
        # A compiler cannot even look at what is packed.
        if torch.compiler.is_compiling():
            return super().forward(x)
        return packed_linear(x, self.weight, self.bias, self.packed)

    # What is packed can be neither copied nor saved.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, 'packed': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.pack()


@torch.no_grad()
def with_packed_layers(module: nn.Module) -> nn.Module:
    """The same module with packed linear layers, which shares its tensors.

    Args:
        module: It stays as it is.

    Returns:
        Modules of the same classes, of the same parameters, buffers and
        hooks, but for each :class:`Linear` a :class:`PackedLinear`.
    """
    new = shallow_copy(module, with_packed_layers)
    if type(module) is Linear:
        new.__class__ = PackedLinear
        new.pack()
    return new
