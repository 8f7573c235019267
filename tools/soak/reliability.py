# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write docs/reliability.md: what is injected, how often, what was lost.

    python tools/soak/reliability.py --run      # run all soaks, then write it
    python tools/soak/reliability.py --run stream_window sigkill
    python tools/soak/reliability.py --run --quick
    python tools/soak/reliability.py            # from the last results
    python tools/soak/reliability.py --check    # is it current?

Each row of the page is a program of this folder or a part of the tests. Its
result is a file of ``results``, which says what was run. ``--run`` ends with 1
if anything was lost; the page is then written all the same.
"""
import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mmvidattn.utils.processor import processor_name

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / 'tools/soak/results'
PAGE = ROOT / 'docs/reliability.md'
HEAD = '''\
# Reliability

What was done to mmvidattn on purpose, how often, and what was lost. One
command runs all of it and writes this page:
`python tools/soak/reliability.py --run`.

'''
TAIL = '''
A row that says `pytest` counts the faults of those tests, and nothing is lost
if all of them pass. `--quick` runs fewer of each.

Streams of up to a million steps, longer series of kills, and what the tests of
mmaction2, mmengine and mmcv say with and without `import mmvidattn` are in
[`tools/soak/README.md`](../tools/soak/README.md).

## What is refused, and what has to be asked for

- A training that was saved by another number of processes goes on with the
  same samples in each step and the same schedule, if a step has as many
  samples as before (`train_dataloader.batch_size` times the processes).
  Otherwise it is refused, and the error says which `batch_size` would do.
- `strategy = dict(type='FSDPStrategy')` is refused: mmengine calls it
  experimental ([mmengine#1213](https://github.com/open-mmlab/mmengine/pull/1213)),
  and saving its optimizer crashes with two gloo processes.
- With `TORCHRUN_ARGS=--max-restarts=3`, `dist_train.sh --resume` starts again
  from the last checkpoint when a process dies, if `PORT` is not set. With a
  static rendezvous torchrun may hang after a restart
  ([pytorch#135712](https://github.com/pytorch/pytorch/issues/135712)).
- Names in lists of videos may lead out of the folder of the videos (`../`,
  `/home/me/a.mp4`, links). For lists that others made, set
  `allow_outside=False` in the dataset: such a name is then an error that names
  its line. `GuardedVideoDataset`, `VideoSegmentDataset` and `FrameListDataset`
  have the option.
- A checkpoint that `tools/convert.py --config` wrote is refused by a model
  with other options, even if all shapes fit.
'''


class Outcome(NamedTuple):
    """What came of a row.

    Attributes:
        times: How often the fault was injected.
        failed: In how many of them something was lost.
        lost: The same in words.
    """
    times: int
    failed: int
    lost: str


def read_trials(out: Path) -> Outcome:
    """Read what kill_and_resume.py writes."""
    trials = _lines(out)
    failed = sum(bool(trial['differences']) for trial in trials)
    equal = f'{len(trials) - failed} of {len(trials)} ended bit-equal'
    return Outcome(len(trials), failed,
                   f'{failed} runs; {equal}' if failed else
                   f'nothing: {equal} to a run that was left alone')


def read_stream(out: Path) -> Outcome:
    """Read what stream.py writes."""
    checks = _lines(out)
    last, error = checks[-1], max(check['error'] for check in checks)
    growth = (last['resident'] - checks[0]['resident']) / 2**20
    return Outcome(
        last['bad_frames'], last['not_finite'],
        f'{last["not_finite"] or "no"} scores of {last["steps"]:,} were not '
        f'finite; error to float64 {error:.0e}; memory grew by '
        f'{max(growth, 0):.0f} MiB')


def read_tests(out: Path) -> Outcome:
    """Read a report of pytest; a test may say how often it injects."""
    times, failed = 0, []
    for case in ET.parse(out).getroot().iter('testcase'):
        if case.find('skipped') is not None:
            continue
        told = [int(p.get('value')) for p in case.iter('property')
                if p.get('name') == 'times']
        times += sum(told) or 1
        if case.find('failure') is not None or case.find('error') is not None:
            failed.append(case.get('name'))
    return Outcome(times, len(failed),
                   f'fails: {", ".join(failed)}' if failed else '')


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_service(out: Path) -> Outcome:
    """Read what service.py writes."""
    found, = _lines(out)
    wrong, process = found['wrong'], found['process']
    rows = found['sources']
    compared = sum(row['compared'] for row in rows)
    memory = process['memory_mib']
    return Outcome(
        sum(found['faults'].values()), len(wrong),
        f'{"; ".join(wrong[:3]) or "nothing"}: {compared:,} actions compared; '
        f'the longest life of a process, {process["seconds"] / 60:.0f} '
        f'minutes, with {memory[len(memory) // 2]:.0f} MiB in the middle and '
        f'{memory[-1]:.0f} at the end')


def read_flood(out: Path) -> Outcome:
    """Read what flood.py writes."""
    found, = _lines(out)
    wrong, usage = found['wrong'], found['usage']
    lost = '; '.join(wrong[:3])
    if not wrong:
        steps = min(row['flood'] / row['calm'] for row in found['steps'])
        lost = (f'nothing: {steps:.0%} of the steps came, and '
                f'{found["visits"]} of {found["visits"]} with the token got '
                f'in; at most {usage["handles_most"]:.0f} handles; memory '
                f'{usage["memory_middle"]:.0f} MiB in the middle and '
                f'{usage["memory_end"]:.0f} at the end')
    return Outcome(found['connections'], len(wrong), lost)


@dataclass
class Row:
    """A row of the page.

    Attributes:
        injected: What is done, in words.
        command: What does it; the file for its results is appended.
        read: Reads that file.
        quick: Options in place of the same ones in ``command``.
        lost: What was lost if nothing fails, where ``read`` cannot tell.
    """
    injected: str
    command: str
    read: Callable[[Path], Outcome]
    quick: str = ''
    lost: str = ''


def _kill(options: str, quick: str = '--trials 2') -> tuple:
    return (f'tools/soak/kill_and_resume.py {options} --out', read_trials,
            quick)


def _tests(what: str, quick: str = '') -> tuple:
    return f'-m pytest -q {what} --junitxml', read_tests, quick


ROWS = dict(
    sigkill=Row(
        'SIGKILL at a random moment of training, in turn in the forward pass, '
        'the backward pass, a save and validation; then `--resume`',
        *_kill('--trials 8', '--trials 4')),
    sigkill_two=Row(
        'the same, with two processes', *_kill('--trials 4 --processes 2')),
    sigterm=Row(
        'SIGTERM at such a moment, as clusters send it; then `--resume`',
        *_kill('--trials 4 --signal TERM')),
    dead_process=Row(
        'one of two processes dies: all end within a minute, or torchrun '
        'starts them again from the last checkpoint',
        *_tests('-m slow tests/tools/test_dist.py -k dies'),
        lost='at most the steps since the last checkpoint'),
    two_nodes=Row(
        'training on two nodes; going on with another number of processes',
        *_tests('-m slow tests/tools/test_dist.py -k "two_nodes or '
                'another_number"'),
        lost='nothing: samples, schedule and weights are those of one run, or '
        'it is refused in words'),
    disk=Row(
        'a disk that is full or refuses: to save, to point to what is saved, '
        'to remove the old',
        *_tests('tests/engine/hooks/test_safe_checkpoint_hook.py '
                'tests/tools/test_train.py -k "disk or failed or cannot or '
                'interrupted or kill or could_not_be_saved"'),
        lost='no checkpoint that was whole; the exit code and the last line '
        'say what could not be saved'),
    broken_videos=Row(
        'damaged, odd and made-up video files, one of each kind',
        *_tests('tests/tools/test_broken_videos.py -k each_kind'),
        lost='none: each is read right, or refused by its name'),
    malicious=Row(
        'checkpoints, features and annotations that would run code, unpack '
        'without end or reach behind their storage',
        *_tests('tests/utils/test_malicious_files.py -k "nothing_runs or '
                'mmengine_itself or greedy"'),
        lost='nothing ran; each is refused within a second'),
    service=Row(
        'a service of live detection with four sources: sources lost, changed '
        'and found, SIGKILL, jumps of the clock',
        'tools/soak/service.py --minutes 60 --out', read_service,
        '--minutes 3'),
    flood=Row(
        'connections of strangers to the page of such a service, 200 a '
        'second, 430 open: silent, half a request, without a token or with a '
        'wrong one, malformed; a client that does not read',
        'tools/soak/flood.py --minutes 5 --out', read_flood, '--minutes 1'),
    stream_window=Row(
        'NaN, infinite and 1e22 frames, silence, spikes and drift in a '
        'stream (box kernel)',
        'tools/soak/stream.py --kernel window --steps 10000 --out',
        read_stream),
    stream_smoothing=Row(
        'the same with a memory that never forgets (decay 1), silent from the '
        'middle on',
        'tools/soak/stream.py --kernel smoothing --decay 1 --silence 0.5 '
        '--steps 10000 --out', read_stream),
)


def command_of(row: Row, quick: bool = False) -> list[str]:
    """The command of a row, without the file for its results."""
    words = shlex.split(row.command)
    if quick and row.quick:
        option, value = row.quick.split()
        words[words.index(option) + 1] = value
    return words


def _said(words: list[str]) -> str:
    """A command without the option for its results, which is last."""
    return 'python ' + shlex.join(words[:-1])


def run(row: Row, quick: bool = False) -> dict[str, Any]:
    """Run what a row says; returns what goes into its file of results.

    Raises:
        RuntimeError: If it wrote no results, or injected nothing.
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
        command=_said(words), times=outcome.times,
        failed=failed,
        lost=outcome.lost or (row.lost if not failed else 'see its output'),
        seconds=round(time.monotonic() - began), date=str(date.today()),
        machine=_machine())


