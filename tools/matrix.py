# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Install into environments of several versions, and try each.

    python tools/matrix.py --dry-run
    python tools/matrix.py --rows 1 2
    python tools/matrix.py --page docs/matrix.md

Each row is an environment of its own, made by pip from the wheel of this
checkout, and deleted after its run: `import mmvidattn`, the self-test of each
family (`mmvidattn doctor`), and the steps of the quickstart on a few videos.
Each pair of a Python, a torch, an mmcv and a numpy is in some row, as far as
there is such a thing. What cannot be had on this machine is said, and is no
failure. The table is printed; --page writes the rows that were run into a
page. A row takes minutes and about 6 GB where PyTorch's own index, with
builds for a CPU, cannot be reached; mmcv is compiled, for an hour or so on
two cores.

Only the standard library is needed.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.harness import ROOT, parser_of, replace_rows, table

NEWEST = re.search(r'^torch==(\S+)$', Path(
    ROOT, 'requirements/constraints.txt').read_text(), re.M)[1]
CPU_INDEX = 'https://download.pytorch.org/whl/cpu'
# Titles of the columns, and the cell of each.
COLUMNS = {
    'row': 'row', 'Python': 'python', 'torch': 'torch', 'mmcv': 'mmcv',
    'numpy': 'numpy', 'OpenCV': 'opencv', 'install, s': 'install',
    'import, s': 'imported', 'self-test, s': 'self_test',
    'quickstart, s': 'quickstart', 'result': 'result'}
# Of a failed step, what is kept.
TAIL = 300


class Row(NamedTuple):
    """An environment.

    Attributes:
        python: Its version, such as 3.10.
        torch: Its version; nothing for what pip takes.
        mmcv: 'mmcv', with its compiled operators, or 'mmcv-lite'.
        numpy: What it begins with; nothing for what pip takes.
    """
    python: str
    torch: str
    mmcv: str
    numpy: str


# Torch 2.4 has no wheels for Python 3.13, nor has numpy 1.26, and torch.save
# of 2.5 fails there. The last row is what a user gets who names no versions.
ROWS = (
    Row('3.10', '2.4.0', 'mmcv', '1.26'),
    Row('3.10', NEWEST, 'mmcv-lite', '2'),
    Row('3.11', '2.4.0', 'mmcv-lite', '2'),
    Row('3.11', NEWEST, 'mmcv', '1.26'),
    Row('3.12', '2.4.0', 'mmcv', '2'),
    Row('3.12', NEWEST, 'mmcv-lite', '1.26'),
    Row('3.13', '2.6.0', 'mmcv-lite', '2'),
    Row('3.13', NEWEST, 'mmcv', '2'),
    Row('3.13', '', 'mmcv-lite', ''),
)


class Unavailable(Exception):
    """This machine cannot have the row."""


class Failed(Exception):
    """A step failed."""


