# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Prepare the downloads of a published dataset for training."""
import argparse

from ..apis.runner import one_line_errors
from ..datasets.prepare import RECIPES
from ..utils.printable import echo
from .targets import Faults


def run(args: argparse.Namespace) -> None:
    recipe = RECIPES[args.dataset]
    echo(recipe.NEEDS, flush=True)
    with one_line_errors():
        recipe.prepare(args, Faults(getattr(args, 'lenient', False)))
