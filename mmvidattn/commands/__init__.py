# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Subcommands of ``mmvidattn``, one module each.

A module has ``add_arguments(parser)`` and ``run(args)``. ``run`` imports torch
and OpenMMLab, so that ``--help`` is fast.
"""
import argparse
import ast
import difflib
import importlib
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..utils.exits import CTRL_C, one_line_errors
from ..version import __version__

FOLDER = Path(__file__).resolve().parent
FORMAT = warnings.formatwarning


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line, with the closest options."""

    def error(self, message: str) -> NoReturn:
        known = re.findall(r'--[\w-]+', self.format_usage())
        unknown = message.partition('unrecognized arguments: ')[2].split()
        close = [match for word in unknown if word.startswith('--')
                 for match in difflib.get_close_matches(
                     word.partition('=')[0], known, 1)]
        hint = f'; did you mean {", ".join(close)}?' if close else ''
        if unknown and self.prog.endswith('compare'):
            hint += '; options of finetune go after --'
        self.exit(2, f'{self.prog}: error: {message}{hint} '
                     f'({self.prog} --help)\n')


def find_commands() -> dict[str, Path]:
    """Return the module of each command by its name, e.g. 'check-videos'."""
    return {path.stem.replace('_', '-'): path
            for path in sorted(FOLDER.glob('[!_]*.py'))}


def describe(module: Path) -> str:
    """Return the first line of a module's docstring."""
    tree = ast.parse(module.read_text('utf-8'))
    return ast.get_docstring(tree).splitlines()[0]


def make_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    module = importlib.import_module(f'{__name__}.{name.replace("-", "_")}')
    parser = Parser(
        f'mmvidattn {name}', description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)
    return parser


def parse(name: str, rest: Sequence[str]) -> argparse.Namespace | None:
    """Parse the arguments of a command; None after --help or --version."""
    commands = find_commands()
    if name in ('-h', '--help'):
        print('usage: mmvidattn COMMAND [ARGUMENTS]\n')
        for name, module in commands.items():
            print(f'  {name:18}{describe(module)}')
        print('\nArguments of a command: mmvidattn COMMAND --help')
        print('Version: mmvidattn --version')
        return None
    if name == '--version':
        print(f'mmvidattn {__version__}')
        return None
    if name not in commands:
        close = difflib.get_close_matches(name, commands, 1)
        hint = f'did you mean {close[0]}? ' if close else ''
        raise SystemExit(
            f'mmvidattn: error: no command {name!r}; {hint}mmvidattn --help '
            'lists all, and CHANGELOG.md those that were removed')
    # Error messages begin with this.
    sys.argv = [f'mmvidattn {name}', *rest]
    parser = make_parser(name)
    # argparse cannot mix options and arguments of a parser with subparsers.
    return (parser.parse_args if name == 'prepare' else
            parser.parse_intermixed_args)(rest)


def format_warning(message: Warning | str, category: type[Warning],
                   filename: str, *place: Any) -> str:
    """Format a warning of this package as one line, without its place."""
    if Path(filename).is_relative_to(FOLDER.parent):
        return f'warning: {message}\n'
    return FORMAT(message, category, filename, *place)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command; its name and arguments are by default sys.argv's."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or ['--help']
    warnings.formatwarning = format_warning
    try:
        with one_line_errors():
            try:
                args = parse(name, rest)
            finally:
                # If `head` has closed the pipe, fail here instead of at exit.
                sys.stdout.flush()
        if args is not None:
            args.run(args)
    except BrokenPipeError:
        # The command wrote this outside of its own checks.
        with one_line_errors():
            raise
    except KeyboardInterrupt:
        print(f'\n{sys.argv[0]}: stopped', file=sys.stderr)
        raise SystemExit(CTRL_C) from None
    except ImportError:
        print('`mmvidattn doctor` reports what is wrong with the installation',
              file=sys.stderr)
        raise