def find_python(version: str, candidates: Sequence[str]) -> str | None:
    """The program of a version of Python.

    Args:
        version: Such as 3.10.
        candidates: Programs to look at, before those of the search path.
    """
    for name in (*candidates, f'python{version}'):
        path = shutil.which(name)
        if path is None:
            continue
        done = subprocess.run(
            [path, '-c', 'import sys, venv; print("%d.%d" % '
             'sys.version_info[:2])'], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == version:
            return path
    return None


class Environment:
    """Of a row, in a folder of its own.

    Args:
        row: What to install.
        python: A program of that version.
        source: Copy of the checkout.
        folder: To be made.
        find_links: Folders with wheels, for pip.
    """

    def __init__(self, row: Row, python: str, source: Path, folder: Path,
                 find_links: Sequence[str] = ()) -> None:
        self.row = row
        self.base = python
        self.source = source
        self.folder = folder
        self.find_links = find_links
        self.log = folder.with_suffix('.log')
        self.log.write_text('')
        # Neither the user's packages nor the checkout's.
        self.env = {k: v for k, v in os.environ.items()
                    if k not in ('PYTHONPATH', 'VIRTUAL_ENV')}
        self.env |= dict(PYTHONNOUSERSITE='1', MPLBACKEND='Agg',
                         PATH=f'{folder / "bin"}{os.pathsep}'
                              f'{os.environ["PATH"]}')

    def run(self, *command: object, allowed: Sequence[int] = (0, ),
            **env: str) -> str:
        """Run a program in the copy of the checkout, and log it.

        Args:
            command: Its words.
            allowed: Exit statuses that are no failure.
            env: Variables.

        Returns:
            What it wrote to stdout.

        Raises:
            Failed: With the end of what it wrote.
        """
        words = [*map(str, command)]
        done = subprocess.run(
            words, cwd=self.source, env=self.env | env, capture_output=True,
            text=True, stdin=subprocess.DEVNULL)
        with self.log.open('a') as file:
            file.write(f'$ {" ".join(words)}\n{done.stdout}{done.stderr}\n')
        if done.returncode not in allowed:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            errors = [line for line in said if 'rror' in line]
            raise Failed(' '.join((errors or said or [
                f'exit status {done.returncode}'])[-1].split())[:TAIL])
        return done.stdout

    def python(self, *arguments: object, **env: str) -> str:
        return self.run(self.folder / 'bin/python', *arguments, **env)

    def pip(self, *arguments: object, **env: str) -> None:
        links = [word for folder in self.find_links
                 for word in ('--find-links', folder)]
        self.python('-m', 'pip', 'install', '--disable-pip-version-check',
                    # Python does so where it imports a module.
                    '--no-compile',
                    *links, *arguments, **env)

    def install(self, wheel: Path) -> None:
        """Make it, from PyTorch's index for a CPU where that answers."""
        row = self.row
        self.run(self.base, '-m', 'venv', '--clear', self.folder)
        constraints = self.folder / 'constraints.txt'
        constraints.write_text('\n'.join(
            ([f'torch=={row.torch}'] if row.torch else [])
            + ([f'numpy=={row.numpy}.*'] if row.numpy else [])) + '\n')
        # What builds mmcv needs pkg_resources.
        self.pip('-U', 'pip', 'setuptools<81', 'wheel')
        torch = f'torch=={row.torch}' if row.torch else 'torch'
        try:
            self.pip(f'{torch}+cpu', '--extra-index-url', CPU_INDEX,
                     '--retries', '0', '--timeout', '15', '-c', constraints)
        except Failed:
            try:
                self.pip(torch, 'numpy', '-c', constraints)
            except Failed as error:
                if 'No matching distribution' in str(error):
                    raise Unavailable(error) from error
                raise
        if row.mmcv == 'mmcv':
            self.pip('ninja', 'psutil')
            # pip's cache would give it to another torch.
            self.pip('mmcv==2.1.0', '--no-build-isolation', '--no-cache-dir',
                     '-c', constraints, MMCV_WITH_OPS='1')
        extra = '' if row.mmcv == 'mmcv' else '[lite]'
        self.pip(f'{wheel}{extra}', '-c', constraints)

    def has_own_mmcv(self) -> bool:
        """Whether mmcv is one of `--find-links`, and not compiled here."""
        return self.row.mmcv == 'mmcv' and any(
            glob.glob(f'{folder}/mmcv-*.whl') for folder in self.find_links)

    def versions(self) -> dict[str, str]:
        """Of what matters, as it was installed."""
        names = 'torch', self.row.mmcv, 'numpy', 'opencv-python'
        return json.loads(self.python(
            '-c', 'import importlib.metadata as m, json, sys, platform\n'
            'found = dict(python=platform.python_version())\n'
            'for x in sys.argv[1:]:\n'
            '    found[x] = m.version(x)\n'
            'print(json.dumps(found))', *names))

    def import_it(self) -> None:
        if self.row.mmcv == 'mmcv':
            self.python('-c', 'from mmcv.ops import nms')
        self.python('-W', 'error::UserWarning:mmvidattn', '-c',
                    'import mmvidattn\nassert mmvidattn.list_models()')

    def test_itself(self) -> None:
        """Each family against known numbers, on each device."""
        # The status 1 is that of problems, which are told.
        report = json.loads(self.run(
            self.folder / 'bin/mmvidattn', 'doctor', '--json',
            allowed=(0, 1)))
        for found in report['findings']:
            if found['level'] == 'problem':
                raise Failed(f'{found["topic"]}: {found["text"]}'[:TAIL])

    def quickstart(self) -> None:
        self.run('bash', 'tools/quickstart.sh', '--short', '--venv',
                 self.folder)
        shutil.rmtree(self.source / 'work_dirs/quickstart_short')


def try_row(environment: Environment, wheel: Path) -> dict[str, str]:
    """The cells of a row of the table."""
    row = environment.row
    cells = dict(python=row.python, torch=row.torch or 'newest',
                 mmcv=row.mmcv, numpy=row.numpy or 'newest')
    steps = dict(
        install=lambda: environment.install(wheel),
        imported=environment.import_it,
        self_test=environment.test_itself,
        quickstart=environment.quickstart)
    for name, step in steps.items():
        start = time.monotonic()
        try:
            step()
            if name == 'install':
                found = environment.versions()
                cells |= dict(
                    python=found['python'], torch=found['torch'],
                    mmcv=f'{row.mmcv} {found[row.mmcv]}',
                    numpy=found['numpy'], opencv=found['opencv-python'])
        except Unavailable as error:
            return cells | dict(result=f'cannot be had: {error}')
        except Failed as error:
            return cells | dict(result=f'{name} failed: {error}')
        cells[name] = f'{time.monotonic() - start:.0f}'
        if name == 'install' and environment.has_own_mmcv():
            cells[name] += ', with a wheel of mmcv made by hand'
    return cells | dict(result='works')


def line_of(number: int, cells: dict[str, str]) -> str:
    cells = dict(cells, row=str(number))
    return table(COLUMNS, [[cells.get(name, '').replace('|', '\\|')
                            for name in COLUMNS.values()]])[-1]


def copy_checkout(folder: Path) -> Path:
    """It without what is built or written there."""
    everywhere = shutil.ignore_patterns('__pycache__', '.mim', '*.egg-info')
    at_the_top = shutil.ignore_patterns('.*', 'build', 'dist', 'data',
                                        'work_dirs')

    def ignored(path: str, names: list[str]) -> set[str]:
        found = everywhere(path, names)
        return found | at_the_top(path, names) if Path(path) == ROOT else found

    return Path(shutil.copytree(ROOT, folder, ignore=ignored))


def build_wheel(python: str, source: Path, folder: Path) -> Path:
    subprocess.run(
        [python, '-m', 'pip', 'wheel', '--quiet',
         '--disable-pip-version-check', '--no-deps', '-w', folder, source],
        check=True)
    return next(folder.glob('mmvidattn-*.whl'))


def write_page(page: Path, lines: Iterable[str]) -> None:
    """Replace the rows of a page's table that were run again."""
    page.write_text(replace_rows(
        page.read_text('utf-8'), [*COLUMNS], lines,
        key=lambda line: int(line.split('|')[1])), 'utf-8')


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument(
        '--rows', nargs='+', type=int, choices=range(1, len(ROWS) + 1),
        metavar='N', default=[*range(1, len(ROWS) + 1)],
        help=f'which of the {len(ROWS)} (default: all)')
    parser.add_argument(
        '--python', nargs='+', default=[], metavar='PROGRAM',
        help='Pythons to take (default: python3.10 and so on, of the search '
        'path)')
    parser.add_argument(
        '--find-links', nargs='+', default=[], metavar='FOLDER',
        help='folders with wheels, such as an mmcv that was compiled before')
    parser.add_argument(
        '--folder', type=Path,
        help='where to work; it keeps the logs (default: a temporary one)')
    parser.add_argument(
        '--page', type=Path, help='write the rows into the table of this page')
    parser.add_argument(
        '--dry-run', action='store_true',
        help='say what would be tried, and with which Python')
    args = parser.parse_args()
    programs = {number: find_python(ROWS[number - 1].python, args.python)
                for number in args.rows}
    if args.dry_run:
        for number, program in programs.items():
            row = ROWS[number - 1]
            print(f'{number}: Python {row.python} '
                  f'({program or "not found"}), torch '
                  f'{row.torch or "newest"}, {row.mmcv}, numpy '
                  f'{row.numpy or "newest"}')
        return 0
    lines, failed = [], False
    with tempfile.TemporaryDirectory() as temporary:
        work = (args.folder or Path(temporary)).resolve()
        shutil.rmtree(work / 'source', ignore_errors=True)
        source = copy_checkout(work / 'source')
        some = next(filter(None, programs.values()), sys.executable)
        wheel = build_wheel(some, source, work)
        print(*table(COLUMNS, ()), sep='\n', flush=True)
        for number, program in programs.items():
            row = ROWS[number - 1]
            if program is None:
                cells = dict(row._asdict(), result='cannot be had: there is '
                             f'no python{row.python} here')
            else:
                environment = Environment(row, program, source,
                                          work / f'row{number}',
                                          args.find_links)
                cells = try_row(environment, wheel)
                shutil.rmtree(environment.folder)
            failed |= ' failed: ' in cells['result']
            lines.append(line_of(number, cells))
            print(lines[-1], flush=True)
            if args.page:
                write_page(args.page, lines)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
