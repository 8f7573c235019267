# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Folders of configs, and variables on which several options depend."""
import difflib
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
# A wheel contains a copy of the configs; a checkout has them in its root.
CONFIG_FOLDERS = (PACKAGE / '.mim/configs', PACKAGE.parent / 'configs')

# Options that take the value of a variable.
NUMBERS = dict(
    num_classes=('num_classes', 'gt_action'),
    num_nouns=('num_nouns', 'gt_noun'),
    num_verbs=('num_verbs', 'gt_verb'),
    num_frames=('num_frames', 'clip_len'),
    img_size=('img_size', 'size', 'crop_size', 'input_size'))
# Options in pixels, in proportion to img_size.
SCALED = 'scale', 'scale_range'
PIPELINES = 'train_pipeline', 'val_pipeline', 'test_pipeline'
VARIABLES = 'data_root', *NUMBERS


def find_base(name: str) -> Path:
    """Find a config of this package for ``_base_ = 'mmvidattn::NAME'``.

    Args:
        name: Path below the folder of configs, such as ``linear_ff_ssv2.py``
            or ``_base_/default_runtime.py``.

    Raises:
        FileNotFoundError: If there is no such config.
    """
    folder = next(path for path in CONFIG_FOLDERS if path.is_dir())
    path = folder / name
    if not path.is_file():
        names = [path.relative_to(folder).as_posix()
                 for path in folder.rglob('*.py')]
        close = difflib.get_close_matches(name, names, cutoff=0.4)
        raise FileNotFoundError(
            f'no config mmvidattn::{name}'
            + (f'; did you mean mmvidattn::{close[0]}?' if close else ''))
    return path


def set_variable(cfg: MutableMapping[str, Any], name: str,
                 value: Any) -> set[str]:
    """Change a variable of a config, and all options that were set from it.

    * ``data_root``: every path at or below the old root moves to the new
      one: datasets, annotation files, classes, subsets and counts.
    * Numbers: all options in :data:`NUMBERS` that have the old value.
    * ``img_size``: also the scales of pipelines, in proportion.

    Args:
        cfg: Config to change in place, with the variable at its top level.
        name: Name of the variable.
        value: New value.

    Returns:
        Top-level keys of the config that changed, except ``name``.
    """
    old = cfg[name]
    if name == 'data_root':
        old, value = _root(old), _root(value)

        def changed(key: str, item: Any) -> Any:
            return _moved(item, old, value)
    else:

        def changed(key: str, item: Any) -> Any:
            if key in NUMBERS[name] and item == old:
                return value
            if name == 'img_size' and key in SCALED and type(item) is int:
                return item if item < 0 else round(item * value / old)
            return item

    keys = set()
    for key in cfg:
        if key != name:
            # Copy, because two options may share one object.
            new = _mapped(changed, key, cfg[key])
            if new != cfg[key]:
                keys.add(key)
                cfg[key] = new
    cfg[name] = value
    return keys


def _mapped(function: Callable[[str, Any], Any], key: str,
            value: Any) -> Any:
    """Apply a function to every leaf of a config."""
    if isinstance(value, Mapping):
        return type(value)({
            name: _mapped(function, name, item)
            for name, item in value.items()})
    if isinstance(value, (list, tuple)):
        return type(value)([_mapped(function, key, item) for item in value])
    return function(key, value)


def _root(path: Any) -> Any:
    """Remove the slash at the end of a path."""
    return path.rstrip('/') or '/' if isinstance(path, str) else path


def _moved(path: Any, old: str, new: str) -> Any:
    if isinstance(path, str):
        if _root(path) == old:
            return new
        if path.startswith(f'{old}/'):
            return f'{new.rstrip("/")}{path[len(old):]}'
    return path


def __getattr__(name: str) -> Any:
    if name in ('change', 'derive'):
        raise ImportError(
            f'{name} was removed from configs: assign the options instead, '
            'such as model = dict(backbone=dict(num_frames=32)) and '
            '_base_.train_pipeline[1].clip_len = 32, or pass --cfg-options '
            'num_frames=32; see docs/tutorials/from_mmaction2.md')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
