# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run one of mmaction2's own tools on a healed stack.

    python tools/upstream.py analysis_tools/print_config.py CONFIG

TOOL is a name as listed without arguments, or the path of a program.
"""
import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# First of all, so that what is imported next is healed.
import mmvidattn  # noqa: E402, F401, I001  isort: skip

import mmaction  # noqa: E402

FOLDER = Path(mmaction.__file__).parent / '.mim/tools'


def main() -> None:
    names = sorted(
        path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob('*.py'))
    if len(sys.argv) < 2 or sys.argv[1] in ('-h', '--help'):
        print(__doc__, *names, sep='\n')
        return
    name = sys.argv[1]
    tool = FOLDER / name if name in names else Path(name)
    if not tool.is_file():
        raise SystemExit(
            f'upstream.py: error: no tool {name}, neither in {FOLDER} nor '
            'here; without arguments all are listed')
    sys.argv = [str(tool), *sys.argv[2:]]
    sys.path.insert(0, str(tool.parent))
    runpy.run_path(str(tool), run_name='__main__')


if __name__ == '__main__':
    main()
