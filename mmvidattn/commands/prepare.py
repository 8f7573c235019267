# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare the downloads of a published dataset for training.

    mmvidattn prepare thumos14 annotation data/thumos14 \\
        --rgb FOLDER --flow FOLDER

The same command resumes an interrupted run. Files with different content are
only overwritten with --force.
"""
import argparse
import sys
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import echo

DATASETS = dict(
    thumos14="THUMOS'14 for online detection.",
    tvseries='TVSeries for online detection.',
    epic100='EPIC-Kitchens-100 for anticipation.',
    egtea="EGTEA Gaze+: RULSTM's lists for videos or features, or trimmed "
    'clips.',
    ssv2='Something-Something v2.',
    kinetics='Kinetics-400, -600 and -700.',
    ucf101='UCF-101.',
    hmdb51='HMDB-51.',
    diving48='Diving-48, version 2.',
    mit='Moments in Time.')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sets = parser.add_subparsers(dest='dataset', required=True)
    for name, title in DATASETS.items():
        command = sets.add_parser(
            name, help=title,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        if sys.argv[1:2] == [name]:
            _add_options(command, name)


def run(args: argparse.Namespace) -> None:
    from ..datasets.prepare import RECIPES
    from .targets import Faults

    recipe = RECIPES[args.dataset]
    echo(recipe.NEEDS, flush=True)
    with one_line_errors():
        recipe.prepare(args, Faults(getattr(args, 'lenient', False)))


def _add_options(command: argparse.ArgumentParser, name: str) -> None:
    """Add the options of a data set, whose recipe imports numpy and more."""
    from ..datasets.prepare import RECIPES
    recipe = RECIPES[name]
    command.description = recipe.NEEDS
    command.add_argument('sources', nargs='+', type=Path,
                         help=f'downloads: {recipe.SOURCES}')
    command.add_argument('out', type=Path, help='folder to write to')
    recipe.add_arguments(command)
    command.add_argument('--force', action='store_true',
                         help='overwrite files with different content')
