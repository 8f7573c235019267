# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Review detected events of video files on a page, and mark them.

    mmvidattn review PREDICTIONS VIDEOS --annotations FILE

PREDICTIONS has events in any annotation format, such as ``predictions.csv`` of
``finetune --stream`` or the file of ``predict --segments``. VIDEOS is the
folder of their videos. The page shows the events of each video on a timeline,
and the pictures of each event. Mark an event as right, wrong or of another
class, and add missed events. ``finetune --continue WORK_DIR --add marks.csv``
trains further with the marks. Ctrl-C ends the program.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_page, parser_of


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('predictions', type=Path, metavar='PREDICTIONS',
                        help='file of detected events')
    parser.add_argument('videos', type=Path, metavar='VIDEOS',
                        help='folder of the videos')
    parser.add_argument(
        '--annotations', type=Path, metavar='FILE',
        help='annotated events, to show for comparison')
    parser.add_argument(
        '--marks', type=Path, metavar='FILE',
        help='CSV file for the marks (default: marks.csv beside PREDICTIONS)')
    add_page(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import review
    review.run(args)
