# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Export a model to a file, and verify the file against the model."""
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from ..ops.torch_private import any_export_sizes
from .formats import check_format, load_program, one_line, write_program
from .programs import Function, Program

TOLERANCE = 1e-4
BATCH_SIZES = 1, 5
# Batch size of the captured example. torch.export fixes sizes 0 and 1, and
# larger sizes could equal a number of heads.
EXAMPLE_SIZE = 3


def export_program(program: Program,
                   out: str | Path,
                   metadata: Mapping[str, str] | None = None
                   ) -> dict[str, float]:
    """Export a program to a file, and compare the file with the model.

    The file is kept only if its outputs and the model's agree, for batches of
    1 and of 5, and for larger clips if their size is dynamic.

    Args:
        program: Program from :func:`mmvidattn.export.program_of`.
        out: Path to write; its suffix selects the format.
        metadata: Metadata to add to the program's.

    Returns:
        Largest difference from the model for each output and trial, relative
        to the largest value of the output; at most ``TOLERANCE``.

    Raises:
        ValueError: If the program cannot be exported to this format, or the
            file disagrees with the model.
    """
    out = Path(out)
    check_format(out)
    if program.has_dynamic_sizes:
        try:
            program.try_out(program, 1, larger=True)
        except ValueError as error:
            raise ValueError('the model takes no other sizes, so they cannot '
                             f'be dynamic: {error}') from error
    exported = capture(program)
    metadata = {**program.metadata(), **(metadata or {}),
                'outputs': json.dumps(program.output_names)}
    out.parent.mkdir(parents=True, exist_ok=True)
    # Rename only when verified, so that readers never see a wrong file.
    with tempfile.TemporaryDirectory(dir=out.parent, prefix='.export') as tmp:
        part = Path(tmp, out.name)
        write_program(exported, program, metadata, part)
        differences = compare(program, load_program(part))
        worst = max(differences, key=differences.__getitem__)
        if not differences[worst] <= TOLERANCE:
            raise ValueError(
                f'the exported program differs from the model: {worst} by '
                f'{differences[worst]:.1e} of the largest value (allowed: '
                f'{TOLERANCE:.0e}); {out} was not written')
        os.replace(part, out)
    return differences


def capture(program: Program) -> ExportedProgram:
    """Capture a program as a graph of torch's own operators."""
    if not hasattr(Dim, 'DYNAMIC'):
        raise ValueError('export needs torch 2.6 or newer, got '
                         f'{torch.__version__}')
    batch = Dim('batch')
    shapes = tuple(
        {i: batch if name == 'batch' else Dim.DYNAMIC
         for i, name in axes.items()} for axes in program.axes)
    inputs = program.examples(EXAMPLE_SIZE)
    if len(inputs) > 1:
        # torch.export nests the shapes of *args.
        shapes = shapes,
    # Keep torch from checking whether a derived size is 1. Otherwise, it would
    # accept only grids that are one attention window long, if the example
    # input has such a grid.
    sizes = (any_export_sizes() if program.has_dynamic_sizes else
             nullcontext())
    try:
        with torch.no_grad(), sizes:
            return torch.export.export(
                program.eval(), inputs, dynamic_shapes=shapes)
    except Exception as error:
        raise ValueError('torch.export cannot capture the model: '
                         f'{one_line(error)}') from error


@torch.no_grad()
def compare(program: Program, function: Function) -> dict[str, float]:
    """Return the largest differences of a function from its program."""
    differences = {}
    trials = [(size, False) for size in BATCH_SIZES]
    trials += [(1, True)] * program.has_dynamic_sizes
    for batch_size, larger in trials:
        want = program.try_out(program, batch_size, larger)
        size = ', larger clips' if larger else ''
        try:
            got = program.try_out(function, batch_size, larger)
        except Exception as error:
            raise ValueError(
                'the exported program fails on inputs of the model, batch '
                f'{batch_size}{size}: {one_line(error)}') from error
        for name, x in want.items():
            differences[f'{name} of batch {batch_size}{size}'] = difference(
                got[name], x)
    return differences


def difference(got: Tensor, want: Tensor) -> float:
    """Return the largest difference, relative to the largest finite value."""
    got, want = (x.detach().cpu().double() for x in (got, want))
    if got.shape != want.shape:
        return float('inf')
    # The difference of equal infinities is 0.
    gap = (got - want).abs().where(got != want, 0.).max().nan_to_num(
        torch.inf, torch.inf)
    largest = want.abs().where(want.isfinite(), 0.).max()
    return (gap / largest if gap else gap).item()
