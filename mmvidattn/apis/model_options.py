# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Model options stored in checkpoints, to detect a mismatch with a config."""
import inspect
import re
from collections.abc import Mapping
from typing import Any

from mmaction.registry import MODELS

KEY = 'model_options'
# Options that affect training or speed, but not the outputs.
_IGNORED = re.compile(r'with_cp|pretrained|froze\w*|(\w*_)?(init|drop)\w*')


def model_options(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a model's backbone, including defaults.

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
    """Check that a checkpoint was saved for the same model options.

    Args:
        model: ``model`` of a config.
        meta: Metadata of the checkpoint. If they lack the model options,
            nothing is checked.
        path: Path of the checkpoint.

    Raises:
        ValueError: If options differ.
    """
    saved = meta.get(KEY)
    if not isinstance(saved, Mapping) or 'backbone' not in model:
        return
    options = model_options(model)
    differing = [
        f'{name} is {saved.get(name)!r} there and {options.get(name)!r} here'
        for name in sorted(saved.keys() | options.keys())
        if saved.get(name) != options.get(name)]
    if differing:
        raise ValueError(
            f'the model of {path} has different options, so its tensors fit '
            f'but the scores would be wrong: {"; ".join(differing)}. It was '
            f'converted for {meta.get("config", "a different config")}')


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (int, float, str, type(None))) else str(
        value)
