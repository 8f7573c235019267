# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a model."""
import argparse
from contextlib import ExitStack

from mmengine.config import Config

from ..apis.runner import (
    build_runner,
    leave,
    load_runner_config,
    lock_work_dir,
    one_line_errors,
    quick_exit,
    unsaved,
)
from ..utils.interrupts import one_line_stop


def apply_args(cfg: Config, args: argparse.Namespace) -> None:
    """Override the config with the options of the command line."""
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.resume is not None:
        cfg.resume = True
        cfg.load_from = None if args.resume == 'auto' else args.resume
    if args.amp:
        wrapper = cfg.optim_wrapper.setdefault('type', 'OptimWrapper')
        if wrapper not in ('OptimWrapper', 'AmpOptimWrapper'):
            raise ValueError(
                "--amp needs optim_wrapper.type to be 'OptimWrapper' or "
                f"'AmpOptimWrapper', got {wrapper!r}")
        cfg.optim_wrapper.update(type='AmpOptimWrapper', dtype='bfloat16')
    if args.auto_scale_lr:
        if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
            raise ValueError('--auto-scale-lr needs auto_scale_lr = '
                             'dict(base_batch_size=...) in the config')
        cfg.auto_scale_lr.enable = True
    randomness = cfg.setdefault('randomness', dict(seed=None))
    if args.seed is not None:
        randomness.seed = args.seed
    if args.diff_rank_seed:
        randomness.diff_rank_seed = True
    if args.deterministic:
        randomness.deterministic = True


def run(args: argparse.Namespace) -> None:
    with ExitStack() as stack:
        stack.enter_context(quick_exit())
        stack.enter_context(one_line_stop('; --resume continues'))
        with one_line_errors():
            cfg = load_runner_config(args)
            apply_args(cfg, args)
            stack.enter_context(lock_work_dir(cfg))
            runner = build_runner(
                cfg, False, args.compile, force_amp=args.amp == 'force')
            # Build the training set, which checks it.
            runner.train_loop  # noqa: B018
        runner.train()
    leave(unsaved(runner))
