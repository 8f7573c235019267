# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a model.

    mmvidattn train configs/linear_ff_tiny_motion.py
"""
import argparse
import sys
from collections.abc import Sequence

from mmengine.config import Config

from ..apis.runner import (
    add_runner_arguments,
    build_runner,
    leave,
    load_runner_config,
    one_line_errors,
    quick_exit,
    unsaved,
)
from ._shared import add_config, parser_of

AMP = 'auto', 'force'


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='continue from a checkpoint (default: the last one in the work '
        'directory)')
    parser.add_argument(
        '--amp',
        nargs='?',
        const='auto',
        choices=AMP,
        help='compute in bfloat16 where it is faster: on a GPU, and on a CPU '
        'with bfloat16 units; "--amp force" computes in it on any CPU')
    parser.add_argument(
        '--no-validate', action='store_true', help='do not validate')
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help="scale the learning rate by the ratio of the actual batch size "
        "to the config's")
    parser.add_argument('--seed', type=int, help='random seed')
    parser.add_argument(
        '--diff-rank-seed',
        action='store_true',
        help='use a different seed in each process')
    parser.add_argument(
        '--deterministic',
        action='store_true',
        help='use deterministic algorithms only')
    add_runner_arguments(parser)
    argv = [*(sys.argv[1:] if argv is None else argv)]
    if '--amp' in argv:
        # An option with an optional value would take a config that follows.
        i = argv.index('--amp')
        if argv[i + 1:i + 2] not in ([name] for name in AMP):
            argv[i] = '--amp=auto'
    return parser.parse_args(argv)


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


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    with one_line_errors():
        cfg = load_runner_config(args)
        apply_args(cfg, args)
        runner = build_runner(
            cfg, False, args.compile, force_amp=args.amp == 'force')
        # Build the training set, which checks it.
        runner.train_loop  # noqa: B018
    with quick_exit():
        runner.train()
    leave(unsaved(runner))
