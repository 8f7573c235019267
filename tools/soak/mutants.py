# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Mutation testing: break the code on purpose, and check that a test fails.

    python tools/soak/mutants.py mmvidattn/ops mmvidattn/online --sample 200 \
        --coverage .coverage --durations junit.xml --out mutants.json

Mutants come from cosmic-ray (``pip install ".[mutation]"``), which changes an
operator, a comparison, a number or a truth value, skips a loop, or removes a
decorator or a ``not``, and from ``mutation_operators.py``, which removes a
call or a check, drops a keyword, swaps two values, or returns early. The tool
draws ``--sample`` places in the code, for each place a kind of mutant, and
one mutant of this kind.

Each mutant is tested in a copy of the checkout with the tests that import its
module or reach its file according to ``--coverage`` (a file of coverage.py
with contexts): first tests that reach its line, then tests named after its
module, then quick tests, until one fails or exceeds its time limit. A mutant
that survives ``--quick-seconds`` of tests is tested for up to ``--seconds``.

Mutants that change only annotations or docstrings are not drawn. At the end,
every test that has failed runs again on the unbroken code; if it fails there
too, its mutants count as survivors. With ``--out``, an interrupted run
continues where it stopped. Exits with 1 if fewer than ``--goal`` percent of
the mutants are noticed.
"""
import argparse
import ast
import gc
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import ROOT, count, parser_of, table
from tools.soak.mutation_operators import OPERATORS, find_edits

FAILURES = '.failures'
# Operators of cosmic-ray that need arguments.
UNUSED = ('core/VariableReplacer', 'core/VariableInserter')


@dataclass
class Mutant:
    """Place, text and outcome of a mutant."""

    path: str
    line: int
    operator: str
    occurrence: int
    before: str = ''
    after: str = ''
    outcome: str = ''
    noticed_by: str = ''
    tests: int = 0
    seconds: float = 0.


def main() -> None:
    args = parse_args()
    mutants = draw(args.paths, args.sample, args.seed)
    known = read(args.out)
    mutants = [known.get(place(x), x) for x in mutants]
    waiting = [x for x in mutants if not x.outcome]
    suite = Suite(args.coverage, args.durations)
    _warm_up()
    start = time.monotonic()
    for done, mutant in enumerate(
            run_all(waiting, suite, args), start=1):
        print(f'[{done}/{len(waiting)}, {time.monotonic() - start:.0f} s] '
              f'{mutant.outcome}: {mutant.path}:{mutant.line} '
              f'{mutant.before} -> {mutant.after} '
              f'({mutant.tests} tests, {mutant.seconds:.0f} s)', flush=True)
        write(mutants, args.out)
    control(mutants)
    write(mutants, args.out)
    if summarize(mutants) < args.goal:
        sys.exit(1)


def place(mutant: Mutant) -> tuple[str, int, str, int]:
    """Return the key of a mutant."""
    return mutant.path, mutant.line, mutant.operator, mutant.occurrence


def read(path: Path | None) -> dict[tuple, Mutant]:
    """Read the mutants that an earlier run has tested."""
    if path is None or not path.exists():
        return {}
    mutants = [Mutant(**x) for x in json.loads(path.read_text())]
    return {place(x): x for x in mutants}


def write(mutants: list[Mutant], path: Path | None) -> None:
    """Write the mutants that were tested so far."""
    if path is not None:
        path.write_text(json.dumps(
            [asdict(x) for x in mutants if x.outcome], indent=1))


def summarize(mutants: list[Mutant]) -> float:
    """Print a row per folder and kind, and the survivors.

    Returns:
        Percentage of mutants that were noticed.
    """
    groups = defaultdict(list)
    for mutant in mutants:
        groups[str(Path(mutant.path).parent)].append(mutant)
    for mutant in mutants:
        groups[_kind(mutant.operator)].append(mutant)
    groups['all'] = mutants
    rows = []
    for name, group in groups.items():
        noticed = sum(x.outcome in ('noticed', 'timeout') for x in group)
        late = sum(x.outcome == 'timeout' for x in group)
        percent = 100 * noticed / max(1, len(group))
        rows.append([f'`{name}`', f'{len(group)}', f'{noticed}', f'{late}',
                     f'{percent:.1f}'])
    print('', *table(('folder or kind', 'mutants', 'noticed', 'by time limit',
                      'percent'), rows), sep='\n')
    for mutant in mutants:
        if mutant.outcome not in ('noticed', 'timeout'):
            print(f'{mutant.outcome}: {mutant.path}:{mutant.line} '
                  f'[{mutant.operator}] {mutant.before} -> {mutant.after}')
    return percent


# Mutants

def draw(paths: list[str], sample: int, seed: int) -> list[Mutant]:
    """Draw ``sample`` places in the code, and a mutant of each place."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast

    names = [x for x in plugins.operator_names() if x not in UNUSED]
    operators = {x: plugins.get_operator(x)() for x in names}
    generator = random.Random(seed)
    places = defaultdict(list)
    for path in _modules(paths):
        tree = get_ast((ROOT / path).read_text())
        for name, operator in operators.items():
            for i, (start, _) in enumerate(
                    x for node in ast_nodes(tree)
                    for x in operator.mutation_positions(node)):
                places[path, start].append((name, i))
        for name, edits in find_edits((ROOT / path).read_text()).items():
            for i, edit in enumerate(edits):
                places[path, edit[:2]].append((name, i))
    places = list(places.items())
    generator.shuffle(places)
    mutants = []
    for (path, start), choices in places:
        if len(mutants) == sample:
            break
        kind = generator.choice(sorted({_kind(name) for name, _ in choices}))
        name, occurrence = generator.choice(
            [x for x in choices if _kind(x[0]) == kind])
        mutant = Mutant(path, start[0], name, occurrence)
        if mutate(mutant) is not None:
            mutants.append(mutant)
    return mutants


