# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Print how a config trains and tests, beside the authors' settings.

    mmvidattn recipes linear_ff_ssv2
"""
import argparse
from collections.abc import Sequence

from ._shared import add_cfg_options, add_config, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    add_cfg_options(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import recipes
    recipes.run(args)
