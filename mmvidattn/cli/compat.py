# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""List the workarounds for the OpenMMLab stack, with their symptoms.

    mmvidattn compat
"""
import argparse
from collections.abc import Sequence

from .. import compat


def main(argv: Sequence[str] | None = None) -> None:
    argparse.ArgumentParser(
        description=__doc__.splitlines()[0]).parse_args(argv)
    compat.main()
