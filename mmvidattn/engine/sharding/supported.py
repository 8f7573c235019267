# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check that a config uses only supported ways to train on many devices."""
import inspect
from collections.abc import Mapping
from typing import Any

from mmaction.registry import MODEL_WRAPPERS, RUNNERS
from mmengine.model import MMDistributedDataParallel

from .fully_shard import FullyShard

DDP = 'train with DistributedDataParallel (tools/dist_train.sh)'
FSDP = "use model_wrapper_cfg=dict(type='FullyShard') to share a large model"
STRATEGIES = dict(
    DeepSpeedStrategy=FSDP, ColossalAIStrategy=FSDP, FSDPStrategy=FSDP,
    DDPStrategy=f'{DDP}, which needs no option',
    SingleDeviceStrategy='start one process, without a launcher')
OPTIM_WRAPPERS = 'DeepSpeedOptimWrapper', 'ColossalAIOptimWrapper'


def check_scaling(cfg: Mapping) -> None:
    """Check that a config uses only supported strategies and wrappers.

    Some options of mmengine do not work with its ``Runner``:

    - ``strategy`` is ignored, and the run uses DistributedDataParallel.
    - ``MMFullyShardedDataParallel`` hangs when it saves a checkpoint, because
      only the first process calls ``state_dict``.
    - Other model wrappers lack ``train_step``, or change the names of tensors
      in checkpoints.

    Args:
        cfg: Config of a runner.

    Raises:
        ValueError: If ``runner_type``, ``strategy``, ``model_wrapper_cfg`` or
            ``optim_wrapper`` is not supported, or :class:`FullyShard` does not
            support another option.
    """
    strategy = cfg.get('strategy')
    if strategy:
        name = _name(strategy)
        raise ValueError(
            f'strategy {name!r} is not supported: only FlexibleRunner, which '
            'mmengine calls experimental (open-mmlab/mmengine#1213), reads '
            f'it. Remove `strategy`, and {STRATEGIES.get(name, FSDP)}')
    if _name(cfg.get('runner_type')) == 'FlexibleRunner':
        raise ValueError(
            "runner_type 'FlexibleRunner' is not supported: mmengine calls it "
            'experimental (open-mmlab/mmengine#1213), and it cannot resume '
            f"exactly. Use 'SafeRunner', and {DDP}")
    wrapper = cfg.get('model_wrapper_cfg') or {}
    kind = wrapper.get('type', MMDistributedDataParallel)
    if not _is_supported(kind):
        raise ValueError(
            f'model_wrapper_cfg.type {_name(kind)!r} is not supported: use '
            'FullyShard, MMDistributedDataParallel (the default) or a class '
            'derived from it')
    if _is_supported(kind, FullyShard):
        _check_fully_shard(cfg)
    optim_wrapper = cfg.get('optim_wrapper')
    name = _name(optim_wrapper)
    if name in OPTIM_WRAPPERS:
        raise ValueError(
            f'optim_wrapper.type {name!r} is not supported: it works only '
            'with the strategy of the same library. Use OptimWrapper or '
            'AmpOptimWrapper')
    if isinstance(optim_wrapper, Mapping) and optim_wrapper.get('use_fsdp'):
        raise ValueError(
            'optim_wrapper.use_fsdp is not supported: it belongs to '
            'MMFullyShardedDataParallel. Remove it')


def _name(value: Any) -> str | None:
    """Return the name of a class, given itself, its name or a config."""
    if isinstance(value, Mapping):
        value = value.get('type')
    if inspect.isclass(value):
        value = value.__name__
    elif not isinstance(value, str | None):
        value = type(value).__name__
    return value and value.rpartition('.')[2]


def _is_supported(kind: Any, base: Any = (FullyShard,
                                          MMDistributedDataParallel)) -> bool:
    found = MODEL_WRAPPERS.get(kind) if isinstance(kind, str) else kind
    return inspect.isclass(found) and issubclass(found, base)


def _check_fully_shard(cfg: Mapping) -> None:
    runner = cfg.get('runner_type') or 'SafeRunner'
    found = RUNNERS.get(runner) if isinstance(runner, str) else runner
    if not getattr(found, 'has_safe_parts', False):
        raise ValueError(
            f"FullyShard needs runner_type 'SafeRunner', got {_name(runner)!r}"
        )
    if cfg.get('compile'):
        raise ValueError('FullyShard does not support compile; remove it')
    hooks = [*(cfg.get('custom_hooks') or []),
             *(cfg.get('default_hooks') or {}).values()]
    if 'FeatureCacheHook' in map(_name, hooks):
        raise ValueError(
            'FullyShard does not support FeatureCacheHook, which runs frozen '
            'layers on their own; frozen layers are small without gradients: '
            'remove model_wrapper_cfg')
