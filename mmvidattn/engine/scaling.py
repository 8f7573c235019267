# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check that a config uses only supported ways to train on many devices."""
import inspect
from collections.abc import Mapping
from typing import Any

from mmaction.registry import MODEL_WRAPPERS
from mmengine.model import MMDistributedDataParallel

DDP = ('train with DistributedDataParallel (tools/dist_train.sh), and save '
       'memory with model.backbone.with_cp=True')
# Options that mmengine's Runner would ignore, or that hang: the key, names of
# types (None for all), and the remedy.
REFUSED = (
    ('runner_type', ('FlexibleRunner', ),
     f"it cannot resume exactly. Use 'VideoRunner', and {DDP}"),
    ('strategy', None,
     f'only FlexibleRunner reads it. Remove `strategy`, and {DDP}'),
    ('model_wrapper_cfg', ('FullyShard', ),
     'it was removed; the last commit with it is 1ec24a0. Remove '
     f'`model_wrapper_cfg`, and {DDP}'),
    ('optim_wrapper', ('DeepSpeedOptimWrapper', 'ColossalAIOptimWrapper'),
     'it works only with the strategy of the same library. Use OptimWrapper '
     'or AmpOptimWrapper'))


def check_scaling(cfg: Mapping) -> None:
    """Check that a config uses only supported strategies and wrappers.

    Only ``MMDistributedDataParallel`` and its subclasses may wrap the model:
    ``MMFullyShardedDataParallel`` hangs when it saves a checkpoint, and other
    wrappers lack ``train_step`` or rename tensors in checkpoints.

    Raises:
        ValueError: If an option is not supported.
    """
    for key, names, remedy in REFUSED:
        name = _name_of(cfg.get(key))
        if name and (names is None or name in names):
            raise ValueError(f'{key} {name!r} is not supported: {remedy}')
    wrapper = cfg.get('optim_wrapper')
    if isinstance(wrapper, Mapping) and wrapper.get('use_fsdp'):
        raise ValueError('optim_wrapper.use_fsdp True is not supported: it '
                         'belongs to MMFullyShardedDataParallel. Remove it')
    kind = (cfg.get('model_wrapper_cfg') or {}).get('type')
    found = MODEL_WRAPPERS.get(kind) if isinstance(kind, str) else kind
    if kind is not None and not (inspect.isclass(found) and issubclass(
            found, MMDistributedDataParallel)):
        raise ValueError(
            f'model_wrapper_cfg {_name_of(kind)!r} is not supported: use '
            'MMDistributedDataParallel (the default) or a class derived from '
            'it')


def _name_of(value: Any) -> str | None:
    """Return the name of a type, of a config's type or of an object's."""
    if isinstance(value, Mapping):
        value = value.get('type')
    if isinstance(value, str | None):
        return value and value.rpartition('.')[2]
    return (value if inspect.isclass(value) else type(value)).__name__
