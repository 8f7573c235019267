# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options of a model that its tensors do not tell, kept in a checkpoint."""
import inspect
import re
from collections.abc import Mapping
from typing import Any

from mmaction.registry import MODELS

KEY = 'model_options'
# What changes how it is trained, or computed, and not what it computes.
_IGNORED = re.compile(r'with_cp|pretrained|froze\w*|(\w*_)?(init|drop)\w*')


def model_options(model: Mapping[str, Any]) -> dict[str, Any]:
    """List all options of a model's backbone, with those it has by default.

    Args:
        model: ``model`` of a config.
    """
    backbone = dict(model['backbone'])
    kind = backbone['type']
    cls = MODELS.get(kind) if isinstance(kind, str) else kind
    options = dict(backbone, type=cls.__name__)
    for base in cls.__mro__:
        for parameter in inspect.signature(base.__init__).parameters.values():
            if parameter.default is not parameter.empty:
                options.setdefault(parameter.name, parameter.default)
    return {name: _plain(value) for name, value in sorted(options.items())
            if not _IGNORED.fullmatch(name)}


def check_model_options(model: Mapping[str, Any], meta: Mapping[str, Any],
                        path: Any) -> None:
    """Check that a checkpoint is of a model with these options.

    Args:
        model: ``model`` of a config.
        meta: What the checkpoint tells of itself. Without options, all is
            well.
        path: The checkpoint.

    Raises:
        ValueError: If it is of one with others.
    """
    told = meta.get(KEY)
    if not isinstance(told, Mapping) or 'backbone' not in model:
        return
    own = model_options(model)
    others = [f'{name} is {told.get(name)!r} there and {own.get(name)!r} here'
              for name in sorted(told.keys() | own.keys())
              if told.get(name) != own.get(name)]
    if others:
        raise ValueError(
            f'{path} is of a model with other options, and would give other '
            f'scores here although its tensors fit: {"; ".join(others)}. It '
            f'was converted for {meta.get("config", "another config")}')


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value if isinstance(value, (int, float, str, type(None))) else str(
        value)
