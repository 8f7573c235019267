# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a model.

    mmvidattn train configs/linear_ff_tiny_motion.py
"""
import argparse
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


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='go on from a checkpoint, by default the last of the work dir')
    parser.add_argument(
        '--amp', action='store_true', help='compute in bfloat16')
    parser.add_argument(
        '--no-validate', action='store_true', help='do not validate')
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help="scale the learning rate from the config's batch size to the "
        'actual one')
    parser.add_argument('--seed', type=int, help='random seed')
    parser.add_argument(
        '--diff-rank-seed',
        action='store_true',
        help='another seed for each process')
    parser.add_argument(
        '--deterministic',
        action='store_true',
        help='only deterministic algorithms')
    add_runner_arguments(parser)
    return parser.parse_args(argv)


def apply_args(cfg: Config, args: argparse.Namespace) -> None:
    """Let what the command line says win over the config."""
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
                f"'AmpOptimWrapper', and the config says {wrapper!r}")
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
        runner = build_runner(cfg, False, args.compile)
        # Builds the training set, and so checks it.
        runner.train_loop  # noqa: B018
    with quick_exit():
        runner.train()
    leave(unsaved(runner))
