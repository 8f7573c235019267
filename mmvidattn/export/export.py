# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A file that computes what its model does, or none."""
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from .capture import capture
from .formats import FORMATS, choose_format
from .programs import Program

TOLERANCE = 1e-4
BATCH_SIZES = 1, 5


class Report(NamedTuple):
    """What was exported.

    Attributes:
        format: Of the file.
        num_bytes: Its size.
        differences: By what was tried, the largest difference from the model
            itself, relative to the largest value of that output.
    """
    format: str
    num_bytes: int
    differences: dict[str, float]


def export_program(program: Program,
                   out: str | Path,
                   metadata: Mapping[str, str] | None = None,
                   tolerance: float = TOLERANCE) -> Report:
    """Write a file, and run it beside the model.

    The file is at its place only if both agree, for batches of 1 and of 5,
    and for larger clips where their size is dynamic.

    Args:
        program: Of :func:`mmvidattn.export.program_of`.
        out: The file; its suffix is the format.
        metadata: To be added to the program's.
        tolerance: The largest difference allowed.

    Raises:
        ValueError: If the program or the format cannot be had, or what was
            exported computes something else.
    """
    out = Path(out)
    name = choose_format(out)
    kind = FORMATS[name]
    kind.check()
    exported = capture(program)
    metadata = {**program.metadata(), **(metadata or {}),
                'outputs': json.dumps(program.output_names)}
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that it is there whole and right, or not at all.
    with tempfile.TemporaryDirectory(dir=out.parent, prefix='.export') as tmp:
        part = Path(tmp, out.name)
        kind.write(exported, program, metadata, part)
        differences = compare(program, kind.load(part))
        worst = max(differences, key=differences.__getitem__)
        if not differences[worst] <= tolerance:
            raise ValueError(
                f'what was exported differs from the model: {worst}, by '
                f'{differences[worst]:.1e} of the largest value (allowed: '
                f'{tolerance:.0e}); {out} is not written')
        report = Report(name, part.stat().st_size, differences)
        os.replace(part, out)
    return report


@torch.no_grad()
def compare(program: Program, function) -> dict[str, float]:
    """The largest differences of a function from its program."""
    found = {}
    trials = [(size, False) for size in BATCH_SIZES]
    if any(len(axes) > 1 for axes in program.axes):
        trials.append((1, True))
    for batch_size, larger in trials:
        want = program.try_out(program, batch_size, larger)
        size = ', larger clips' if larger else ''
        try:
            got = program.try_out(function, batch_size, larger)
        except Exception as error:
            raise ValueError(
                'what was exported refuses inputs of the model, batch '
                f'{batch_size}{size}: {str(error)[:200]}') from error
        for name, x in want.items():
            found[f'{name} of batch {batch_size}{size}'] = difference(
                got[name], x)
    return found


def difference(got: Tensor, want: Tensor) -> float:
    """Largest difference, relative to the largest finite value."""
    got, want = (x.detach().cpu().double() for x in (got, want))
    if got.shape != want.shape:
        return float('inf')
    # Infinities that agree, too.
    gap = (got - want).abs().where(got != want, 0.)
    if not gap.isfinite().all():
        return float('inf')
    largest = want.abs().where(want.isfinite(), 0.).max()
    gap = gap.max()
    return (gap / largest if gap else gap).item()
