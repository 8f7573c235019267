# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare the downloads of a published dataset for training.

    mmvidattn prepare thumos14 annotation data/thumos14 \\
        --rgb FOLDER --flow FOLDER

The same command resumes an interrupted run. Files from other runs or programs
are only overwritten with --force. provenance.json in the output folder lists
the sources of each file.
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
        command = sets.add_parser(
            name, help=recipe.TITLE, description=recipe.NEEDS,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_argument('sources', nargs='+', type=Path,
                             help=f'downloads: {recipe.SOURCES}')
        command.add_argument('out', type=Path, help='folder to write to')
        recipe.add_arguments(command)
        command.add_argument('--force', action='store_true',
                             help='overwrite files with different content')
    args = parser.parse_args(argv)
    recipe = RECIPES[args.dataset]
    echo(recipe.NEEDS, flush=True)
    with one_line_errors():
        recipe.prepare(args, Faults(getattr(args, 'lenient', False)))
