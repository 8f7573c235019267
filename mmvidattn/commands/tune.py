# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure which backends are faster on this machine, and store the choice."""
import argparse

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
from .complexity import inputs_of, shape_of


def run(args: argparse.Namespace) -> None:
    if args.clear:
        for path in clear():
            echo(f'deleted {path}')
        return
    with one_line_errors():
        if dispatch.is_overridden():
            raise ValueError(
                f'{dispatch.VARIABLE} decides which backends run; unset it')
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
        echo('no backend supports these calls; there is nothing to choose')
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
