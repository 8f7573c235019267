# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run one of mmaction2's own tools on a patched stack.

    mmvidattn upstream analysis_tools/print_config.py CONFIG

TOOL is a name as listed without arguments, or the path of a program.
"""
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import mmaction

from ..apis.runner import program_name

FOLDER = Path(mmaction.__file__).parent / '.mim/tools'


def main(argv: Sequence[str] | None = None) -> None:
    args = list(sys.argv[1:] if argv is None else argv)
    names = sorted(
        path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob('*.py'))
    if not args or args[0] in ('-h', '--help'):
        print(__doc__, *names, sep='\n')
        return
    name, *rest = args
    tool = FOLDER / name if name in names else Path(name)
    if not tool.is_file():
        raise SystemExit(
            f'{program_name()}: error: no tool {name}, neither in {FOLDER} '
            'nor here; without arguments all are listed')
    sys.argv = [str(tool), *rest]
    # As Python does for a program.
    sys.path.insert(0, str(tool.parent))
    runpy.run_path(str(tool), run_name='__main__')
