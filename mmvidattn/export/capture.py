# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""torch.export, and what it cannot do, in words."""
import re
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.fx import Node

from ..ops.dispatch import use_backends
from ..ops.torch_private import any_export_sizes
from .programs import Program

# Neither 0 nor 1, which are never dynamic, nor a number of heads or so.
BATCH_SIZE = 3


def capture(program: Program) -> ExportedProgram:
    """The graph of a program, of torch's own operators.

    Raises:
        ValueError: If torch is too old, or torch.export cannot take the
            program; it says what and where.
    """
    if not hasattr(Dim, 'DYNAMIC'):
        raise ValueError('export needs torch 2.6 or newer, this is '
                         f'{torch.__version__}')
    batch = Dim('batch')
    shapes = tuple(
        {i: batch if name == 'batch' else Dim.DYNAMIC
         for i, name in axes.items()} for axes in program.axes)
    inputs = program.examples(BATCH_SIZE)
    if len(inputs) > 1:
        # Those of *args.
        shapes = shapes,
    try:
        # Our own operators would be needed to load the file.
        with torch.no_grad(), use_backends(False), _any_sizes(program):
            return torch.export.export(
                program.eval(), inputs, dynamic_shapes=shapes)
    except Exception as error:
        raise ValueError(_in_words(error, program)) from error


def _any_sizes(program: Program) -> AbstractContextManager:
    """Do not ask of a size that torch makes of others whether it is 1.

    Otherwise, where the grid of the example is one window long, the program
    is one of such grids.
    """
    if all(len(axes) == 1 for axes in program.axes):
        return nullcontext()
    return any_export_sizes()


def _in_words(error: Exception, program: Program) -> str:
    """What torch.export said, in one line."""
    text = str(error).strip() or type(error).__name__
    fixed = re.findall(r'You marked (\S+) as dynamic but your code '
                       r'specialized it to be a constant \((\d+)\)', text)
    if fixed:
        axes = ' and '.join(
            f'{_axis(name, program)} (always {n})' for name, n in fixed)
        return (f'torch.export cannot keep {axes} dynamic: some code of the '
                'model takes the size for a constant')
    guards = re.findall(r'Not all values of (\w+) = .*? in the specified '
                        r'range satisfy the generated guard .*? (\S+ \d+)\.',
                        text)
    if guards:
        limits = ' and '.join(f'{name} {limit}' for name, limit in guards)
        return ('torch.export makes it a program of fewer sizes than were '
                f'asked for: {limits}; an operator of the network asks for '
                'that, though the model itself takes the others too')
    if 'Constraints violated' in text:
        needed = ' '.join(text.partition('Suggested fixes:')[2].split())
        return ('the network does not take clips of any such length or size'
                + (f'; torch.export allows: {needed[:200]}' if needed else ''))
    return (f'torch.export cannot take {_where(error, program)}: '
            f'{text.splitlines()[0][:200]}')


def _axis(name: str, program: Program) -> str:
    """Our name of what torch may call ``L['clips'].size()[2]``."""
    place = re.search(r'size\(\)\[(\d+)\]', name)
    return program.axes[0].get(int(place[1]), name) if place else name


def _where(error: Exception, program: nn.Module) -> str:
    """The innermost module that ran, by its type and name."""
    names = {id(module): name for name, module in program.named_modules()}
    found, trace = program, error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_locals.get('self')
        if id(module) in names:
            found = module
        trace = trace.tb_next
    return _called(type(found).__name__, names[id(found)])


def _called(kind: str, name: str) -> str:
    return f'{kind} {name}'.strip()


def module_of(node: Node) -> str:
    """The module that a node comes from, by its type and name."""
    stack = node.meta.get('nn_module_stack') or {}
    name, kind = next(reversed(stack.values()), ('', 'the program'))
    kind = kind if isinstance(kind, str) else kind.__name__
    return _called(kind.rpartition('.')[2], name)
