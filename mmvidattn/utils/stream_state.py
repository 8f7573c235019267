# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""States of streams: flat dicts of tensors, named like the modules."""
from collections.abc import Mapping

from torch import Tensor


def part_of(state: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the state of the submodule ``name``."""
    return {
        key.removeprefix(f'{name}.'): value
        for key, value in state.items() if key.startswith(f'{name}.')
    }


def named(name: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the state of the submodule ``name`` as part of a state."""
    return {f'{name}.{key}': value for key, value in state.items()}
