# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Conversion to types that ``torch.load(weights_only=True)`` accepts."""
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmengine.logging import HistoryBuffer, print_log

PLAIN = (str, int, float, bool, complex, bytes, type(None), torch.Size,
         torch.dtype, torch.device)
# Key of the arguments of a HistoryBuffer.
HISTORY = 'mmengine.HistoryBuffer'
_UNKNOWN = object()


def to_plain(value: Any, name: str = 'checkpoint') -> Any:
    """Convert to tensors, numbers, strings, lists, tuples and dicts.

    Values that cannot be converted are left out, with a warning that names
    them.

    Args:
        value: Value to convert. It is not modified.
        name: Name of the value in the warning.
    """
    plain = _to_plain(value, name)
    return None if plain is _UNKNOWN else plain


def _to_plain(value: Any, name: str) -> Any:
    # Compare exact types, because weights_only=True does not accept subclasses
    # of str and so on.
    if type(value) in PLAIN:
        return value
    if isinstance(value, torch.Tensor):
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            return value
        return value.as_subclass(torch.Tensor)
    if isinstance(value, HistoryBuffer):
        history, count = (torch.from_numpy(x.copy()) for x in value.data)
        return {HISTORY: (history, count, value.max_length)}
    if isinstance(value, np.generic) and isinstance(value.item(), PLAIN):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in 'biufc':
        # torch needs native byte order, contiguous strides and writable
        # memory.
        return torch.from_numpy(
            np.ascontiguousarray(value, value.dtype.newbyteorder('=')).copy())
    if isinstance(value, np.ndarray):
        return _to_plain(value.tolist(), name)
    if isinstance(value, Mapping):
        items = ((_to_plain(k, f'{name}: key {k!r}'), _to_plain(
            v, f'{name}[{k!r}]')) for k, v in value.items())
        kind = OrderedDict if isinstance(value, OrderedDict) else dict
        return kind((k, v) for k, v in items
                    if k is not _UNKNOWN and v is not _UNKNOWN)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [_to_plain(v, f'{name}[{i}]') for i, v in enumerate(value)]
        kind = tuple if isinstance(value, tuple) else list
        return kind(item for item in items if item is not _UNKNOWN)
    for base in bool, int, float, str:
        if isinstance(value, base):
            return base(value)
    print_log(
        f'{name} is not saved: {type(value).__name__} is not a plain type',
        logger='current',
        level=logging.WARNING)
    return _UNKNOWN


def restore_histories(scalars: Mapping[str, Any]) -> dict[str, Any]:
    """Rebuild each HistoryBuffer that :func:`to_plain` converted."""
    return {
        name: HistoryBuffer(
            value[HISTORY][0].numpy(), value[HISTORY][1].numpy(),
            value[HISTORY][2])
        if isinstance(value, dict) and HISTORY in value else value
        for name, value in scalars.items()
    }
