# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Build the runner of a config, for the programs that train and test."""
import argparse
import difflib
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from traceback import extract_tb, print_exc
from urllib.error import URLError

import torch
from mmaction.registry import OPTIMIZERS, PARAM_SCHEDULERS, RUNNERS
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import broadcast_object_list
from mmengine.registry import init_default_scope
from mmengine.runner import Runner

from ..datasets.skipping_loader import SampleError
from ..engine import AtomicCheckpointHook, NewClassifierHook, VideoRunner
from ..engine.hooks import find_hook
from ..engine.runner import check_scaling
from ..utils.checkpoint import (
    download,
    find_resumable,
    load_checkpoint,
    load_weights_only,
    require_overlap,
)
from ..utils.config_folder import config_folder
from ..utils.exits import end_program
from ..utils.half_precision import fallback_message, is_bfloat16_slow
from ..utils.lock import lock_folder
from ..utils.modules import unwrap
from ..utils.printable import describe_error
from ..utils.remote_files import is_url
from .check_config import check_config
from .config import (
    KNOWN_KEYS,
    dependent_options,
    key_of,
    leaves_of,
    load_config,
)
from .models import check_model_options

# Methods of a model that a loop calls.
STEPS = {'train_step', 'val_step', 'test_step'}
# Environment variable with the rank of a process, for each launcher.
RANKS = dict(pytorch='RANK', slurm='SLURM_PROCID', mpi='OMPI_COMM_WORLD_RANK')


