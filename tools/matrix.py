# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Install mmvidattn with several versions of its dependencies and test each.

    python tools/matrix.py --dry-run
    python tools/matrix.py --rows 1 2
    python tools/matrix.py --page docs/matrix.md

Each row is a separate environment, which pip builds from the wheel of this
checkout. In it run `import mmvidattn`, the self-test of each family
(`mmvidattn doctor`), and the steps of the quickstart on a few videos; then
the environment is deleted. The rows cover each pair of Python, torch, mmcv
and numpy versions for which wheels exist. A row whose Python or torch is
unavailable on this machine is reported, and is not a failure. The table is
printed; --page also writes the tested rows into a page.

A row takes minutes, and about 6 GB where PyTorch's own index, with builds for
a CPU, cannot be reached; compiling mmcv takes about an hour on two cores.
This program needs only the standard library.
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
# Titles of the columns, and names of their cells.
COLUMNS = {
    'row': 'row', 'Python': 'python', 'torch': 'torch', 'mmcv': 'mmcv',
    'numpy': 'numpy', 'OpenCV': 'opencv', 'install, s': 'install',
    'import, s': 'imported', 'self-test, s': 'self_test',
    'quickstart, s': 'quickstart', 'result': 'result'}
# Characters of an error that the table shows.
TAIL = 300


class Row(NamedTuple):
    """Versions of Python and packages that are tested together.

    Attributes:
        python: Version of Python, such as 3.10.
        torch: Version of torch; '' lets pip choose.
        mmcv: 'mmcv', with its compiled operators, or 'mmcv-lite'.
        numpy: First numbers of numpy's version; '' lets pip choose.
    """
    python: str
    torch: str
    mmcv: str
    numpy: str


# Python 3.13 lacks wheels of torch 2.4 and numpy 1.26, and torch.save of 2.5
# fails there. The last row is an installation without version numbers.
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
    """A version of the row is unavailable on this machine."""


class Failed(Exception):
    """A step failed."""


def find_python(version: str, candidates: Sequence[str]) -> str | None:
    """Return the path of a Python interpreter.

    Args:
        version: Version, such as 3.10.
        candidates: Programs to try before the search path.
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
    """Virtual environment in which the versions of a row are tested.

    Args:
        row: Versions to install.
        python: Python interpreter of the row's version.
        source: Copy of the checkout.
        folder: Folder to create the environment in.
        find_links: Folders with wheels for pip. Defaults to none.
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
        # Hide the packages of the user and of the active environment.
        self.env = {k: v for k, v in os.environ.items()
                    if k not in ('PYTHONPATH', 'VIRTUAL_ENV')}
        self.env |= dict(PYTHONNOUSERSITE='1', MPLBACKEND='Agg',
                         PATH=f'{folder / "bin"}{os.pathsep}'
                              f'{os.environ["PATH"]}')

    def run(self, *command: object, allowed: Sequence[int] = (0, ),
            **env: str) -> str:
        """Run a program in the copy of the checkout, and log its output.

        Args:
            command: Words of the command.
            allowed: Exit statuses that count as success. Defaults to (0,).
            env: Additional environment variables.

        Returns:
            Standard output of the program.

        Raises:
            Failed: If the program fails; with the last line of its errors.
        """
        words = [*map(str, command)]
        done = subprocess.run(
            words, cwd=self.source, env=self.env | env, capture_output=True,
            text=True, stdin=subprocess.DEVNULL)
        with self.log.open('a') as file:
            file.write(f'$ {" ".join(words)}\n{done.stdout}{done.stderr}\n')
        if done.returncode not in allowed:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
            errors = [line for line in lines if 'rror' in line]
            raise Failed(' '.join((errors or lines or [
                f'exit status {done.returncode}'])[-1].split())[:TAIL])
        return done.stdout

    def python(self, *arguments: object, **env: str) -> str:
        return self.run(self.folder / 'bin/python', *arguments, **env)

    def pip(self, *arguments: object, **env: str) -> None:
        links = [word for folder in self.find_links
                 for word in ('--find-links', folder)]
        # Python compiles a module when it is first imported.
        self.python('-m', 'pip', 'install', '--disable-pip-version-check',
                    '--no-compile', *links, *arguments, **env)

    def install(self, wheel: Path) -> None:
        """Create the environment, with PyTorch's CPU index if it answers."""
        row = self.row
        self.run(self.base, '-m', 'venv', '--clear', self.folder)
        constraints = self.folder / 'constraints.txt'
        constraints.write_text('\n'.join(
            ([f'torch=={row.torch}'] if row.torch else [])
            + ([f'numpy=={row.numpy}.*'] if row.numpy else [])) + '\n')
        # Building mmcv needs pkg_resources.
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
            # pip's cache would reuse the build with another torch.
            self.pip('mmcv==2.1.0', '--no-build-isolation', '--no-cache-dir',
                     '-c', constraints, MMCV_WITH_OPS='1')
        extra = '' if row.mmcv == 'mmcv' else '[lite]'
        self.pip(f'{wheel}{extra}', '-c', constraints)

    def has_prebuilt_mmcv(self) -> bool:
        """Return True if mmcv comes from `--find-links`."""
        return self.row.mmcv == 'mmcv' and any(
            glob.glob(f'{folder}/mmcv-*.whl') for folder in self.find_links)

    def versions(self) -> dict[str, str]:
        """Return the installed versions by name."""
        names = 'torch', self.row.mmcv, 'numpy', 'opencv-python'
        return json.loads(self.python(
            '-c', 'import importlib.metadata as m, json, sys, platform\n'
            'found = dict(python=platform.python_version())\n'
            'for x in sys.argv[1:]:\n'
            '    found[x] = m.version(x)\n'
            'print(json.dumps(found))', *names))

    def import_package(self) -> None:
        if self.row.mmcv == 'mmcv':
            self.python('-c', 'from mmcv.ops import nms')
        self.python('-W', 'error::UserWarning:mmvidattn', '-c',
                    'import mmvidattn\nassert mmvidattn.list_models()')

    def self_test(self) -> None:
        """Compare each family with known numbers, on each device."""
        # Exit status 1 means that the report lists problems.
        report = json.loads(self.run(
            self.folder / 'bin/mmvidattn', 'doctor', '--json',
            allowed=(0, 1)))
        for finding in report['findings']:
            if finding['level'] == 'problem':
                raise Failed(f'{finding["topic"]}: {finding["text"]}'[:TAIL])

    def quickstart(self) -> None:
        self.run('bash', 'tools/quickstart.sh', '--short', '--venv',
                 self.folder)
        shutil.rmtree(self.source / 'work_dirs/quickstart_short')


