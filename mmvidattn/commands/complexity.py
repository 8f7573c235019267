# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count parameters and multiply-accumulates of a config's model.

    mmvidattn complexity configs/linear_ff_ssv2.py

Nothing is computed, because the model is on the meta device. For an online
detector of feature streams, a view is one window.
"""
import argparse
import json
from pathlib import Path

from ..utils.exits import one_line_errors
from ..utils.printable import count, echo
from ..version import __version__
from ._options import add_cfg_options, add_config


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser, checkpoint=False)
    add = parser.add_argument
    add('--shape', nargs=3, type=int, metavar=('T', 'H', 'W'), help='frames, '
        "height and width of a view (default: the test pipeline's)")
    add('--views', type=int,
        help="number of views per video (default: the test pipeline's)")
    add_cfg_options(parser)
    add('--json', help='write the counts to this file')


def digits_of(value: float) -> str:
    """Format a count with two decimals, or more if it is below 10."""
    return f'{value:.2f}' if value >= 10 else f'{value:.3g}'


def run(args: argparse.Namespace) -> None:
    from ..apis import load_config
    from ..apis.complexity import count_config
    from ..apis.view_shape import shape_of

    with one_line_errors():
        cfg = load_config(args.config, args.cfg_options)
        shape, views = (tuple(args.shape), 1) if args.shape else shape_of(cfg)
        counts = count_config(cfg, shape)
    views = args.views or views
    macs = counts.macs / 1e9
    echo(f'{args.config}: {digits_of(counts.params / 1e6)} M parameters, '
         f'{digits_of(macs)} GMACs per view {"x".join(map(str, shape))}, '
         f'{digits_of(macs * views)} GMACs per video of '
         f'{count(views, "view")}\n'
         'The papers\' "GFLOPs" are multiply-accumulates (GMACs).')
    if args.json:
        Path(args.json).write_text(json.dumps(dict(
            version=__version__, config=args.config, shape=shape,
            views=views, params=counts.params, macs_per_view=counts.macs,
            macs_per_video=counts.macs * views), indent=2))