def load_runner_config(args: argparse.Namespace) -> Config:
    """Load ``args.config`` and apply the shared options."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = load_config(args.config, args.cfg_options)
    root = cfg.get('data_root')
    if isinstance(root, str) and root and not dependent_options(
            dict(leaves_of(cfg.to_dict())), 'data_root', '') and re.search(
                r'^data_root\b', Path(cfg.filename).read_text('utf-8'), re.M):
        warnings.warn(
            f'data_root={root!r} in the config changes no path: replace it by '
            f'--cfg-options data_root={root}, or by the data_root of each '
            'dataset')
    for key in cfg.keys() - KNOWN_KEYS:
        # Variables resemble other keys: train_pipeline and tta_pipeline.
        for close in [name for name in KNOWN_KEYS if sorted(name) == sorted(
                key)] or difflib.get_close_matches(key, KNOWN_KEYS, 1, .87):
            warnings.warn(f'nothing reads {key} of the config; did you mean '
                          f'{close}?')
    cfg.launcher = args.launcher
    if args.default_runtime:
        add_default_runtime(cfg)
    hooks = cfg.get('default_hooks') or {}
    for name, hook in hooks.items():
        if isinstance(hook, dict) and 'type' not in hook:
            close = difflib.get_close_matches(name, {*hooks} - {name}, 1)
            raise ValueError(f'default_hooks.{name} has no type' + (
                f'; did you mean {close[0]}?' if close else ''))
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = str(Path('work_dirs', Path(cfg.filename).stem))
    return cfg


def add_default_runtime(cfg: Config) -> None:
    """Add runner and hooks of ``configs/_base_/default_runtime.py``.

    Existing options of the config and hooks of other types stay.
    """
    ours = Config.fromfile(config_folder() / '_base_/default_runtime.py')
    cfg.setdefault('runner_type', ours.runner_type)
    # setdefault stores a converted copy and returns the original.
    cfg.setdefault('default_hooks', {})
    for name, hook in ours.default_hooks.items():
        if cfg.default_hooks.get(name) is None:
            cfg.default_hooks[name] = hook
        elif cfg.default_hooks[name].get('type') in (
                None, 'CheckpointHook', 'LoggerHook'):
            cfg.default_hooks[name].type = hook.type


def build_runner(cfg: Config, strict: bool, compile: bool = False,
                 start_weights: str | None = None) -> Runner:
    """Build the runner, and check the checkpoint to load.

    mmengine itself silently skips tensors whose names or shapes do not match.
    Resuming without a path uses the newest readable checkpoint in the work
    directory; without one, training starts from ``start_weights``.

    Args:
        cfg: Config. Its ``runner_type`` defaults to
            :class:`~mmvidattn.engine.VideoRunner`.
        strict: Require that ``load_from`` has exactly the tensors of this
            model, unlike start weights for fine-tuning. To resume, this is
            always required.
        compile: Compile the backbone. In contrast, mmengine's ``compile`` in a
            config compiles the whole training step into 15 graphs, and does
            nothing in testing.
        start_weights: Checkpoint to start from if none can be resumed.
            Defaults to None, random weights.
    """
    check_scaling(cfg)
    check_config(cfg)
    dropped = drop_slow_bfloat16(cfg)
    cfg.default_scope = cfg.get('default_scope') or 'mmaction'
    # Another library of OpenMMLab may have set its own scope.
    init_default_scope(cfg.default_scope)
    optimizer = (cfg.get('optim_wrapper') or {}).get('optimizer') or {}
    schedulers = cfg.get('param_scheduler') or []
    for registry, part in [(OPTIMIZERS, optimizer), *(
            (PARAM_SCHEDULERS, one) for one in (
                schedulers if isinstance(schedulers, list) else ()))]:
        kind = part.get('type')
        if isinstance(kind, str) and registry.get(kind) is None:
            # Raises an error that suggests a name, before the training.
            registry.build(dict(type=kind))
    if 'runner_type' in cfg:
        runner = RUNNERS.build(cfg)
    else:
        runner = VideoRunner.from_cfg(cfg)
    if dropped:
        runner.logger.warning(fallback_message(' and '.join(dropped)))
    model = unwrap(runner.model)
    if compile:
        model.backbone.compile()
    resume, checkpoint = cfg.get('resume', False), cfg.get('load_from')
    if resume and not checkpoint:
        checkpoint = _find_resumable(runner)
        resume, checkpoint = bool(checkpoint), checkpoint or start_weights
    if checkpoint and is_url(checkpoint):
        # Download it here, because mmengine would not check its hash.
        checkpoint = str(download(checkpoint))
    runner._load_from, runner._resume = checkpoint, resume
    if checkpoint and (strict or resume):
        meta = load_checkpoint(model, checkpoint)
        check_model_options(cfg.model, meta, checkpoint)
        if resume:
            _check_resume(runner, checkpoint)
            for unit in 'epoch', 'iter':
                total = (cfg.get('train_cfg') or {}).get(f'max_{unit}s')
                if total and meta.get(unit, 0) >= total:
                    runner.logger.warning(
                        f'{checkpoint} has had all {total} {unit}s: nothing is'
                        f' left to train, unless train_cfg.max_{unit}s grows')
    elif checkpoint:
        runner.logger.info(require_overlap(model, checkpoint))
        runner.register_hook(NewClassifierHook())
    return runner


def drop_slow_bfloat16(cfg: Config) -> list[str]:
    """Replace bfloat16 by float32 in a config where it would be slower.

    This applies to CPUs without bfloat16 units, unless the environment
    variable ``MMVIDATTN_BFLOAT16`` is ``force``. Return the changed options.
    """
    if not is_bfloat16_slow(get_device()):
        return []
    dropped = []
    wrapper = cfg.get('optim_wrapper') or {}
    if (wrapper.get('type') == 'AmpOptimWrapper'
            and wrapper.get('dtype') in (None, 'bfloat16', torch.bfloat16)):
        dropped.append('optim_wrapper (AmpOptimWrapper)')
        wrapper.type = 'OptimWrapper'
        for name in 'dtype', 'loss_scale', 'use_fsdp':
            wrapper.pop(name, None)
    for name in 'val_cfg', 'test_cfg':
        loop = cfg.get(name) or {}
        if loop.get('fp16'):
            dropped.append(f'{name}.fp16')
            loop.fp16 = False
    return dropped


def _check_resume(runner: Runner, checkpoint: str) -> None:
    """Raise a ``ValueError`` if the saved optimizer lacks a needed option."""
    if checkpoint.endswith('.safetensors'):
        return
    loaded = load_weights_only(checkpoint, mmap=True)
    optimizer = runner.cfg.optim_wrapper.get('optimizer')
    groups = loaded.get('optimizer', {}).get('param_groups')
    if not isinstance(optimizer, dict) or not groups:
        return
    trial = OPTIMIZERS.build(dict(optimizer, params=[torch.zeros(1)]))
    trial.load_state_dict(dict(
        state={}, param_groups=[dict(groups[0], params=[0])]))
    missing = trial.defaults.keys() - trial.param_groups[0].keys()
    if missing:
        raise ValueError(
            f'{checkpoint} was trained with another optimizer: it has no '
            f'{", ".join(sorted(missing))} for {optimizer["type"]}. Resume '
            'with the previous optimizer, or start from its weights: '
            'load_from=..., without --resume')


def build_loops(runner: Runner, *names: str) -> None:
    """Build loops and their data sets now, to find errors before the work."""
    for name in names:
        try:
            getattr(runner, f'{name}_loop')
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f'{name}_dataloader: {describe_error(error)}') from error


@contextmanager
def explained_errors(runner: Runner) -> Iterator[None]:
    """End the program if a sample or the first step fails, with a hint."""
    try:
        yield
    except SampleError as error:
        end_program(str(error))
    except Exception as error:
        text = describe_error(error).strip() or repr(error)
        key = key_of(runner.cfg, error)
        if key:
            end_program(key + text)
        frames, hint = {each.name for each in extract_tb(
            error.__traceback__)}, ''
        hook = (runner.cfg.get('default_hooks') or {}).get('checkpoint') or {}
        # Torch raises an error of a worker again.
        if frames & {'__getitem__', 'reraise'}:
            # In the text of a worker's error, the note is the last line.
            text = getattr(error, '__notes__', [text])[-1]
            if isinstance(error, FileNotFoundError):
                hint = ("check the line in ann_file, and the data set's "
                        'data_root and data_prefix')
            elif not isinstance(error, (TypeError, LookupError, AttributeError,
                                        AssertionError)):
                hint = ('CheckedVideoDataset instead of VideoDataset leaves '
                        'out unreadable videos')
        elif isinstance(error, URLError):
            hint = ('check the addresses in pretrained and init_cfg of the '
                    'model')
        elif isinstance(error, KeyError) and text == hook.get('save_best'):
            hint = 'default_hooks.checkpoint.save_best names no metric'
        elif frames & STEPS and not runner.iter and isinstance(
                error, RuntimeError) and not isinstance(
                    error, torch.OutOfMemoryError):
            hint = ('if tensors do not fit together, check FormatShape in the '
                    'pipeline, model.data_preprocessor.format_shape, the '
                    'backbone, and in_channels of model.cls_head')
        elif not isinstance(error, ValueError):
            raise
        print_exc()
        end_program(text.splitlines()[-1] + f'; {hint}' * bool(hint))


def _find_resumable(runner: Runner) -> str | None:
    path = None
    if runner.rank == 0:
        path, passed = find_resumable(runner.work_dir)
        for skipped, reason in passed:
            runner.logger.warning(f'does not resume from {skipped}: {reason}')
        if path is None:
            runner.logger.info(f'no checkpoint in {runner.work_dir}: training '
                               'starts from the beginning')
    paths = [path and str(path)]
    broadcast_object_list(paths)
    return paths[0]


@contextmanager
def lock_work_dir(cfg: Config) -> Iterator[None]:
    """Lock the config's work directory in the first process."""
    rank = os.environ.get(RANKS.get(cfg.launcher, ''), '0')
    with lock_folder(cfg.work_dir) if rank == '0' else nullcontext():
        yield


def unsaved_checkpoint(runner: Runner) -> str:
    """Return a message if the last checkpoint was not saved; else ''."""
    hook = find_hook(runner, AtomicCheckpointHook)
    return '' if hook is None else hook.unsaved