def _machine() -> str:
    """This machine and its versions, in words."""
    return (f'{os.cpu_count()} cores of {processor_name()}, Python '
            f'{platform.python_version()}, torch {torch.__version__}')


def page(results: Path = RESULTS) -> str:
    """The page, of all results that are there; other rows say so.

    Raises:
        ValueError: If a row has the result of another command.
    """
    lines = ['| What is injected | How often | What was lost | Seconds | By |',
             '|---|---|---|---|---|']
    measured = set()
    for name, row in ROWS.items():
        path = results / f'{name}.json'
        found = json.loads(path.read_text()) if path.is_file() else {}
        if not found:
            lines.append(f'| {row.injected} | not run here yet | | | '
                         f'`{_said(command_of(row))}` |')
            continue
        if found['command'] not in [
                _said(command_of(row, quick)) for quick in (False, True)]:
            raise ValueError(
                f'{path} is the result of {found["command"]}; run it again: '
                f'python tools/soak/reliability.py --run {name}')
        said = '**LOST** ' * bool(found['failed']) + found['lost']
        lines.append(f'| {row.injected} | {found["times"]} | {said} | '
                     f'{found["seconds"]} | `{found["command"]}` |')
        measured.add(f'{found["date"]} on {found["machine"]}')
    lines += ['', f'Measured {"; ".join(sorted(measured))}.']
    return HEAD + '\n'.join(lines) + '\n' + TAIL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--run', nargs='*', metavar='ROW',
        help=f'run these first, or all: {", ".join(ROWS)}')
    parser.add_argument('--quick', action='store_true', help='fewer of each')
    parser.add_argument(
        '--check', action='store_true',
        help='only tell if the page is what the results make')
    parser.add_argument('--results', type=Path, default=RESULTS)
    parser.add_argument('--page', type=Path, default=PAGE)
    args = parser.parse_args()
    unknown = {*(args.run or ())} - {*ROWS}
    if unknown:
        parser.error(f'no row {", ".join(sorted(unknown))}; there are '
                     + ', '.join(ROWS))
    lost = []
    args.results.mkdir(parents=True, exist_ok=True)
    for name in ([] if args.run is None else args.run or ROWS):
        result = run(ROWS[name], args.quick)
        (args.results / f'{name}.json').write_text(
            json.dumps(result, indent=1) + '\n')
        print(f'{name}: {result["times"]} times, lost: {result["lost"]} '
              f'({result["seconds"]} s)', flush=True)
        lost += [name] * bool(result['failed'])
    text = page(args.results)
    if args.check:
        if not args.page.is_file() or args.page.read_text() != text:
            raise SystemExit(f'{args.page} is not current: run python '
                             'tools/soak/reliability.py')
    else:
        args.page.parent.mkdir(parents=True, exist_ok=True)
        args.page.write_text(text)
    if lost:
        raise SystemExit(f'something was lost: {", ".join(lost)}')


if __name__ == '__main__':
    main()
