# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Command-line options for configs, applied to all dependent values.

mmengine evaluates a config before it merges options. A value that was computed
from a variable would therefore not change with the variable.
"""
import difflib
import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mmaction import registry
from mmengine.config import Config
from mmengine.registry import Registry
from mmengine.runner import Runner

from ..utils.config import PIPELINES, VARIABLES, set_variable
from ..utils.video_backend import apply_video_backend

# Model options that are equivalent to a variable.
MODEL_VARIABLES = {
    'model.backbone.num_frames': 'num_frames',
    'model.backbone.img_size': 'img_size',
    'model.cls_head.num_classes': 'num_classes'
}
# Top-level keys that the runner, mmvidattn or mmaction2 read.
KNOWN_KEYS = {
    *inspect.signature(Runner).parameters, 'activation_checkpointing',
    'compile', 'console_log_level', 'custom_imports', 'efficient_conv_bn_eval',
    'find_unused_parameters', 'model_wrapper_cfg', 'online', 'runner_type',
    'sync_bn', 'test_pipeline', 'tta_model', 'tta_pipeline', 'val_pipeline',
    'video_backend'
}
# Keys that builders remove before they call the constructor of a class.
BUILDER_KEYS = {
    '_delete_', '_scope_', 'by_epoch', 'constructor', 'convert_to_iter_based',
    'optimizer', 'paramwise_cfg', 'type'
}
MAX_SUGGESTIONS = 3


def apply_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Change options of a config, and all values that depend on them.

    * ``data_root``, ``num_classes``, ``num_nouns``, ``num_verbs``,
      ``num_frames`` and ``img_size`` at the top level of the config also
      change all values computed from them; see
      :func:`~mmvidattn.utils.config.set_variable`.
    * ``model.backbone.num_frames``, ``model.backbone.img_size`` and
      ``model.cls_head.num_classes`` also change the top-level variable, if it
      had the same value.
    * ``train_pipeline``, ``val_pipeline`` and ``test_pipeline`` also change
      the pipeline of the data loader, if both were equal.
    * ``video_backend`` changes every step that opens or decodes videos; see
      :func:`~mmvidattn.utils.video_backend.apply_video_backend`.

    An explicit option for a dependent value takes precedence. An unused
    option triggers a warning that suggests the closest valid one.

    Args:
        cfg: Config to change in place.
        options: Values by dotted keys. A number is an index into a list.
    """
    before = cfg.to_dict()
    # 1. Set variables and the values computed from them.
    variables = {key: options[key] for key in VARIABLES if key in options}
    for key, name in MODEL_VARIABLES.items():
        if key in options and name not in options and before.get(
                name) == _get(before, key.split('.')) is not None:
            variables[name] = options[key]
    used = {
        name for name, value in variables.items()
        if before.get(name) is not None
        and set_variable(cfg, name, value) & KNOWN_KEYS}
    # 2. Repeat changes of a pipeline in its data loader.
    repeated = {}
    for key, value in options.items():
        pipeline, _, rest = key.partition('.')
        loader = f'{pipeline.split("_")[0]}_dataloader'
        inner = 'dataset', 'pipeline'
        if pipeline in PIPELINES and pipeline in before and _get(
                before, (loader, *inner)) == before[pipeline]:
            repeated['.'.join(filter(None, (loader, *inner, rest)))] = value
            used.add(key)
    # 3. Merge the options, which take precedence.
    cfg.merge_from_dict({
        **repeated, **options,
        **{name: cfg[name] for name in used & {*VARIABLES}}})
    apply_video_backend(cfg)
    for key in options:
        if key not in used:
            _warn_if_unused(key, before, cfg.to_dict())


def _warn_if_unused(key: str, before: dict, after: dict) -> None:
    names = key.split('.')
    if names[0] not in KNOWN_KEYS:
        _warn(key, 'nothing reads it', _suggest(key, before))
        return
    for depth in range(1, len(names)):
        if _get(before, names[:depth + 1]) is not None:
            continue
        parent = _get(after, names[:depth])
        known = isinstance(parent, dict) and _arguments(parent.get('type'))
        if known and names[depth] not in known | BUILDER_KEYS:
            close = difflib.get_close_matches(names[depth], known)
            _warn(key, f'{parent["type"]} has no argument {names[depth]!r}',
                  ['.'.join([*names[:depth], name]) for name in close])
        return


def _warn(key: str, reason: str, suggestions: list[str]) -> None:
    names = ' or '.join(suggestions[:MAX_SUGGESTIONS])
    warnings.warn(
        f'option {key} has no effect: {reason}'
        + (f'; did you mean {names}?' if names else ''), stacklevel=5)


def _suggest(key: str, cfg: dict) -> list[str]:
    """Return valid keys with an unused key's value, or a similar name."""
    first, _, rest = key.partition('.')
    used = dict(_leaves({k: v for k, v in cfg.items() if k in KNOWN_KEYS}))
    value = cfg.get(first)
    # Numbers may be equal by chance.
    if isinstance(value, (str, dict, list)) and value:
        same = ['.'.join(filter(None, (name, rest)))
                for name, item in used.items() if item == value]
        if same:
            return same
    last = key.rpartition('.')[2]
    return [name for name in used
            if name.rpartition('.')[2] == last] or difflib.get_close_matches(
                key, {**dict.fromkeys(KNOWN_KEYS), **used}, cutoff=0.7)


def _leaves(value: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    """Yield all nested values with dotted keys; containers before items."""
    if name:
        yield name, value
    items = value.items() if isinstance(value, dict) else enumerate(
        value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _leaves(item, f'{name}.{key}' if name else str(key))


def _get(value: Any, names: Iterable[str]) -> Any:
    """Return the value of a dotted key, or None."""
    for name in names:
        if isinstance(value, (list, tuple)) and name.isdecimal():
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _arguments(kind: Any) -> set[str]:
    """Return the arguments of a registered class; empty if unknown."""
    if isinstance(kind, str):
        kind = next(filter(None, (
            _registered(kind, item) for item in vars(registry).values()
            if isinstance(item, Registry))), None)
    names: set[str] = set()
    for base in inspect.getmro(kind) if inspect.isclass(kind) else ():
        if '__init__' in vars(base) and base is not object:
            parameters = inspect.signature(base.__init__).parameters.values()
            names.update(item.name for item in parameters)
            if inspect.Parameter.VAR_KEYWORD not in {
                    item.kind for item in parameters}:
                return names
    return set()


def _registered(name: str, registry: Registry) -> Any:
    try:
        return registry.get(name)
    except ModuleNotFoundError:
        # mmaction2's FUNCTION registry refers to a missing module.
        return None
