# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure which backends are faster on this machine, and store the choice.

    mmvidattn tune
    mmvidattn tune linear_ff_ssv2

Each backend is compared with the plain PyTorch code, for the shapes of a
config: first the results, then the time, eager and compiled. Later runs on
this machine use the stored choice.
"""
import argparse
from collections.abc import Sequence

from ._shared import add_cfg_options, add_device, at_least, parser_of, positive


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument(
        'config', nargs='?',
        help='config file, or its name, whose shapes to measure (default: a '
        'few shapes of our models)')
    parser.add_argument(
        '--batch-size', type=at_least(1), default=1,
        help='clips, or windows of features, per batch (default: 1)')
    parser.add_argument(
        '--seconds', type=positive, default=0.5,
        help='time to measure each call for (default: 0.5)')
    parser.add_argument(
        '--eager', action='store_true',
        help='do not measure compiled code, which takes most of the time')
    parser.add_argument(
        '--dry-run', action='store_true', help='store nothing')
    parser.add_argument(
        '--clear', action='store_true',
        help='delete all stored choices, and measure nothing')
    add_device(parser)
    add_cfg_options(parser)
    args = parser.parse_args(argv)
    if args.clear and args.config:
        parser.error(f'--clear takes no config, got {args.config!r}: it '
                     'deletes all stored choices')
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import tune
    tune.run(args)
