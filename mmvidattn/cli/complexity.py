# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count parameters, multiply-accumulates and FLOPs of a config's model.

    mmvidattn complexity configs/linear_ff_ssv2.py

Nothing is computed, because the model is on the meta device. The linear video
transformer, XViT and DualFormer are also counted as in the released code. For
an online detector of feature streams, a view is one window.
"""
from collections.abc import Sequence

from ._shared import add_cfg_options, add_config, parser_of


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    add_config(parser, checkpoint=False)
    parser.add_argument(
        '--shape', nargs=3, type=int, metavar=('T', 'H', 'W'),
        help='frames, height and width of a view (default: the test '
        "pipeline's)")
    parser.add_argument(
        '--views', type=int,
        help="number of views per video (default: the test pipeline's)")
    add_cfg_options(parser)
    parser.add_argument('--json', help='write the counts to this file')
    args = parser.parse_args(argv)
    from ..commands import complexity
    complexity.run(args)
