# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare models on your own videos, over several seeds.

    mmvidattn compare FOLDER linear_ff_tiny_motion my_config.py --out OUT
    mmvidattn compare FOLDER vivit.py=vit.pth xvit.py=vit.pth --out OUT -- \\
        --epochs 20 --lora 8

Each config is trained with each seed by `mmvidattn finetune`, with the options
after `--`. All configs start from random weights, or each one from the weights
after its `=`: a file, `default` (the weights in the package) or `none`. All
configs use the same split for the same seed. The first config is the baseline.
The report contains the mean and the spread of the accuracies. It also has a
verdict on each difference from the baseline, by a paired test after 4, 8 and
12 seeds; at most 5 % of the comparisons get a wrong verdict. A config is not
trained further after its verdict. Finished runs are kept: the same command
resumes, also with a larger `--seeds`.
"""
import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..utils.exits import one_line_errors, one_line_stop
from ..utils.printable import count, describe_error, echo
from . import finetune, make_parser
from ._options import at_least

if TYPE_CHECKING:
    from ..utils.paired_test import Verdict

# Points above chance that show that a model has learned.
NEAR_CHANCE = 10.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('source', type=Path, metavar='FOLDER',
        help='videos, as for `mmvidattn finetune`')
    add('models', nargs='+', metavar='CONFIG[=WEIGHTS]',
        help='config file or name of a model; with the weights that it starts '
        'from (a file, default or none), if every config has them')
    add('--seeds', type=at_least(1), default=4, metavar='N',
        help='largest number of seeds; fewer than 4 give no verdict, and more '
        'than 12 are not used (default: 4)')
    add('--jobs', type=at_least(1), default=1, metavar='N',
        help='parallel runs (default: 1)')
    add('--out', type=Path, required=True, metavar='FOLDER',
        help='folder for report.md, report.json, scores.png and the runs')


class Model(NamedTuple):
    """Config to compare."""
    # Name in the report and of the folders: config and start weights.
    name: str
    # Options of `mmvidattn finetune` for this config.
    options: list[str]


def parse_models(texts: Sequence[str]) -> list[Model]:
    """Parse and check CONFIG or CONFIG=WEIGHTS of each candidate."""
    from ..apis.config import find_config, load_config
    from ..apis.models import find_default, get_model

    given = ['=' in text for text in texts]
    if any(given) and not all(given):
        raise ValueError(
            'all configs must start alike, but only some have start weights: '
            'give each one CONFIG=FILE, CONFIG=default (the weights in the '
            'package) or CONFIG=none')
    models = []
    for text in texts:
        config, _, weights = text.partition('=')
        path, weights = find_config(config), weights or 'none'
        if 'model' not in load_config(path):
            raise ValueError(f'{path} is not a config: it lacks `model`')
        try:
            get_model(path)
        except (ValueError, TypeError, LookupError) as error:
            raise ValueError(f'{path}: {describe_error(error)}') from error
        if weights == 'default':
            find_default(config)
        elif weights != 'none':
            if not Path(weights).is_file():
                raise ValueError(
                    f"the weights of {config} must be a file, 'default' or "
                    f"'none', got {weights}")
            weights = str(Path(weights).resolve())
        name = Path(config).stem + (
            f' {Path(weights).stem}' * (weights != 'none'))
        models.append(Model(name, [
            '--model', str(path.resolve()), '--weights', weights]))
    return models


class Runs:
    """Runs with equal videos and options; finished ones are not repeated."""

    def __init__(self, source: Path, options: Sequence[str],
                 out: Path) -> None:
        self.metrics: dict[str, dict[int, dict[str, Any]]] = {}
        self._source = source
        self._options = options
        self.out = out
        self._running: list[subprocess.Popen] = []
        self._stopped = False

    def __call__(self, model: Model, seed: int) -> None:
        """Train and test a model with a seed; a failure is a ValueError."""
        name = re.sub(r'\W+', '_', model.name)
        folder = self.out / f'{name}_seed{seed}'
        file, log = folder / 'metrics.json', self.out / f'{folder.name}.log'
        if not file.is_file():
            with log.open('w', buffering=1) as output:
                child = subprocess.Popen(
                    [sys.executable, '-m', 'mmvidattn', 'finetune',
                     self._source, *model.options, *self._options, '--seed',
                     str(seed), '--work-dir', folder],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL, text=True)
                self._running.append(child)
                if self._stopped:
                    child.terminate()
                for line in child.stdout:
                    output.write(line)
                    if line.startswith('epoch '):
                        echo(f'{model.name}, seed {seed}: {line.strip()}')
                child.wait()
            if child.returncode or not file.is_file():
                last = log.read_text('utf-8').rstrip().rpartition('\n')[2]
                raise ValueError(f'{model.name}, seed {seed} failed: {last} '
                                 f'(see {log})')
        metrics = json.loads(file.read_text())
        self.metrics.setdefault(model.name, {})[seed] = metrics
        echo(f'{model.name}, seed {seed}: '
             f'{100 * metrics["top1"]:.1f} % of '
             + count(metrics['videos'], 'video'))

    def stop(self) -> None:
        """Let unfinished runs save a checkpoint and end."""
        self._stopped = True
        for child in self._running:
            child.terminate()

    def scores(self, model: Model) -> dict[int, float]:
        """Return the accuracies in percent, by seed."""
        return {seed: 100 * metrics['top1'] for seed, metrics in sorted(
            self.metrics.get(model.name, {}).items())}

    def verdict(self, model: Model, baseline: Model) -> 'Verdict | None':
        """Return the verdict on a model, compared with the baseline."""
        from ..utils.paired_test import decide_early

        return decide_early(self.scores(model), self.scores(baseline))


def train(models: Sequence[Model], runs: Runs, seeds: int, jobs: int) -> None:
    """Train until all comparisons are decided, or no seeds are left."""
    from ..utils.paired_test import LOOKS

    baseline, *candidates = models
    done = 0
    for look in LOOKS:
        open_models = [model for model in candidates if done < LOOKS[0]
                       or not runs.verdict(model, baseline).difference]
        if done >= seeds or candidates and not open_models:
            return
        pending = [(model, seed) for seed in range(done, min(look, seeds))
                   for model in (baseline, *open_models)]
        echo(f'{count(pending, "run")}, {jobs} at a time, logs in {runs.out}')
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(runs, *run) for run in pending]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                runs.stop()
                raise
        done = look


def make_report(models: Sequence[Model], runs: Runs) -> dict[str, Any]:
    baseline, rows = models[0], []
    for model in models:
        verdict = None if model is baseline else runs.verdict(model, baseline)
        rows.append(dict(
            model=model.name, options=model.options,
            scores=runs.scores(model), verdict=verdict and asdict(verdict)))
    every = [metrics for by_seed in runs.metrics.values()
             for metrics in by_seed.values()]
    return dict(
        rows=rows, videos=min(metrics['videos'] for metrics in every),
        chance=100 * statistics.fmean(one['chance'] for one in every))


def format_report(report: dict[str, Any]) -> str:
    """Format the report as Markdown."""
    from ..utils.paired_test import LEVEL, LOOKS, MARGIN
    from .score import table

    means = [statistics.fmean(row['scores'].values())
             for row in report['rows']]
    near_chance = max(means) < report['chance'] + NEAR_CHANCE
    words = {'above': 'better', 'below': 'worse', '': 'undecided',
             'none': 'near chance' if near_chance else
             f'no difference (below {MARGIN:g} point)'}
    rows = [('model', 'seeds', 'mean', 'deviation', 'difference', 'verdict')]
    for row in report['rows']:
        scores, verdict = row['scores'].values(), row['verdict']
        deviation = (f'{statistics.stdev(scores):.1f}' if len(scores) > 1
                     else '-')
        cells = '-', 'baseline'
        if verdict:
            half = f' ± {verdict["half"]:.1f}' * (verdict['seeds'] > 1)
            cells = (f'{verdict["mean"]:+.1f}{half}',
                     words[verdict['difference']])
        rows.append((row['model'], str(len(scores)),
                     f'{statistics.fmean(scores):.1f}', deviation, *cells))
    looks = ', '.join(map(str, LOOKS[:-1])) + f' and {LOOKS[-1]}'
    text = table(rows) + (
        f'\nTop-1 accuracy on {report["videos"]} test videos in percent '
        f'(chance: {report["chance"]:.1f}).\nDifferences from the first model '
        f'are between runs with the same seed, and thus the same\nsplit, '
        f'with their {LEVEL:.1%} interval. Tests after {looks} seeds: a '
        'verdict is\nwrong for at most 5 % of the comparisons.\n')
    if near_chance:
        text += ('All models are near chance: train longer (--epochs or '
                 '--minutes after --) before you compare.\n')
    elif any(row['verdict'] and not row['verdict']['difference']
             for row in report['rows']):
        text += ('Undecided: repeat the command with more --seeds (at most '
                 f'{LOOKS[-1]}), or add test videos.\n')
    return text


def check(args: argparse.Namespace, models: Sequence[Model],
          options: Sequence[str]) -> None:
    """Check the options, and that the folder has no unrelated runs."""
    from ..utils.files import write_atomically

    names = [model.name for model in models]
    if len({*names}) < len(names):
        raise ValueError('each config must have a different file name, got '
                         + ', '.join(names))
    reserved = {'--model', '--weights', '--seed', '--work-dir', '--dry-run'}
    for option in options:
        if option.partition('=')[0] in reserved:
            raise ValueError(f'{option} is not allowed after --' + (
                ': a comparison trains' if option == '--dry-run' else
                ', because compare sets it for each run; start weights are '
                'CONFIG=WEIGHTS'))
    for model in models:
        finetune.make_options(make_parser('finetune').parse_intermixed_args(
            [str(args.source), *model.options, *options]))
    settings = dict(source=str(args.source.resolve()), options=[*options])
    given = {model.name: model.options for model in models}
    file = args.out / 'options.json'
    if file.is_file():
        found = json.loads(file.read_text())
        known = found.pop('models')
        other = [name for name in settings if found[name] != settings[name]]
        other += [name for name in known.keys() & given
                  if known[name] != given[name]]
        if other:
            raise ValueError(f'{args.out} has runs with another '
                             f'{" and ".join(other)} (see {file}); choose '
                             'another --out')
        given = known | given
    args.out.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(dict(settings, models=given), indent=1))


def run(args: argparse.Namespace) -> None:
    from ..utils.files import write_atomically
    from ..visualization.score_curves import draw_score_rows

    # Without this, the processes of the runs would outlive this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options: list[str] = []
    if '--' in sys.argv:
        # argparse has added the words after `--` to the models.
        options = sys.argv[sys.argv.index('--') + 1:]
        args.models = args.models[:len(args.models) - len(options)]
    with one_line_errors(), one_line_stop('; the same command continues'):
        models = parse_models(args.models)
        check(args, models, options)
        runs = Runs(args.source, options, args.out)
        train(models, runs, args.seeds, args.jobs)
    report = make_report(models, runs)
    text = format_report(report)
    write_atomically(args.out / 'report.json', json.dumps(report, indent=1))
    write_atomically(args.out / 'report.md', text)
    draw_score_rows(
        {row['model']: [*row['scores'].values()] for row in report['rows']},
        dict(chance=report['chance']), 'top-1 accuracy, percent').savefig(
            args.out / 'scores.png', dpi=100)
    echo(f'\n{text}', end='')
