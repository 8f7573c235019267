# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Run fault-injection tests, and write docs/reliability.md.

    python tools/soak/reliability.py --run      # run all, then write the page
    python tools/soak/reliability.py --run stream_window sigkill
    python tools/soak/reliability.py --run --quick
    python tools/soak/reliability.py            # use the last results
    python tools/soak/reliability.py --check    # is the page current?

Each row of the page is a program of this folder or a set of tests. A file in
``results`` has its result and its command. ``--run`` writes the page in any
case, and exits with 1 if anything was lost.
"""
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import (
    ROOT,
    machine,
    parser_of,
    replace_rows,
    table,
    write_or_check,
)

RESULTS = ROOT / 'tools/soak/results'
PAGE = ROOT / 'docs/reliability.md'
COLUMNS = ('Fault', 'Count', 'Loss', 'Seconds', 'Command')


class Outcome(NamedTuple):
    """Result of a fault-injection test, which fills a row of the page.

    Attributes:
        times: Number of injected faults.
        failed: Number of faults that lost something.
        lost: Text of the loss for the page.
    """
    times: int
    failed: int
    lost: str


def read_trials(out: Path) -> Outcome:
    """Read the results of kill_and_resume.py."""
    trials = _lines(out)
    failed = sum(bool(trial['differences']) for trial in trials)
    equal = f'{len(trials) - failed} of {len(trials)} ended bit-equal'
    return Outcome(len(trials), failed,
                   f'{failed} runs; {equal}' if failed else
                   f'nothing: {equal} to an uninterrupted run')


def read_stream(out: Path) -> Outcome:
    """Read the results of stream.py."""
    checks = _lines(out)
    last, error = checks[-1], max(check['error'] for check in checks)
    growth = (last['resident'] - checks[0]['resident']) / 2**20
    return Outcome(
        last['bad_frames'], last['not_finite'],
        f'{last["not_finite"]} of {last["steps"]:,} scores were not finite; '
        f'error relative to float64 {error:.0e}; memory grew by '
        f'{max(growth, 0):.0f} MiB')


def read_tests(out: Path) -> Outcome:
    """Read a report of pytest.

    A test may record a property `times`, its number of injected faults.
    """
    times, failed = 0, []
    for case in ET.parse(out).getroot().iter('testcase'):
        if case.find('skipped') is not None:
            continue
        recorded = [int(p.get('value')) for p in case.iter('property')
                    if p.get('name') == 'times']
        times += sum(recorded) or 1
        if case.find('failure') is not None or case.find('error') is not None:
            failed.append(case.get('name'))
    return Outcome(times, len(failed),
                   f'fails: {", ".join(failed)}' if failed else '')


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_service(out: Path) -> Outcome:
    """Read the results of service.py."""
    result, = _lines(out)
    wrong, process = result['wrong'], result['process']
    rows = result['sources']
    compared = sum(row['compared'] for row in rows)
    memory = process['memory_mib']
    return Outcome(
        sum(result['faults'].values()), len(wrong),
        f'{"; ".join(wrong[:3]) or "nothing"}: {compared:,} actions compared; '
        f'the longest process ran {process["seconds"] / 60:.0f} minutes, with '
        f'{memory[len(memory) // 2]:.0f} MiB in the middle and '
        f'{memory[-1]:.0f} at the end')


def read_flood(out: Path) -> Outcome:
    """Read the results of flood.py."""
    result, = _lines(out)
    wrong, usage = result['wrong'], result['usage']
    lost = '; '.join(wrong[:3])
    if not wrong:
        steps = min(row['flood'] / row['calm'] for row in result['steps'])
        lost = (f'nothing: {steps:.0%} of the steps arrived, and '
                f'{result["visits"]} of {result["visits"]} clients with the '
                f'token were admitted; at most {usage["handles_most"]:.0f} '
                f'handles; memory {usage["memory_middle"]:.0f} MiB in the '
                f'middle and {usage["memory_end"]:.0f} at the end')
    return Outcome(result['connections'], len(wrong), lost)


# The reader of each program's results; `python -m` is pytest.
READERS = {
    'tools/soak/kill_and_resume.py': read_trials,
    'tools/soak/stream.py': read_stream,
    'tools/soak/service.py': read_service,
    'tools/soak/flood.py': read_flood,
    '-m': read_tests,
}


class Row(NamedTuple):
    """Row of the page, described in reliability.yml."""
    injected: str
    command: str
    quick: str = ''
    lost: str = ''

    def read(self, out: Path) -> Outcome:
        """Read the results of the command."""
        return READERS[self.command.split()[0]](out)


ROWS = {name: Row(**row) for name, row in yaml.safe_load(
    Path(__file__).with_suffix('.yml').read_text('utf-8')).items()}


def command_of(row: Row, quick: bool = False) -> list[str]:
    """Return the command of a row, without the file for its results."""
    words = shlex.split(row.command)
    if quick and row.quick:
        option, value = row.quick.split()
        words[words.index(option) + 1] = value
    return words


def _shown(words: list[str]) -> str:
    """Return a command without its last word, the option for the results."""
    return 'python ' + shlex.join(words[:-1])


def run(row: Row, quick: bool = False) -> dict[str, Any]:
    """Run the command of a row, and return its result.

    Raises:
        RuntimeError: If the command wrote no results, or injected nothing.
    """
    words, began = command_of(row, quick), time.monotonic()
    with tempfile.TemporaryDirectory(prefix='reliability_') as folder:
        out = Path(folder, 'out')
        done = subprocess.run(
            [sys.executable, *words, out], cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not out.exists():
            raise RuntimeError(
                f'{shlex.join(words)} wrote no results:\n{done.stdout[-3000:]}'
            )
        outcome = row.read(out)
    if not outcome.times:
        raise RuntimeError(f'{shlex.join(words)} injected nothing:\n'
                           f'{done.stdout[-3000:]}')
    failed = outcome.failed or int(done.returncode != 0)
    return dict(
        command=_shown(words), times=outcome.times, failed=failed,
        lost=outcome.lost or (row.lost if not failed else 'see its output'),
        seconds=round(time.monotonic() - began), date=str(date.today()),
        machine=machine())


def page(results: Path = RESULTS, text: str | None = None) -> str:
    """Return the page with the rows of all results.

    Args:
        results: Folder of the results. Rows without a result are marked.
        text: Old page. Defaults to the page in docs.

    Raises:
        ValueError: If the result of a row has another command.
    """
    rows, measured = [], set()
    for name, row in ROWS.items():
        path = results / f'{name}.json'
        if not path.is_file():
            rows.append([row.injected, 'not run here yet', '', '',
                         f'`{_shown(command_of(row))}`'])
            continue
        result = json.loads(path.read_text())
        if result['command'] not in [
                _shown(command_of(row, quick)) for quick in (False, True)]:
            raise ValueError(
                f'{path} is the result of {result["command"]}; run '
                f'python tools/soak/reliability.py --run {name} again')
        lost = '**LOST** ' * bool(result['failed']) + result['lost']
        rows.append([row.injected, str(result['times']), lost,
                     str(result['seconds']), f'`{result["command"]}`'])
        measured.add(f'{result["date"]} on {result["machine"]}')
    names = [row.injected for row in ROWS.values()]
    text = replace_rows(
        PAGE.read_text() if text is None else text, COLUMNS,
        table(COLUMNS, rows)[2:],
        key=lambda line: names.index(line[2:].partition(' | ')[0]))
    return re.sub(r'(?m)^Measured .*$',
                  f'Measured {"; ".join(sorted(measured))}.', text)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument(
        '--run', nargs='*', metavar='ROW',
        help=f'rows to run first (default: all of {", ".join(ROWS)})')
    parser.add_argument('--quick', action='store_true',
                        help='run fewer trials of each row')
    parser.add_argument(
        '--check', action='store_true',
        help='write nothing; exit with 1 if the page is stale')
    parser.add_argument('--results', type=Path, default=RESULTS)
    parser.add_argument('--page', type=Path, default=PAGE)
    args = parser.parse_args()
    unknown = {*(args.run or ())} - {*ROWS}
    if unknown:
        parser.error(f'--run must be of {", ".join(ROWS)}, got '
                     + ', '.join(sorted(unknown)))
    lost = []
    args.results.mkdir(parents=True, exist_ok=True)
    for name in ([] if args.run is None else args.run or ROWS):
        result = run(ROWS[name], args.quick)
        (args.results / f'{name}.json').write_text(
            json.dumps(result, indent=1) + '\n')
        print(f'{name}: {result["times"]} times, lost: {result["lost"]} '
              f'({result["seconds"]} s)', flush=True)
        lost += [name] * bool(result['failed'])
    write_or_check(args.page, page(args.results), args.check,
                   'python tools/soak/reliability.py')
    if lost:
        raise SystemExit(f'something was lost in {", ".join(lost)}')


if __name__ == '__main__':
    main()