def mutate(mutant: Mutant) -> str | None:
    """Return the broken file, or None if the break cannot change a run."""
    source = (ROOT / mutant.path).read_text()
    broken = _break(source, mutant.operator, mutant.occurrence)
    if broken is None or _running_code(broken) in (
            None, _running_code(source)):
        return None
    for before, after in zip(source.splitlines(), broken.splitlines()):
        if before != after:
            mutant.before, mutant.after = before.strip(), after.strip()
            break
    return broken


def _kind(operator: str) -> str:
    return operator if operator in OPERATORS else 'core'


def _break(source: str, operator: str, occurrence: int) -> str | None:
    if operator in OPERATORS:
        return find_edits(source)[operator][occurrence].apply(source)
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    return mutate_code(source, plugins.get_operator(operator)(), occurrence)


def _modules(paths: list[str]) -> list[str]:
    modules = []
    for path in paths:
        path = (ROOT / path).resolve()
        files = sorted(path.rglob('*.py')) if path.is_dir() else [path]
        modules += [str(x.relative_to(ROOT)) for x in files]
    return modules


def _running_code(source: str) -> str | None:
    """Dump the syntax tree without annotations; None if it is invalid."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for name in 'annotation', 'returns':
            if getattr(node, name, None) is not None:
                setattr(node, name, ast.Constant(None))
    return ast.dump(tree)


# Tests

class Suite:
    """Tests of each file and line, from a coverage run."""

    def __init__(self, coverage: Path, durations: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(coverage))
        self._data.read()
        # Tests also run copies of the package, which count as well.
        self._files: dict[str, list[str]] = defaultdict(list)
        for name in self._data.measured_files():
            self._files[_in_package(name)].append(name)
        self._seconds: dict[str, float] = defaultdict(float)
        self._nodes: dict[str, str] = {}
        for case in ElementTree.parse(durations).iter('testcase'):
            # The name of a test class is the end of classname.
            function = case.get('name').split('[')[0]
            context = f'{case.get("classname")}.{function}'
            path = case.get('file')
            module = path.removesuffix('.py').replace('/', '.')
            inner = case.get('classname').removeprefix(module).strip('.')
            self._nodes[context] = '::'.join(
                x for x in (path, inner, function) if x)
            self._seconds[context] += float(case.get('time'))
        # Contexts have fewer parent folders than pytest's names.
        self._by_tail = {'.'.join(x.split('.')[-2:]): x for x in self._nodes}
        # In programs that a test starts, the context is the test's node.
        self._by_node = {node: x for x, node in self._nodes.items()}

    def of(self, mutant: Mutant) -> list[tuple[str, float]]:
        """Return the tests of a mutant and their seconds, in run order."""
        lines: dict[int, set[str]] = defaultdict(set)
        for name in self._files.get(_in_package(mutant.path), ()):
            for line, contexts in self._data.contexts_by_lineno(name).items():
                lines[line].update(contexts)
        if not lines:
            return []
        reach = self._known(lines[mutant.line])
        # The line may also run on import, in a process without a context, or
        # as a later line of a statement, so that tests of the file follow.
        in_file = self._known(x for tests in lines.values() for x in tests)
        # Tests of a constant reach no line.
        files = _importers(mutant.path)
        importers = {x for x, node in self._nodes.items()
                     if node.partition('::')[0] in files}
        name = f'test_{Path(mutant.path).stem}.py::'
        selected = sorted(
            in_file | importers,
            key=lambda x: (x not in reach, name not in self._nodes[x],
                           x not in importers, self._seconds[x]))
        return [(self._nodes[x], self._seconds[x]) for x in selected]

    def _known(self, contexts) -> set[str]:
        tests = set()
        for context in contexts:
            node = context.partition('[')[0].partition(' (')[0]
            tail = '.'.join(context.split('.')[-2:])
            if context in self._nodes:
                tests.add(context)
            elif '::' in node:
                tests.update(x for x in [self._by_node.get(node)] if x)
            elif tail in self._by_tail:
                tests.add(self._by_tail[tail])
        return tests


def _importers(path: str) -> set[str]:
    """Return the test files that import a module by its name."""
    module = path.removesuffix('.py').replace('/', '.')
    module = module.removesuffix('.__init__')
    package, _, name = module.rpartition('.')
    pattern = re.compile(
        rf'(from|import) {module}(?![\w.])|'
        rf'from {package} import (\([^)]*|.*)\b{name}\b')
    return {str(x.relative_to(ROOT)) for x in ROOT.glob('tests/**/*.py')
            if pattern.search(x.read_text())}


def _in_package(path: str) -> str:
    """Return a file's path below the package, in any checkout."""
    return Path(path).as_posix().rsplit('mmvidattn/', 1)[-1]


