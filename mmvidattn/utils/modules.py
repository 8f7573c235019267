# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Helpers for torch modules: initial weights, wrappers and stream states."""
import math
from collections.abc import Mapping

from mmengine.model import is_model_wrapper
from torch import Tensor, nn

# State of a stream: tensors [B, *] by name, named like the modules.
State = dict[str, Tensor]


def initialize(model: nn.Module, std: float) -> None:
    """Initialize the layers of a model like the authors' code.

    - Linear layer: truncated normal distribution of ``std``, zero bias.
    - Convolution: normal distribution of variance 2 / fan-out, zero bias.
    - LayerNorm: zero bias.

    Parameters outside of these layers stay unchanged.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=std)
        elif isinstance(module, (nn.Conv2d, nn.Conv3d)):
            fan_out = module.weight[:, 0].numel() / module.groups
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        elif not isinstance(module, nn.LayerNorm):
            continue
        if getattr(module, 'bias', None) is not None:
            nn.init.zeros_(module.bias)


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model inside a wrapper such as DistributedDataParallel."""
    return model.module if is_model_wrapper(model) else model


def part_of(state: Mapping[str, Tensor], name: str) -> State:
    """Return the submodule ``name``'s part of a stream's state."""
    return {key.removeprefix(f'{name}.'): value
            for key, value in state.items() if key.startswith(f'{name}.')}


def named(name: str, state: Mapping[str, Tensor]) -> State:
    """Return the state of the submodule ``name`` as part of a state."""
    return {f'{name}.{key}': value for key, value in state.items()}
