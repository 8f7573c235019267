# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Options of the command line, and what follows them in a config.

mmengine evaluates a config before it merges options into it. What a config
makes of a variable has its value by then, so an option for the variable alone
would change nothing.
"""
import difflib
import inspect
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from mmaction import registry
from mmengine.config import Config
from mmengine.registry import Registry
from mmengine.runner import Runner

from ..utils.config import PIPELINES, VARIABLES, set_variable
from ..utils.video_backend import apply_video_backend

# Options of the model that stand for a variable.
OF_MODEL = {
    'model.backbone.num_frames': 'num_frames',
    'model.backbone.img_size': 'img_size',
    'model.cls_head.num_classes': 'num_classes'
}
# What a runner, the programs here and mmaction2's read of a config.
READ = {
    *inspect.signature(Runner).parameters, 'activation_checkpointing',
    'compile', 'custom_imports', 'efficient_conv_bn_eval',
    'find_unused_parameters', 'model_wrapper_cfg', 'online', 'runner_type',
    'sync_bn', 'test_pipeline', 'tta_model', 'tta_pipeline', 'val_pipeline',
    'video_backend'
}
# What a builder takes out of the options of a type.
OF_BUILDERS = {
    '_delete_', '_scope_', 'by_epoch', 'constructor', 'convert_to_iter_based',
    'optimizer', 'paramwise_cfg', 'type'
}
MAX_NAMED = 3


def apply_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Change a config, by dotted keys, and everything that follows from them.

    * ``data_root``, ``num_classes``, ``num_nouns``, ``num_verbs``,
      ``num_frames``, ``img_size``, if the config has them at its top level:
      see :func:`~mmvidattn.utils.config.set_variable`.
    * ``model.backbone.num_frames``, ``model.backbone.img_size``,
      ``model.cls_head.num_classes``: the variable, if it has the same value.
    * ``train_pipeline`` and its like: the pipeline of the data loader, if it
      is the same.
    * ``video_backend``: every step that opens or decodes videos, by
      :func:`~mmvidattn.utils.video_backend.apply_video_backend`.

    Another option for one of these wins. An option that nothing reads
    triggers a warning that suggests the closest one that is read.

    Args:
        cfg: Config to change in place.
        options: Values by dotted keys; places in lists are numbers.
    """
    before = cfg.to_dict()
    variables = {key: options[key] for key in VARIABLES if key in options}
    for key, name in OF_MODEL.items():
        if key in options and name not in options and before.get(
                name) == _found(before, key.split('.')) is not None:
            variables[name] = options[key]
    followed = {
        name for name, value in variables.items()
        if before.get(name) is not None
        and set_variable(cfg, name, value) & READ}
    more = {}
    for key, value in options.items():
        pipeline, _, rest = key.partition('.')
        loader = f'{pipeline.split("_")[0]}_dataloader'
        inner = 'dataset', 'pipeline'
        if pipeline in PIPELINES and pipeline in before and _found(
                before, (loader, *inner)) == before[pipeline]:
            more['.'.join(filter(None, (loader, *inner, rest)))] = value
            followed.add(key)
    cfg.merge_from_dict({
        **more, **options, **{name: cfg[name] for name in followed & {
            *VARIABLES}}})
    apply_video_backend(cfg)
    for key in options:
        if key not in followed:
            _warn_if_unread(key, before, cfg.to_dict())


def _warn_if_unread(key: str, before: dict, after: dict) -> None:
    names = key.split('.')
    if names[0] not in READ:
        _warn(key, 'nothing reads it', _nearest(key, before))
        return
    for depth in range(1, len(names)):
        if _found(before, names[:depth + 1]) is not None:
            continue
        parent = _found(after, names[:depth])
        known = isinstance(parent, dict) and _arguments(parent.get('type'))
        if known and names[depth] not in known | OF_BUILDERS:
            close = difflib.get_close_matches(names[depth], known)
            _warn(key, f'{parent["type"]} has no {names[depth]!r}',
                  ['.'.join([*names[:depth], name]) for name in close])
        return


def _warn(key: str, why: str, near: list[str]) -> None:
    warnings.warn(
        f'option {key} has no effect: {why}'
        + (f'; did you mean {" or ".join(near[:MAX_NAMED])}?' if near else ''),
        stacklevel=5)


def _nearest(key: str, cfg: dict) -> list[str]:
    """Keys that are read and have the option's value, or a name like it."""
    first, _, rest = key.partition('.')
    read = dict(_leaves({k: v for k, v in cfg.items() if k in READ}))
    value = cfg.get(first)
    # Numbers are the same by chance.
    if isinstance(value, (str, dict, list)) and value:
        same = ['.'.join(filter(None, (name, rest)))
                for name, other in read.items() if other == value]
        if same:
            return same
    last = key.rpartition('.')[2]
    return [name for name in read
            if name.rpartition('.')[2] == last] or difflib.get_close_matches(
                key, {**dict.fromkeys(READ), **read}, cutoff=0.7)


def _leaves(value: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    """Each value with its dotted key, containers before what they hold."""
    if name:
        yield name, value
    items = value.items() if isinstance(value, dict) else enumerate(
        value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _leaves(item, f'{name}.{key}' if name else str(key))


def _found(value: Any, names: Any) -> Any:
    """The value of a dotted key; None if there is none."""
    for name in names:
        if isinstance(value, (list, tuple)) and name.isdecimal():
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _arguments(kind: Any) -> set[str]:
    """Arguments of a registered class; empty if they cannot be told."""
    if isinstance(kind, str):
        kind = next(filter(None, (
            _registered(kind, one) for one in vars(registry).values()
            if isinstance(one, Registry))), None)
    found: set[str] = set()
    for base in inspect.getmro(kind) if inspect.isclass(kind) else ():
        if '__init__' in vars(base) and base is not object:
            parameters = inspect.signature(base.__init__).parameters.values()
            found.update(one.name for one in parameters)
            if inspect.Parameter.VAR_KEYWORD not in {
                    one.kind for one in parameters}:
                return found
    return set()


def _registered(name: str, registry: Registry) -> Any:
    try:
        return registry.get(name)
    except ModuleNotFoundError:
        # mmaction2's FUNCTION is to be filled by a module that is not there.
        return None
