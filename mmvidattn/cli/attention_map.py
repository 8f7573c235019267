# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Draw attention matrices, and attention over the frames of a video.

    mmvidattn attention-map VIDEO --variants linear:A.pth \\
        separate:B.pth cooperative:C.pth softmax:D.pth --out maps

All four variants together reproduce Fig. 2 of the feature fixation paper.

Writes ``matrices.png``, an ``overlay_T_Y_X.png`` for each token of
``--tokens``, and ``attention.json`` with the concentration of each matrix: the
mean entropy of its rows in nats, and divided by the logarithm of the number of
keys (1: uniform).

A matrix covers the sequence that contains the first token of ``--tokens``: all
tokens of its frame in spatial attention, or of its position in temporal
attention. With ``--head mean``, the mean matrix of all heads is drawn and
measured. Rows that are not drawn are not computed. In the image, matrices have
at most 1024 columns; columns of wider matrices are averaged. Without a
checkpoint, a model has random weights, and its attention is meaningless.
"""
import argparse
from collections.abc import Sequence
from pathlib import Path

from ._shared import add_cfg_options, add_device, at_least, parser_of


def _token(text: str) -> tuple[int, int, int]:
    t, y, x = map(int, text.split(','))
    return t, y, x


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('video', type=Path, help='video file')
    parser.add_argument(
        '--config', action='append', default=[], metavar='CONFIG[:CHECKPOINT]',
        help='config file or name of a model, with its checkpoint; repeat the '
        'option to compare models')
    parser.add_argument(
        '--variants', nargs='+', metavar='NAME[:CHECKPOINT]',
        help='variants of --base: linear, separate, cooperative, softmax '
        '(default: all four, or none with --config)')
    parser.add_argument(
        '--base', default='linear_ff_ssv2',
        help='config of the variants (default: %(default)s)')
    add_cfg_options(parser)
    parser.add_argument(
        '--pattern', choices=('space', 'time', 'joint', 'window'),
        default='space',
        help='pattern of the attention to draw (default: %(default)s)')
    parser.add_argument(
        '--layer', type=int,
        help='layer, counted from 1 (default: 11 like in the paper, or else '
        'the last layer)')
    parser.add_argument(
        '--head', default='mean', metavar='HEAD',
        help='head, counted from 0, or mean for the mean of all heads '
        '(default: mean)')
    parser.add_argument(
        '--tokens', nargs='+', type=_token, metavar='T,Y,X',
        help='queries: frame, row and column (default: the center of the '
        'clip)')
    parser.add_argument(
        '--max-rows', type=at_least(1), default=512,
        help='maximum number of queries to draw, evenly spaced (default: '
        '%(default)s)')
    parser.add_argument(
        '--out', type=Path, default=Path('attention_maps'), metavar='FOLDER',
        help='folder to write to (default: %(default)s)')
    add_device(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    from ..commands import attention_map
    attention_map.run(args)
