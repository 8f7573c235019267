# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compute the memory of training, and which GPUs have enough.

    mmvidattn memory configs/vivit_l16x2_joint_k400.py --gpus 8 --amp

Nothing is allocated, because the training step runs on tensors without data.
docs/scale.md explains the parts and the limits.
"""
import argparse
from collections.abc import Sequence

from ._shared import (
    add_cfg_options,
    add_config,
    at_least,
    parser_of,
    positive,
)

STRATEGIES = 'ddp', 'FullyShard'


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    add_cfg_options(parser)
    parser.add_argument(
        '--gpus', type=at_least(1), default=8,
        help='number of processes, one per GPU (default: 8)')
    parser.add_argument(
        '--batch-size', type=at_least(1),
        help="samples per step in each process (default: the config's)")
    parser.add_argument(
        '--strategy', choices=STRATEGIES,
        help="how the processes share the model (default: the config's)")
    parser.add_argument(
        '--amp', action='store_true',
        help='compute in bfloat16, like mmvidattn train --amp')
    parser.add_argument(
        '--checkpointing', action='store_true',
        help='recompute blocks in the backward pass, like with_cp=True')
    parser.add_argument(
        '--shape', nargs=3, type=at_least(1), metavar=('T', 'H', 'W'),
        help="frames, height and width of a clip (default: the training "
        "pipeline's)")
    parser.add_argument(
        '--flops', type=positive,
        help='floating-point operations per second that a GPU sustains, such '
        'as 1e14, to estimate the time of a step')
    parser.add_argument(
        '--check', action='store_true',
        help='train two real steps on the CPU in one process, and compare '
        'the computed with the measured peak')
    parser.add_argument('--json', help='write the results to this file')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import memory
    memory.run(args)
