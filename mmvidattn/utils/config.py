# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Helpers for config files.

A config states its clip length, image size and number of classes once, in
the variables ``num_frames``, ``img_size`` and ``num_classes`` at its top
level. :func:`derive` copies them to all options that depend on them.
"""
import copy
import difflib
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
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


def derive(cfg: MutableMapping[str, Any], **variables: Any) -> None:
    """Change variables of a config and all options derived from them.

    A config that combines a model, a dataset and a pipeline calls ``derive``
    without variables. The call sets the numbers that the model leaves as
    ``None``, and the pipelines of the data loaders::

        _base_ = [
            '_base_/models/linear_ff.py', '_base_/datasets/ssv2.py',
            '_base_/pipelines/linear_ff_ssv2.py', ...]

        from mmvidattn.utils.config import derive

        derive(_base_)

    A config that inherits from another config passes its changes::

        _base_ = 'linear_ff_ssv2.py'

        from mmvidattn.utils.config import derive

        derive(
            _base_,
            num_frames=32,          # sampler and backbone
            img_size=336,           # crops; scales change in proportion
            train_pipeline=dict(    # steps by type, see `change`
                RandomErasing=None))

    The import goes below ``_base_``, because mmengine treats a file that
    begins with an import as a "pure Python" config.

    Args:
        cfg: Config to change in place; ``_base_`` in a config file. mmengine
            later merges the file's variables into it, so these take
            precedence.
        variables: New values for :func:`set_variable` (``data_root``,
            ``num_classes``, ``num_nouns``, ``num_verbs``, ``num_frames``,
            ``img_size``), and pipelines (``train_pipeline``,
            ``val_pipeline``, ``test_pipeline``) as a list of steps or a dict
            for :func:`change`.

    Raises:
        ValueError: If the config lacks one of the variables.
    """
    unknown = [name for name in variables
               if name not in (*VARIABLES, *PIPELINES) or name not in cfg]
    if unknown:
        raise ValueError(
            f'cannot derive {", ".join(unknown)}: must be one of '
            f'{", ".join(n for n in (*VARIABLES, *PIPELINES) if n in cfg)}')
    for name in VARIABLES:
        if name in cfg:
            set_variable(cfg, name, variables.get(name, cfg[name]))
    for name in PIPELINES:
        split = name.split('_')[0]
        inherited = cfg.get(name)
        steps = variables.get(name, inherited)
        if isinstance(steps, Mapping):
            steps = change(inherited, **steps)
        if steps is None:
            continue
        loader = copy.deepcopy(cfg.get(f'{split}_dataloader'))
        dataset = (loader or {}).get('dataset') or {}
        if dataset and dataset.get('pipeline') in (None, inherited):
            dataset['pipeline'] = copy.deepcopy(steps)
            cfg[f'{split}_dataloader'] = loader
        cfg[name] = steps


def set_variable(cfg: MutableMapping[str, Any], name: str,
                 value: Any) -> set[str]:
    """Change a variable of a config, and all options that were set from it.

    * ``data_root``: every path at or below the old root moves to the new
      one: datasets, annotation files, classes, subsets and counts.
    * Numbers: all options in :data:`NUMBERS` that have the old value or
      ``None``.
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
            if key in NUMBERS[name] and (
                    item == old or item is None and key == name):
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


def check_variables(cfg: Mapping[str, Any], source: str = '') -> None:
    """Check that all options of a config have the values of its variables.

    Args:
        cfg: Config, with its bases merged.
        source: Text of the config file.

    Raises:
        ValueError: If the file sets a number that no option has; if a number
            or a pipeline is still ``None`` because the file does not call
            :func:`derive`; or if the file is a table of ablations.
    """
    if 'rows' in cfg and 'model' not in cfg:
        raise ValueError('a table of ablations is not a config; give the name '
                         f'of a row: {", ".join(cfg["rows"])}')
    # Ignore the teacher, whose clips may differ.
    model = {key: value for key, value in (cfg.get('model') or {}).items()
             if key != 'teacher'}
    for name, places in NUMBERS.items():
        number = cfg.get(name)
        values: dict[str, set] = {}

        def visit(key: str, item: Any) -> None:
            if item is None or isinstance(item, int):
                values.setdefault(key, set()).add(item)

        _mapped(visit, '', {key: value for key, value in {
            **cfg, 'model': model}.items() if key not in NUMBERS})
        used = values.get('clip_len', set()) if name == 'num_frames' else (
            set().union(*(values.get(place, set()) for place in places)))
        if number is not None and (
                None in values.get(name, ()) or used and number not in used
                and re.search(rf'^{name}\s*=', source, re.MULTILINE)):
            raise ValueError(
                f'{name} is {number}, but the options that depend on it have '
                f'{", ".join(map(str, used))}; write '
                f'derive(_base_, {name}={number}) in the config '
                '(mmvidattn.utils.config)')
    for name in PIPELINES:
        dataset: Any = cfg
        for key in f'{name.split("_")[0]}_dataloader', 'dataset':
            dataset = dataset.get(key) if isinstance(
                dataset, Mapping) else None
        if isinstance(dataset, Mapping) and dataset.get(
                'pipeline', ()) is None:
            raise ValueError(
                f'{name} is missing from the dataset; write derive(_base_) '
                'in the config (mmvidattn.utils.config)')


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


def change(steps: Sequence[dict[str, Any]],
           **changes: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Change the steps of an inherited list, selected by type.

    A config can only inherit a whole list. :func:`derive` calls this function
    for pipelines; a config file calls it for its schedulers::

        _base_ = 'linear_ff_ssv2.py'

        from mmvidattn.utils.config import change

        param_scheduler = change(
            _base_.param_scheduler, WarmupCosineLR=dict(end=40))

    Args:
        steps: Dicts with a ``type``. They are not modified.
        changes: For each type, a dict with new values of options of the step.
            With ``_delete_=True``, it replaces all options. ``None`` removes
            the step.

    Raises:
        ValueError: If the number of steps of a type is not 1.
    """
    types = [step['type'] for step in steps]
    for name in changes:
        if types.count(name) != 1:
            raise ValueError(f'cannot change {name}: exactly one step must '
                             f'have this type, got {types.count(name)} in '
                             f'{types}')
    changed = []
    for step in copy.deepcopy(list(steps)):
        options = changes.get(step['type'], {})
        if options is not None:
            options = dict(options)
            kept = {} if options.pop('_delete_', False) else step
            changed.append({**kept, **options})
    return changed