def batches(tests: list[tuple[str, float]], *seconds: float
            ) -> list[list[tuple[str, float]]]:
    """Split tests into batches by their duration.

    Args:
        tests: Tests and their seconds.
        seconds: For each batch, the limit of the total seconds of this batch
            and all batches before it.

    Returns:
        Batches that are not empty. The first has at least one test.
    """
    out, waiting, total = [], list(tests), 0.
    for limit in seconds:
        batch = []
        for test in waiting:
            if total + test[1] <= limit or not (out or batch):
                batch.append(test)
                total += test[1]
        waiting = [x for x in waiting if x not in batch]
        out.append(batch)
    return [x for x in out if x]


# Running

def _warm_up() -> None:
    """Import the packages that every child needs, except our own code."""
    for name in ('torch.export', 'numpy', 'cv2', 'mmcv', 'mmengine.runner',
                 'pytest', 'hypothesis', 'scipy.stats', 'pandas'):
        try:
            __import__(name)
        except ImportError:
            pass


def run_all(mutants: list[Mutant], suite: Suite, args):
    """Yield each mutant when its outcome is known."""
    waiting = list(reversed(mutants))
    with tempfile.TemporaryDirectory() as scratch:
        free = [_copy(Path(scratch) / str(i)) for i in range(args.jobs)]
        running: dict[int, _Run] = {}
        while waiting or running:
            while waiting and free:
                run = _Run(waiting.pop(), free.pop(), suite, args)
                running[run.start()] = run
            time.sleep(.05)
            for pid, run in list(running.items()):
                code = run.poll(pid)
                if code is None:
                    continue
                del running[pid]
                if code == 0 and run.batches:
                    running[run.start()] = run
                    continue
                run.end(code)
                free.append(run.folder)
                yield run.mutant