def try_row(environment: Environment, wheel: Path) -> dict[str, str]:
    """Run the steps of a row, and return its cells of the table."""
    row = environment.row
    cells = dict(python=row.python, torch=row.torch or 'newest',
                 mmcv=row.mmcv, numpy=row.numpy or 'newest')
    steps = dict(
        install=lambda: environment.install(wheel),
        imported=environment.import_package,
        self_test=environment.self_test,
        quickstart=environment.quickstart)
    for name, step in steps.items():
        start = time.monotonic()
        try:
            step()
            if name == 'install':
                versions = environment.versions()
                cells |= dict(
                    python=versions['python'], torch=versions['torch'],
                    mmcv=f'{row.mmcv} {versions[row.mmcv]}',
                    numpy=versions['numpy'], opencv=versions['opencv-python'])
        except Unavailable as error:
            return cells | dict(result=f'unavailable: {error}')
        except Failed as error:
            return cells | dict(result=f'{name} failed: {error}')
        cells[name] = f'{time.monotonic() - start:.0f}'
        if name == 'install' and environment.has_prebuilt_mmcv():
            cells[name] += ', with a prebuilt wheel of mmcv'
    return cells | dict(result='works')


def line_of(number: int, cells: dict[str, str]) -> str:
    cells = dict(cells, row=str(number))
    return table(COLUMNS, [[cells.get(name, '').replace('|', '\\|')
                            for name in COLUMNS.values()]])[-1]


def copy_checkout(folder: Path) -> Path:
    """Copy the checkout without build and run outputs."""
    everywhere = shutil.ignore_patterns('__pycache__', '.mim', '*.egg-info')
    at_the_top = shutil.ignore_patterns('.*', 'build', 'dist', 'data',
                                        'work_dirs')

    def ignored(path: str, names: list[str]) -> set[str]:
        skipped = everywhere(path, names)
        if Path(path) == ROOT:
            skipped |= at_the_top(path, names)
        return skipped

    return Path(shutil.copytree(ROOT, folder, ignore=ignored))


def build_wheel(python: str, source: Path, folder: Path) -> Path:
    subprocess.run(
        [python, '-m', 'pip', 'wheel', '--quiet',
         '--disable-pip-version-check', '--no-deps', '-w', folder, source],
        check=True)
    return next(folder.glob('mmvidattn-*.whl'))


def write_page(page: Path, lines: Iterable[str]) -> None:
    """Replace the tested rows in the table of a page."""
    page.write_text(replace_rows(
        page.read_text('utf-8'), [*COLUMNS], lines,
        key=lambda line: int(line.split('|')[1])), 'utf-8')


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument(
        '--rows', nargs='+', type=int, choices=range(1, len(ROWS) + 1),
        metavar='N', default=[*range(1, len(ROWS) + 1)],
        help=f'rows to test, 1 to {len(ROWS)} (default: all)')
    parser.add_argument(
        '--python', nargs='+', default=[], metavar='PROGRAM',
        help='Python interpreters (default: python3.10 and so on, from the '
        'search path)')
    parser.add_argument(
        '--find-links', nargs='+', default=[], metavar='FOLDER',
        help='folders with wheels, such as a prebuilt mmcv')
    parser.add_argument(
        '--folder', type=Path,
        help='working folder, which keeps the logs (default: a temporary '
        'folder)')
    parser.add_argument(
        '--page', type=Path, help='write the rows into the table of this page')
    parser.add_argument(
        '--dry-run', action='store_true',
        help='only print the rows and their Python interpreters')
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
        python = next(filter(None, programs.values()), sys.executable)
        wheel = build_wheel(python, source, work)
        print(*table(COLUMNS, ()), sep='\n', flush=True)
        for number, program in programs.items():
            row = ROWS[number - 1]
            if program is None:
                cells = dict(row._asdict(), result='unavailable: no '
                             f'python{row.python} on this machine')
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
