# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check that a config uses only supported ways to train on many devices."""
import inspect
from collections.abc import Mapping
from typing import Any

from mmaction.registry import MODEL_WRAPPERS
from mmengine.model import MMDistributedDataParallel

DDP = ('train with DistributedDataParallel (tools/dist_train.sh), and save '
       'memory with model.backbone.with_cp=True')
# Options that mmengine's Runner would ignore, or that hang. Key of the
# config, key in its value, values (None for all), and the remedy.
REFUSED = (
    ('runner_type', 'type', ('FlexibleRunner', ),
     f"it cannot resume exactly. Use 'VideoRunner', and {DDP}"),
    ('strategy', 'type', None,
     f'only FlexibleRunner reads it. Remove `strategy`, and {DDP}'),
    ('model_wrapper_cfg', 'type', ('FullyShard', ),
     'it was removed; the last commit with it is 1ec24a0. Remove '
     f'`model_wrapper_cfg`, and {DDP}'),
    ('optim_wrapper', 'type', ('DeepSpeedOptimWrapper',
                               'ColossalAIOptimWrapper'),
     'it works only with the strategy of the same library. Use OptimWrapper '
     'or AmpOptimWrapper'),
    ('optim_wrapper', 'use_fsdp', (True, ),
     'it belongs to MMFullyShardedDataParallel. Remove it'))


def check_scaling(cfg: Mapping) -> None:
    """Check that a config uses only supported strategies and wrappers.

    Only ``MMDistributedDataParallel`` and its subclasses may wrap the model:
    ``MMFullyShardedDataParallel`` hangs when it saves a checkpoint, and other
    wrappers lack ``train_step`` or rename tensors in checkpoints.

    Raises:
        ValueError: If an option is not supported.
    """
    for key, part, values, remedy in REFUSED:
        value = _part(cfg.get(key), part)
        if value and (values is None or value in values):
            name = key if part == 'type' else f'{key}.{part}'
            raise ValueError(f'{name} {value!r} is not supported: {remedy}')
    kind = (cfg.get('model_wrapper_cfg') or {}).get('type')
    found = MODEL_WRAPPERS.get(kind) if isinstance(kind, str) else kind
    if kind is not None and not (inspect.isclass(found) and issubclass(
            found, MMDistributedDataParallel)):
        raise ValueError(
            f'model_wrapper_cfg {_part(kind, "type")!r} is not supported: use '
            'MMDistributedDataParallel (the default) or a class derived from '
            'it')


def _part(value: Any, key: str) -> Any:
    """Return an entry of an option; for types, the name of the class."""
    if isinstance(value, Mapping):
        value = value.get(key)
    if key != 'type':
        return value if isinstance(value, bool) else None
    if inspect.isclass(value):
        return value.__name__
    if not isinstance(value, str | None):
        return type(value).__name__
    return value and value.rpartition('.')[2]
