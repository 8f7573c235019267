# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the targets of each step of a feature stream from annotations.

    mmvidattn targets csv mine.csv data/mine \\
        --features data/mine/rgb

A segment covers the steps from floor(start * rate) to ceil(end * rate) - 1. A
step has the classes of all segments that cover it, or else class 0, the
background. The targets have as many steps as the features. Targets with
different options or sources are not overwritten; see provenance.json in the
output folder.
"""
from collections.abc import Sequence
from pathlib import Path

from ._shared import parser_of, positive

FORMATS = 'csv', 'json', 'thumos14', 'tvseries', 'ek100'


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument('format', choices=FORMATS,
                        help='format of the annotations')
    parser.add_argument('annotations', type=Path,
                        help="annotations: a file, or THUMOS'14's folder")
    parser.add_argument('out', type=Path, help='folder to write to')
    parser.add_argument('--features', type=Path, required=True,
                        help='folder of features, to get the number of steps')
    parser.add_argument('--rate', type=positive, default=4,
                        help='steps per second (default: 4)')
    parser.add_argument('--classes', type=Path,
                        help='file with one class name per line (default: the '
                        'classes of released targets, or all annotated '
                        'classes, sorted)')
    parser.add_argument('--split', default='',
                        help="split of THUMOS'14, val or test; or name of the "
                        'list of videos for tvseries and ek100')
    parser.add_argument('--lenient', action='store_true',
                        help='warn about invalid segments and skip them')
    parser.add_argument('--force', action='store_true',
                        help='overwrite files with different content')
    args = parser.parse_args(argv)
    from ..commands import targets
    targets.run(args)
