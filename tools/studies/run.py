# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Train the rows of a study, and test the claims of its paper.

    python tools/studies/run.py linear_ff --out work_dirs/linear_ff --jobs 2

A study is a file in ``papers``. First, each row's learning rate is chosen
among the rates of the study, with one run per rate. Then the rows are trained
with further seeds, until the rule of ``verdicts.py`` has decided each claim or
no seeds are left. Rows that no undecided claim needs are not trained further.
``--out`` receives ``report.md``, ``report.json`` and ``rows.png``.

Finished runs are kept, and the same command resumes an interrupted study.
"""
import argparse
import multiprocessing
import os
import re
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

# First, because it applies the workarounds to the packages below.
import mmvidattn  # noqa: F401, I001  isort: skip

import torch
from mmengine.logging import MMLogger

from mmvidattn.apis.models import load_config
from mmvidattn.apis.runner import one_line_errors
from mmvidattn.utils.paired_test import LOOKS

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import Results, add_counts, count, parser_of
from tools.studies.report import make_report, write_report
from tools.studies.study import Study, Training, load, names
from tools.studies.verdicts import Scores, verdict_of

# Seed of the runs that choose the rates; reported seeds are smaller.
TUNING_SEED = 10000


class Run(NamedTuple):
    """Training of a row; with a rate, it serves to choose among rates."""
    row: str
    seed: int
    rate: float | None = None

    def __str__(self) -> str:
        if self.rate is None:
            return f'{self.row}, seed {self.seed}'
        return f'{self.row}, rate {self.rate:g}'

    @property
    def name(self) -> str:
        """Return the name of its result."""
        name = re.sub(r'\W+', '_', self.row)
        suffix = (f'seed{self.seed}' if self.rate is None
                  else f'rate{self.rate:g}')
        return f'{name}_{suffix}'


class Settings(NamedTuple):
    """Settings of all runs of a study, in addition to its file."""
    study: str
    out: Path
    steps: int
    sizes: dict[str, int]


def train(settings: Settings, run: Run, rate: float) -> dict:
    """Train and test a row with one thread.

    Returns:
        The metrics of the task, the learning ``rate``, and the ``seconds`` of
        processor time.
    """
    torch.set_num_threads(1)
    MMLogger.get_instance('mmengine').setLevel('WARNING')
    study = load(settings.study)
    task = import_module(f'tools.studies.tasks.{study.task}')
    row = study.rows[run.row]
    reference = None
    if run.row != study.reference and row.config is None and row.shared_start:
        reference = load_config(study.config, study.options(study.reference))
    # Checkpoints in configs are relative to the data.
    os.chdir(settings.out / 'data')
    began = time.process_time()
    figures = task.train(Training(
        load_config(study.config_of(run.row), study.options(run.row)),
        reference, settings.out / 'data', run.seed, rate, settings.steps,
        study.batch_size, row.view))
    return dict(figures, rate=rate, seconds=time.process_time() - began)


def finished(results: Results, runs: Iterable[Run]) -> dict[Run, dict]:
    """Return the results of the runs that have finished."""
    found = {run: results.get(run.name) for run in runs}
    return {run: result for run, result in found.items() if result}


class Trainer:
    """Train runs in parallel, except finished ones.

    Args:
        settings: Settings of the study.
        results: Results of the runs.
        jobs: Number of parallel runs.
    """

    def __init__(self, settings: Settings, results: Results,
                 jobs: int) -> None:
        self.settings, self.results = settings, results
        self.failed: list[Run] = []
        self._pool = ProcessPoolExecutor(
            jobs, multiprocessing.get_context('spawn'))

    def __enter__(self) -> 'Trainer':
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()

    def __call__(self, runs: Sequence[Run],
                 rates: dict[str, float]) -> dict[Run, dict]:
        """Train, and return the results of runs that did not fail."""
        found = finished(self.results, runs)
        waiting = [run for run in runs
                   if run not in found and run not in self.failed]
        futures = {
            self._pool.submit(train, self.settings, run,
                              run.rate or rates[run.row]): run
            for run in waiting
        }
        for number, future in enumerate(as_completed(futures), start=1):
            run = futures[future]
            try:
                result = future.result()
            except Exception:
                self.failed.append(run)
                print(f'{run}: failed\n{traceback.format_exc()}',
                      file=sys.stderr)
                continue
            found[run] = self.results.put(run.name, result)
            print(f'{number}/{len(waiting)} {run}: {result["score"]:.1f} in '
                  f'{result["seconds"]:.0f} s', file=sys.stderr, flush=True)
        return found


def choose_rates(study: Study, rows: Sequence[str],
                 trainer: Trainer) -> dict[str, float]:
    """Return each row's rate with the best score on the validation split.

    No runs are needed if the study has one rate.
    """
    if len(study.rates) == 1:
        return dict.fromkeys(rows, study.rates[0])
    tried = trainer([Run(row, TUNING_SEED, rate) for row in rows
                     for rate in study.rates], {})
    rates = {}
    for row in rows:
        scores = {run.rate: result['val'] for run, result in tried.items()
                  if run.row == row}
        if scores:
            rates[row] = max(scores, key=scores.get)
    return rates


def open_rows(study: Study, scores: Scores) -> list[str]:
    """Return rows of undecided claims, and rows without seeds."""
    wanted = {row for row, found in scores.items() if not found}
    for claim in study.claims:
        if {claim.better, claim.worse} <= {*scores}:
            verdict = verdict_of(claim, scores)
            if verdict is None or verdict.word == 'undecided':
                wanted |= {claim.better, claim.worse}
    return [row for row in scores if row in wanted]


def run_study(study: Study, trainer: Trainer, rows: Sequence[str],
              seeds: range) -> None:
    """Train until all claims are decided, or no seeds are left."""
    rates = choose_rates(study, rows, trainer)
    scores: Scores = {row: {} for row in rates}
    for look in LOOKS:
        # Seed by seed, so that an interrupted study can compare all rows.
        runs = [Run(row, seed) for seed in seeds[:look]
                for row in open_rows(study, scores)]
        for run, result in trainer(runs, rates).items():
            scores[run.row][run.seed] = result


def describe(settings: Settings, study: Study, first_seed: int) -> dict:
    """Return everything that results depend on besides row, seed and rate."""
    return dict(
        study=settings.study, steps=settings.steps, sizes=settings.sizes,
        first_seed=first_seed, batch_size=study.batch_size,
        rates=[*study.rates], torch=torch.__version__,
        models={row: [study.config_of(row), study.options(row)]
                for row in study.rows})


def parse_args() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('study', choices=names())
    parser.add_argument('--out', type=Path, required=True,
                        help='folder of the study: data, runs, report')
    parser.add_argument('--rows', nargs='+', metavar='ROW',
                        help='rows to train (default: all)')
    parser.add_argument('--first-seed', type=int, default=0,
                        help='first reported seed (default: 0)')
    add_counts(parser, jobs=(1, 'parallel runs, each with one thread'),
               seeds=(LOOKS[-1], 'largest number of seeds'))
    parser.add_argument('--steps', type=count,
                        help="updates per run (default: the study's)")
    parser.add_argument('--share', type=float, default=1.,
                        help='share of the data, to try a study in seconds '
                        '(default: 1)')
    parser.add_argument('--report-only', action='store_true',
                        help='train nothing, and report the finished runs')
    return parser.parse_args()


def check_args(args: argparse.Namespace, study: Study) -> None:
    if not 0 <= args.first_seed <= TUNING_SEED - args.seeds:
        raise ValueError(
            f'--first-seed must be from 0 to {TUNING_SEED - args.seeds}, got '
            f'{args.first_seed}')
    if not 0 < args.share <= 1:
        raise ValueError(f'--share must be in (0, 1], got {args.share}')
    unknown = {*(args.rows or [])} - {*study.rows}
    if unknown:
        raise ValueError(f'--rows must be of {", ".join(study.rows)}, got '
                         f'{", ".join(sorted(unknown))}')


def main() -> None:
    args = parse_args()
    study = load(args.study)
    task = import_module(f'tools.studies.tasks.{study.task}')
    sizes = {split: max(8, round(args.share * count))
             for split, count in task.SIZES.items()}
    settings = Settings(args.study, args.out.resolve(),
                        args.steps or study.steps, sizes)
    # Exit normally, so that the training processes are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with one_line_errors():
        check_args(args, study)
        results = Results(
            settings.out, describe(settings, study, args.first_seed))
        limits = task.prepare(settings.out / 'data', sizes)
    rows = [row for row in study.rows if row in (args.rows or study.rows)]
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    failed: list[Run] = []
    if not args.report_only:
        with Trainer(settings, results, args.jobs) as trainer:
            run_study(study, trainer, rows, seeds)
            failed = trainer.failed
    scores: Scores = {row: {} for row in rows}
    for run, result in finished(results, (
            Run(row, seed) for row in rows for seed in seeds)).items():
        scores[run.row][run.seed] = result
    if args.first_seed:
        # The notes are about the seeds from 0 on.
        study = replace(study, notes=(),
                        title=f'{study.title}, seeds from {args.first_seed}')
    report = make_report(study, task.METRICS, limits, scores,
                         getattr(task, 'DISTANCES', None))
    report['command'] = shlex.join(
        ['python', 'tools/studies/run.py', *sys.argv[1:]])
    print(write_report(settings.out, study, report), end='')
    if failed:
        raise SystemExit(f'run.py: error: {len(failed)} runs failed: '
                         f'{"; ".join(map(str, failed))}')


if __name__ == '__main__':
    main()
