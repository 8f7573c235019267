# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Capture of a model by torch.export, with readable errors."""
import re
from contextlib import nullcontext

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.fx import Node

from ..ops.torch_private import any_export_sizes
from .programs import Program

# Example batch size. torch.export fixes sizes 0 and 1, and larger sizes could
# equal a number of heads.
BATCH_SIZE = 3


def capture(program: Program) -> ExportedProgram:
    """Capture a program as a graph of torch's own operators.

    Raises:
        ValueError: If torch is too old, or torch.export fails on the
            program; the error names the module or axis at fault.
    """
    if not hasattr(Dim, 'DYNAMIC'):
        raise ValueError('export needs torch 2.6 or newer, got '
                         f'{torch.__version__}')
    batch = Dim('batch')
    shapes = tuple(
        {i: batch if name == 'batch' else Dim.DYNAMIC
         for i, name in axes.items()} for axes in program.axes)
    inputs = program.examples(BATCH_SIZE)
    if len(inputs) > 1:
        # torch.export nests the shapes of *args.
        shapes = shapes,
    # Keep torch from checking whether a derived size is 1. Otherwise, it would
    # accept only grids that are one attention window long, if the example
    # input has such a grid.
    sizes = any_export_sizes() if any(
        len(axes) > 1 for axes in program.axes) else nullcontext()
    try:
        with torch.no_grad(), sizes:
            return torch.export.export(
                program.eval(), inputs, dynamic_shapes=shapes)
    except Exception as error:
        raise ValueError(_explain(error, program)) from error


def _explain(error: Exception, program: Program) -> str:
    """Summarize an error of torch.export in one line."""
    text = str(error).strip() or type(error).__name__
    fixed = re.findall(r'You marked (\S+) as dynamic but your code '
                       r'specialized it to be a constant \((\d+)\)', text)
    if fixed:
        axes = ' and '.join(
            f'{_axis(name, program)} (always {n})' for name, n in fixed)
        return (f'torch.export cannot keep {axes} dynamic: the model uses the '
                'size as a constant')
    guards = re.findall(r'Not all values of (\w+) = .*? in the specified '
                        r'range satisfy the generated guard .*? (\S+ \d+)\.',
                        text)
    if guards:
        limits = ' and '.join(f'{name} {limit}' for name, limit in guards)
        return ('torch.export cannot support all requested sizes, only '
                f'{limits}: an operator of the network needs this limit, '
                'although the model itself also runs with other sizes')
    if 'Constraints violated' in text:
        needed = ' '.join(text.partition('Suggested fixes:')[2].split())
        return ('the network does not support clips of all requested sizes'
                + (f'; torch.export allows: {needed[:200]}' if needed else ''))
    return (f'torch.export cannot capture {_where(error, program)}: '
            f'{text.splitlines()[0][:200]}')


def _axis(name: str, program: Program) -> str:
    """Convert torch's name of an axis, ``L['x'].size()[2]``, to ours."""
    place = re.search(r'size\(\)\[(\d+)\]', name)
    return program.axes[0].get(int(place[1]), name) if place else name


def _where(error: Exception, program: nn.Module) -> str:
    """Return the type and name of the innermost module that ran."""
    names = {id(module): name for name, module in program.named_modules()}
    innermost, trace = program, error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_locals.get('self')
        if id(module) in names:
            innermost = module
        trace = trace.tb_next
    return f'{type(innermost).__name__} {names[id(innermost)]}'.strip()


def module_of(node: Node) -> str:
    """Return the type and name of the module that a node comes from."""
    stack = node.meta.get('nn_module_stack') or {}
    name, kind = next(reversed(stack.values()), ('', 'the program'))
    kind = kind if isinstance(kind, str) else kind.__name__
    return f'{kind.rpartition(".")[2]} {name}'.strip()
