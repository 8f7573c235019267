# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare the downloads of a published dataset for training.

    mmvidattn prepare thumos14 annotation data/thumos14 \\
        --rgb FOLDER --flow FOLDER

DATASET is thumos14 or tvseries (online detection), epic100 or egtea
(anticipation), ssv2, kinetics, ucf101, hmdb51, diving48 or mit (video lists);
`mmvidattn prepare DATASET --help` names the downloads.

The same command resumes an interrupted run. Files with different content are
only overwritten with --force.
"""
import argparse
import sys
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import echo


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sets = parser.add_subparsers(dest='dataset', metavar='DATASET',
                                 required=True)
    if sys.argv[1:2] in ([], ['-h'], ['--help']):
        return
    # The recipes import numpy and more.
    from ..datasets.prepare import RECIPES

    for name, recipe in RECIPES.items():
        command = sets.add_parser(
            name, description=recipe.needs,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_argument('sources', nargs='+', type=Path,
                             help=f'downloads: {recipe.sources}')
        command.add_argument('out', type=Path, help='folder to write to')
        for option, settings in recipe.options.items():
            command.add_argument(option, **settings)
        command.add_argument('--force', action='store_true',
                             help='overwrite files with different content')


def run(args: argparse.Namespace) -> None:
    from ..datasets.prepare import RECIPES
    from .targets import Faults

    recipe = RECIPES[args.dataset]
    echo(recipe.needs)
    with one_line_errors():
        recipe.prepare(args, Faults(getattr(args, 'lenient', False)))

