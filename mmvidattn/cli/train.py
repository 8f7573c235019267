# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train a model.

    mmvidattn train configs/linear_ff_tiny_motion.py
    mmvidattn train linear_ff_ssv2 --epochs 20 --batch-size 8 --auto-scale-lr
"""
import argparse
import sys
from collections.abc import Sequence

from ._shared import (
    add_config,
    add_runner_arguments,
    at_least,
    parser_of,
    positive,
)

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
        '--epochs',
        type=at_least(1),
        help="number of epochs; the config's schedules and warm-ups are "
        'stretched in proportion')
    parser.add_argument(
        '--batch-size',
        type=at_least(1),
        help='number of clips per step in each process; --auto-scale-lr '
        'scales the learning rate')
    parser.add_argument(
        '--lr', type=positive, help='learning rate of the optimizer')
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
        # argparse would take a config that follows as the value of --amp.
        i = argv.index('--amp')
        if argv[i + 1:i + 2] not in ([name] for name in AMP):
            argv[i] = '--amp=auto'
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import train
    train.run(args)
