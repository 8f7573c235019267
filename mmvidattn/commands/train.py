# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a model.

    mmvidattn train configs/linear_ff_tiny_motion.py
    mmvidattn train linear_ff_ssv2 --epochs 20 --batch-size 8 --auto-scale-lr
"""
import argparse
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..utils.exits import end_program, one_line_errors, one_line_stop
from ..utils.printable import count, first_few
from ._options import add_config, add_runner_arguments, at_least, positive

if TYPE_CHECKING:
    from mmengine.config import Config

# Options of a scheduler that are times, in epochs or steps.
TIMES = 'begin', 'end', 'T_max', 'milestones', 'step_size', 'warmup'
# Keys of a config that the options set.
KEY_OF_OPTION = dict(
    epochs='train_cfg.max_epochs', batch_size='train_dataloader.batch_size',
    lr='optim_wrapper.optimizer.lr')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser, checkpoint=False)
    add = parser.add_argument
    add('--resume', nargs='?', const='auto', metavar='CHECKPOINT',
        help='continue from a checkpoint (default: the last one in the work '
        'directory)')
    add('--no-validate', action='store_true', help='do not validate')
    add('--epochs', type=at_least(1), help="number of epochs; the config's "
        'schedules and warm-ups are stretched in proportion')
    add('--batch-size', type=at_least(1), help='number of clips per step in '
        'each process; --auto-scale-lr scales the learning rate')
    add('--lr', type=positive, help='learning rate of the optimizer')
    add('--auto-scale-lr', action='store_true', help='scale the learning rate '
        "by the ratio of the actual batch size to the config's")
    add('--seed', type=int, help='random seed')
    add('--diff-rank-seed', action='store_true',
        help='use a different seed in each process')
    add('--deterministic', action='store_true',
        help='use deterministic algorithms only')
    add_runner_arguments(parser)


def set_numbers(cfg: 'Config', args: argparse.Namespace) -> None:
    """Set epochs, batch size and learning rate from the command line."""
    for option, key in KEY_OF_OPTION.items():
        value = getattr(args, option)
        if value is None:
            continue
        name = f'--{option.replace("_", "-")}'
        if key in (args.cfg_options or {}):
            raise ValueError(f'give either {name} or --cfg-options {key}')
        parts = key.split('.')
        before = reduce(lambda part, each: (part or {}).get(each), parts, cfg)
        if before is None:
            raise ValueError(f'{name} needs {key} in the config')
        if option == 'epochs':
            stretch_schedules(cfg, value / before)
        cfg.merge_from_dict({key: value})


def stretch_schedules(cfg: 'Config', ratio: float) -> None:
    """Multiply all times of the config's schedulers by a ratio."""
    schedulers = cfg.get('param_scheduler') or []
    if isinstance(schedulers, dict):
        schedulers = [schedulers]
    for scheduler in schedulers:
        if 'type' not in scheduler:
            raise ValueError('--epochs needs a list of schedulers, got '
                             f'param_scheduler={cfg.param_scheduler}')
        # Without this option, mmengine needs whole epochs.
        is_exact = scheduler.get('convert_to_iter_based', False)

        def stretch(time: Any) -> Any:
            if isinstance(time, (list, tuple)):
                return [stretch(x) for x in time]
            time *= ratio
            return time if is_exact or not time else max(1, round(time))

        scheduler.update({
            name: stretch(scheduler[name]) for name in TIMES
            if scheduler.get(name) is not None})


def use_amp(cfg: 'Config') -> None:
    """Let a config compute in bfloat16, with mmengine's wrapper of autocast.

    On a CPU where it would be slower, ``drop_slow_bfloat16`` of
    apis/build_runner.py restores float32.
    """
    wrapper = cfg.optim_wrapper.setdefault('type', 'OptimWrapper')
    if wrapper not in ('OptimWrapper', 'AmpOptimWrapper'):
        raise ValueError(
            "--amp needs optim_wrapper.type to be 'OptimWrapper' or "
            f"'AmpOptimWrapper', got {wrapper!r}")
    cfg.optim_wrapper.update(type='AmpOptimWrapper', dtype='bfloat16')


def apply_args(cfg: 'Config', args: argparse.Namespace) -> None:
    """Override the config with the options of the command line."""
    set_numbers(cfg, args)
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.resume is not None:
        cfg.resume = True
        cfg.load_from = None if args.resume == 'auto' else args.resume
    if args.amp:
        use_amp(cfg)
    if args.auto_scale_lr:
        if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
            raise ValueError('--auto-scale-lr needs auto_scale_lr = '
                             'dict(base_batch_size=...) in the config')
        cfg.auto_scale_lr.enable = True
    cfg.randomness = dict(cfg.get('randomness') or dict(seed=None))
    if args.seed is not None:
        cfg.randomness.seed = args.seed
    for name in 'diff_rank_seed', 'deterministic':
        if getattr(args, name):
            cfg.randomness[name] = True


def run(args: argparse.Namespace) -> None:
    from ..apis.build_runner import (
        build_loops,
        build_runner,
        explained_errors,
        load_runner_config,
        lock_work_dir,
        unsaved_checkpoint,
    )
    from ..apis.config import located_errors

    with ExitStack() as stack:
        # PreemptionHook saves the run before it is stopped.
        stack.enter_context(one_line_stop('; --resume continues', quick=True))
        with one_line_errors():
            cfg = load_runner_config(args)
            start_weights = cfg.get('load_from')
            apply_args(cfg, args)
            # Until the end of the training.
            stack.enter_context(lock_work_dir(cfg))
            # The runner may write more.
            old = sorted(Path(cfg.work_dir).glob('*.pth'))
            with located_errors(cfg):
                runner = build_runner(cfg, strict=False, compile=args.compile,
                                      start_weights=start_weights)
                build_loops(runner, 'train', 'val')
                # Find its errors now, too.
                runner.optim_wrapper = runner.build_optim_wrapper(
                    runner.optim_wrapper)
            if old and not cfg.get('resume'):
                runner.logger.warning(
                    f'{cfg.work_dir} has {count(old, "checkpoint")} of an '
                    f'earlier run ({first_few(path.name for path in old)}). '
                    'This run starts from the beginning, replaces those of '
                    'the same name, and leaves the others. Ctrl-C, then '
                    '--resume continues the earlier run, and another '
                    '--work-dir keeps both apart')
        # Other errors are not the user's, and need a traceback.
        with explained_errors(runner):
            runner.train()
    end_program(unsaved_checkpoint(runner))
