# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""List trained weights in the package, and free ones to start from.

    mmvidattn weights --check
"""
import argparse
from collections.abc import Sequence

from ._shared import parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument(
        '--check', action='store_true',
        help='ask the Hugging Face Hub whether it has each model, and print '
        'its current revision, which hf://NAME@REVISION needs')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import weights
    weights.run(args)
