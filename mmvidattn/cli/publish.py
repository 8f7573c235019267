# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the release files of a trained model: weights and config.

    mmvidattn publish CONFIG CHECKPOINT --out-dir release

Writes ``<name of the config>_<date>-<hash>.pth`` and ``.safetensors``; the
hash is the first 8 digits of the file's SHA-256. Both contain only the weights
of the model (averaged weights if the training averaged them), the text of the
config and the class names: no optimizer, no paths of the work directory and no
logs.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_config, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    parser.add_argument('checkpoint', help='checkpoint of a training')
    parser.add_argument(
        '--out-dir', type=Path, default=Path('release'),
        help='folder to write to (default: release)')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import publish
    publish.run(args)