def control(mutants: list[Mutant]) -> None:
    """Mark mutants as survived if their test fails on the unbroken code."""
    names = sorted({x.noticed_by for x in mutants if x.noticed_by})
    with tempfile.TemporaryDirectory() as scratch:
        folder = _copy(Path(scratch) / 'unbroken')
        pid = os.fork()
        if pid == 0:
            _run_pytest(folder, names, stop=False)
        os.waitpid(pid, 0)
        failed = set(_failures(folder))
    for name in sorted(failed):
        print(f'fails by itself: {name}')
    for mutant in mutants:
        if mutant.noticed_by in failed:
            mutant.outcome = 'survived'


def _copy(folder: Path) -> Path:
    usual = shutil.ignore_patterns(
        '.git', '.venv', '__pycache__', 'work_dirs', '.mim')

    def ignored(path: str, names: list[str]) -> set[str]:
        # The videos in the top folder `data` are large.
        return usual(path, names) | ({'data'} if Path(path) == ROOT else set())

    shutil.copytree(ROOT, folder, symlinks=True, ignore=ignored)
    return folder


class _Run:
    """Mutant in a copy of the checkout, and the process that tests it."""

    def __init__(self, mutant: Mutant, folder: Path, suite: Suite,
                 args) -> None:
        self.mutant, self.folder = mutant, folder
        self.batches = batches(
            suite.of(mutant), args.quick_seconds, args.seconds)
        self._began = time.monotonic()
        (folder / mutant.path).write_text(mutate(mutant))

    def start(self) -> int:
        """Start the next batch of tests, and return the process id."""
        tests = self.batches.pop(0) if self.batches else []
        self.mutant.tests += len(tests)
        self._limit = time.monotonic() + 30 + 5 * sum(x[1] for x in tests)
        pid = os.fork()
        if pid == 0:
            _run_pytest(self.folder, [x[0] for x in tests])
        return pid

    def poll(self, pid: int) -> int | str | None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _kill(pid)
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() < self._limit:
            return None
        _kill(pid)
        os.waitpid(pid, 0)
        return 'timeout'

    def end(self, code: int | str) -> None:
        shutil.copy(ROOT / self.mutant.path, self.folder / self.mutant.path)
        self.mutant.seconds = time.monotonic() - self._began
        if code == 'timeout':
            self.mutant.outcome = 'timeout'
        else:
            self.mutant.outcome = 'noticed' if code else 'survived'
            self.mutant.noticed_by = next(iter(_failures(self.folder)), '')
        (self.folder / FAILURES).unlink(missing_ok=True)


class _Failures:
    """Pytest plugin that writes the failed tests to a file at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            with open(self._path, 'a') as file:
                file.write(report.nodeid + '\n')

    # Test files that cannot be imported.
    pytest_collectreport = pytest_runtest_logreport


def _failures(folder: Path) -> list[str]:
    path = folder / FAILURES
    return path.read_text().splitlines() if path.exists() else []


def _run_pytest(folder: Path, names: list[str], stop: bool = True) -> None:
    """Run tests in a forked process, and exit."""
    os.setsid()
    os.chdir(folder)
    gc.freeze()  # keep the garbage collector from copying shared pages
    devnull = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(devnull, descriptor)
    os.environ['PYTHONPATH'] = str(folder)
    sys.argv = ['pytest']
    code = 2
    try:
        import pytest
        code = 0 if not names else int(pytest.main(
            ['-q', *(['-x'] if stop else []), '-p', 'no:cacheprovider',
             f'--basetemp={folder}/.pytest_tmp', *names],
            plugins=[_Failures(folder / FAILURES)]))
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:  # all were skipped
            code = 0
    except BaseException:  # noqa: B036
        pass
    # Skip the clean-up, which may hang after a broken program.
    os._exit(code)


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('paths', nargs='+', help='files and folders to break')
    parser.add_argument('--coverage', type=Path, required=True,
                        help='data file of coverage.py, with contexts')
    parser.add_argument('--durations', type=Path, required=True,
                        help="pytest's --junitxml of the same run (xunit1)")
    parser.add_argument('--sample', type=count, default=200)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--jobs', type=count, default=os.cpu_count())
    parser.add_argument('--quick-seconds', type=float, default=10.)
    parser.add_argument('--seconds', type=float, default=120.)
    parser.add_argument('--goal', type=float, default=92.)
    parser.add_argument('--out', type=Path,
                        help='write the tested mutants to this JSON file')
    return parser.parse_args(argv)


if __name__ == '__main__':
    main()
