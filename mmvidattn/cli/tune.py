# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure which backends are faster on this machine, and store the choice.

    mmvidattn tune
    mmvidattn tune linear_ff_ssv2

Each backend is compared with the plain code at the shapes of a config: results
first, then time, eager and compiled. Later programs on this machine use the
stored choice.
"""
from collections.abc import Sequence

import torch

from ..apis.compiling import why_not_compile
from ..apis.models import get_model
from ..apis.runner import one_line_errors
from ..apis.tune import (
    COMPILERS,
    clear,
    half_dtypes,
    record_model,
    representative_calls,
    store,
    table,
    tune,
)
from ..ops import dispatch
from ..ops.processor import capability, is_emulated, processor_name
from ..utils.printable import echo
from ._shared import (
    add_cfg_options,
    add_device,
    at_least,
    parser_of,
    positive,
)
from .complexity import inputs_of, shape_of


def main(argv: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument(
        'config', nargs='?',
        help='config file, or its name, whose shapes to measure (default: a '
        'few shapes of our models)')
    parser.add_argument(
        '--batch-size', type=at_least(1), default=1,
        help='clips, or windows of features, per batch (default: 1)')
    parser.add_argument(
        '--seconds', type=positive, default=0.5,
        help='time to measure each call for (default: 0.5)')
    parser.add_argument(
        '--eager', action='store_true',
        help='do not measure compiled code, which takes most of the time')
    parser.add_argument(
        '--dry-run', action='store_true', help='store nothing')
    parser.add_argument(
        '--clear', action='store_true',
        help='delete all stored choices, and measure nothing')
    add_device(parser)
    add_cfg_options(parser)
    args = parser.parse_args(argv)
    if args.clear:
        if args.config:
            parser.error('--clear takes no config, got '
                         f'{args.config!r}: it deletes all stored choices')
        for path in clear():
            echo(f'deleted {path}')
        return
    if dispatch.is_overridden():
        parser.error(
            f'{dispatch.VARIABLE} decides which backends run; unset it')
    with one_line_errors():
        measure(args)


def measure(args) -> None:
    """Measure, print the table, and store the choice."""
    device = torch.device(args.device)
    emulated = ' (emulated by environment variables)' * is_emulated()
    echo(f'{processor_name(device)}, {capability(device)}{emulated}, '
         f'{torch.get_num_threads()} threads, torch {torch.__version__}')
    failed = None if args.eager else why_not_compile(device.type)
    if failed:
        echo(f'compiled code is not measured: {failed}')
    calls = make_calls(args, device)
    results = []
    for result in tune(calls, device,
                       COMPILERS[:1] if args.eager or failed else COMPILERS,
                       args.seconds):
        results.append(result)
        echo(f'measured {result.op} by {result.backend}')
    if not results:
        echo('no backend fits; there is nothing to choose')
        return
    echo(table(results, dispatch.current_choice(device)))
    if not args.dry_run:
        path = store(results, device, args.config or 'the default shapes')
        echo(f'stored in {path}')


def make_calls(args, device: torch.device) -> list:
    """Record the calls of a config, or of the default shapes."""
    if args.config is None:
        return representative_calls(device)
    model = get_model(args.config, device=device,
                      cfg_options=args.cfg_options)
    shape, _ = shape_of(model.cfg)
    like = inputs_of(model, shape)
    size = args.batch_size

    def random(x: torch.Tensor) -> torch.Tensor:
        return torch.randn(size, *x.shape[1:], device=device)

    inputs = {name: random(x) for name, x in like.items()} if isinstance(
        like, dict) else random(like)
    return record_model(
        model, inputs, [torch.float32, *half_dtypes(device)])
