# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Count parameters, multiply-accumulates and FLOPs of a config's model.

    mmvidattn complexity configs/linear_ff_ssv2.py

Nothing is computed, because the model is on the meta device. The linear video
transformer, XViT and DualFormer are also counted as in the released code. For
an online detector of feature streams, a view is one window.
"""
import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..utils.exits import one_line_errors
from ..utils.printable import echo
from ..version import __version__
from ._options import add_cfg_options, add_config

if TYPE_CHECKING:
    from ..apis.complexity import Complexity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser, checkpoint=False)
    add = parser.add_argument
    add('--shape', nargs=3, type=int, metavar=('T', 'H', 'W'), help='frames, '
        "height and width of a view (default: the test pipeline's)")
    add('--views', type=int,
        help="number of views per video (default: the test pipeline's)")
    add_cfg_options(parser)
    add('--json', help='write the counts to this file')


def rows_of(ours: 'Complexity', released: 'Complexity | None',
            views: int) -> list[dict]:
    """Return a row for each count. FLOPs of the released code are unknown."""
    rows = [dict(
        counted='all operations', params=ours.params,
        macs_per_view=ours.macs, macs_per_video=ours.macs * views,
        flops_per_view=ours.flops, flops_per_video=ours.flops * views)]
    if released is not None:
        rows.append(dict(
            counted='like the released code', params=released.params,
            macs_per_view=released.macs,
            macs_per_video=released.macs * views))
    return rows


def digits_of(value: float) -> str:
    """Format a count with two decimals, or more if it is below 10."""
    return f'{value:.2f}' if value >= 10 else f'{value:.3g}'


def run(args: argparse.Namespace) -> None:
    from ..apis import load_config
    from ..apis.complexity import count_config, shape_of

    with one_line_errors():
        cfg = load_config(args.config, args.cfg_options)
        shape, views = (tuple(args.shape), 1) if args.shape else shape_of(cfg)
        ours, released = count_config(cfg, shape)
    views = args.views or views
    rows = rows_of(ours, released, views)

    echo(f'{args.config}: view {"x".join(map(str, shape))}, {views} views '
         'per video')
    units = dict(
        params=('params M', 1e6),
        macs_per_view=('GMACs/view', 1e9),
        macs_per_video=('GMACs/video', 1e9),
        flops_per_view=('GFLOPs/view', 1e9),
        flops_per_video=('GFLOPs/video', 1e9))
    echo(f'{"":28}' + ''.join(f'{name:>13}' for name, _ in units.values()))
    for r in rows:
        echo(f'{r["counted"]:28}' + ''.join(
            f'{digits_of(r[key] / unit):>13}' if key in r else f'{"":13}'
            for key, (_, unit) in units.items()))
    echo("The papers' \"GFLOPs\" are multiply-accumulates (GMACs). A FLOP "
         'here is one floating-point operation, including elementwise ones.')
    for op, calls in ours.uncounted.items():
        echo(f'not counted: {op} ({calls} calls)', file=sys.stderr)
    if args.json:
        Path(args.json).write_text(json.dumps(dict(
            version=__version__, config=args.config, shape=shape,
            views=views, counts=rows), indent=2))
    if ours.uncounted:
        raise SystemExit(1)
