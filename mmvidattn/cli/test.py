# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Test a checkpoint on the test set of its config.

    mmvidattn test configs/linear_ff_tiny_motion.py CHECKPOINT
"""
import argparse
from collections.abc import Sequence

from ._shared import add_config, add_runner_arguments, at_least, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_config(parser)
    parser.add_argument(
        '--dump',
        metavar='FILE.pkl',
        help='write the predictions to this file, as mmaction2 does')
    parser.add_argument(
        '--show-dir',
        metavar='FOLDER',
        help='write a picture of each video with its prediction to this '
             'folder')
    parser.add_argument(
        '--show', action='store_true', help='show these pictures in a window')
    parser.add_argument(
        '--interval',
        type=at_least(1),
        default=1,
        help='write or show one of this many videos (default: 1)')
    parser.add_argument(
        '--wait-time',
        type=float,
        default=2,
        help='seconds to show each picture (default: 2)')
    add_runner_arguments(parser)
    args = parser.parse_args(argv)
    if args.dump and not args.dump.endswith(('.pkl', '.pickle')):
        parser.error(f'--dump must end with .pkl or .pickle, got {args.dump}')
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import test
    test.run(args)
