# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare a published data set: from downloads to a folder that trains.

    mmvidattn prepare thumos14 annotation data/thumos14 \\
        --rgb FOLDER --flow FOLDER

A run can be interrupted and started again. What another run or another
program made stays as it is, unless --force is said. provenance.json in the
output tells what was made of what.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ..apis.runner import one_line_errors
from ..datasets.prepare import RECIPES
from ..utils.printable import echo
from ._shared import parser_of
from .targets import Faults


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    sets = parser.add_subparsers(dest='dataset', required=True)
    for name, recipe in RECIPES.items():
        one = sets.add_parser(
            name, help=recipe.TITLE, description=recipe.NEEDS,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        one.add_argument('sources', nargs='+', type=Path,
                         help=f'what was downloaded: {recipe.SOURCES}')
        one.add_argument('out', type=Path, help='folder to write to')
        recipe.add_arguments(one)
        one.add_argument('--force', action='store_true',
                         help='write over files of other content')
    args = parser.parse_args(argv)
    recipe = RECIPES[args.dataset]
    echo(recipe.NEEDS, flush=True)
    with one_line_errors():
        recipe.prepare(args, Faults(getattr(args, 'lenient', False)))
