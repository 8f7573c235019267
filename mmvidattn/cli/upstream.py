# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run one of mmaction2's tools with mmvidattn's workarounds.

    mmvidattn upstream analysis_tools/print_config.py CONFIG

The first argument is the name of a tool, or the path of a program. Without
arguments, the command lists all tools.
"""
import runpy
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> None:
    args = list(sys.argv[1:] if argv is None else argv)
    folder = Path(find_spec('mmaction').origin).parent / '.mim/tools'
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob('*.py'))
    if not args or args[0] in ('-h', '--help'):
        print(__doc__, *names, sep='\n')
        return
    name, *rest = args
    tool = folder / name if name in names else Path(name)
    if not tool.is_file():
        from ..apis.runner import program_name
        raise SystemExit(
            f'{program_name()}: error: tool {name} does not exist, neither in '
            f'{folder} nor here; run without arguments to list all tools')
    sys.argv = [str(tool), *rest]
    # Python also does this when it runs a program.
    sys.path.insert(0, str(tool.parent))
    runpy.run_path(str(tool), run_name='__main__')
