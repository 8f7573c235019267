# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The console command ``mmvidattn``: each module of mmvidattn/cli is one.

It lies beside the package, so that the list of subcommands and ``doctor`` work
even if the package cannot be imported.
"""
import ast
import difflib
import importlib
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / 'mmvidattn'


def find_commands() -> dict[str, Path]:
    """The module of each subcommand, by its name, such as ``check-videos``."""
    return {
        path.stem.replace('_', '-'): path
        for path in sorted(PACKAGE.glob('cli/[!_]*.py'))
    }


def describe(module: Path) -> str:
    """The first line of a module's docstring."""
    tree = ast.parse(module.read_text('utf-8'))
    return ast.get_docstring(tree).splitlines()[0]


def main(argv: Sequence[str] | None = None) -> None:
    """Run a subcommand.

    Args:
        argv: Its name and its arguments. Defaults to the command line.
    """
    name, *rest = (sys.argv[1:] if argv is None else argv) or ['--help']
    commands = find_commands()
    if name in ('-h', '--help'):
        print('usage: mmvidattn COMMAND [ARGUMENTS]\n')
        for name, module in commands.items():
            print(f'  {name:18}{describe(module)}')
        print('\nArguments of a command: mmvidattn COMMAND --help')
        print('Version: mmvidattn --version')
        return
    if name == '--version':
        version = runpy.run_path(str(PACKAGE / 'version.py'))['__version__']
        print(f'mmvidattn {version}')
        return
    runpy.run_path(str(PACKAGE / 'cli/_removed.py'))['refuse_removed'](
        name, rest)
    if name not in commands:
        close = difflib.get_close_matches(name, commands, 1)
        hint = f'did you mean {close[0]}? ' if close else ''
        raise SystemExit(f'mmvidattn: error: no command {name!r}; {hint}'
                         'mmvidattn --help lists all')
    # What usage and error messages begin with.
    sys.argv = [f'mmvidattn {name}', *rest]
    if name == 'doctor':
        # It is for where the package cannot be imported.
        runpy.run_path(str(commands[name]))['main'](rest)
        return
    try:
        module = importlib.import_module(
            f'mmvidattn.cli.{commands[name].stem}')
        module.main(rest)
    except KeyboardInterrupt:
        print(f'\n{sys.argv[0]}: stopped', file=sys.stderr)
        raise SystemExit(130) from None
    except ImportError:
        print('`mmvidattn doctor` reports what is wrong with the installation',
              file=sys.stderr)
        raise


if __name__ == '__main__':
    main()
