# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure how fast linear attention learns from a softmax teacher.

    python tools/studies/distill_motion.py --out work_dirs/distill_study

For each seed, the program trains a ViViT with softmax attention on the motion
set. Then it trains the same network with linear attention and feature fixation
by three methods, with the same number of steps: distilled, from the teacher's
weights only, and from random weights. It writes ``report.md`` and
``curves.png`` with top-1 after each of ``--steps``. The same command resumes
an interrupted study.
"""
import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

# First, because it applies the workarounds to the packages below.
import mmvidattn  # noqa: F401, I001  isort: skip

import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmvidattn.apis.models import load_config
from mmvidattn.apis.runner import build_runner, one_line_errors
from mmvidattn.utils.files import write_atomically

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import Results, add_counts, parser_of, table
from tools.studies.motion_frames import BATCH, frame_loaders, make_data

TEACHER = 'teacher'
# Config of each method, and changes to it.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    'distilled': ('vivit_tiny_linear_distill_motion', {}),
    'from the teacher': ('vivit_tiny_linear_distill_motion',
                         {'model.distill_epochs': 0}),
    'from nothing': ('vivit_tiny_linear_motion', {}),
}
SIDE, NUM_FRAMES = 64, 8


class ScoreAtSteps(Hook):
    """Validate before the training and after some of its steps.

    Args:
        steps: Numbers of steps; 0 is before the first step.

    Attributes:
        top1: Top-1 in percent, by step.
    """
    priority = 'LOWEST'

    def __init__(self, steps: Sequence[int]) -> None:
        self.steps = {*steps}
        self.top1: dict[int, float] = {}

    def before_train(self, runner: Runner) -> None:
        self._score(runner, 0)

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: Any = None,
                         outputs: dict | None = None) -> None:
        self._score(runner, runner.iter + 1)

    def _score(self, runner: Runner, step: int) -> None:
        if step in self.steps:
            self.top1[step] = 100 * runner.val_loop.run()['acc/top1']
            runner.model.train()


def make_config(method: str, seed: int, out: Path,
                args: argparse.Namespace) -> Config:
    """Return the config of a run, which reads the frames in ``out``."""
    name, changes = METHODS.get(method, ('vivit_tiny_motion', {}))
    changes = {
        **frame_loaders(str(out / 'frames'), NUM_FRAMES),
        'test_cfg': None,
        'test_dataloader': None,
        'test_evaluator': None,
        'train_cfg.max_epochs': args.epochs,
        # ScoreAtSteps validates.
        'train_cfg.val_interval': args.epochs + 1,
        'param_scheduler.1.T_max': args.epochs,
        'param_scheduler.1.end': args.epochs,
        'randomness.seed': seed,
        'log_level': 'WARNING',
        **changes
    }
    if method == TEACHER:
        changes['default_hooks.checkpoint.interval'] = args.epochs
        changes['default_hooks.checkpoint.save_best'] = None
    else:
        changes['default_hooks.checkpoint'] = None
    if 'distill' in name:
        changes['model.teacher_checkpoint'] = str(
            run_folder(out, TEACHER, seed) / f'epoch_{args.epochs}.pth')
        changes.setdefault('model.distill_epochs', args.distill_epochs)
    cfg = load_config(name, changes)
    cfg.work_dir = str(run_folder(out, method, seed))
    cfg.experiment_name = f'{time.time_ns()}'
    return cfg


def run_folder(out: Path, method: str, seed: int) -> Path:
    return out / 'runs' / f'{method.replace(" ", "_")}_seed{seed}'


def train(method: str, seed: int, results: Results,
          args: argparse.Namespace) -> dict[int, float]:
    """Train, unless the run has finished, and return top-1 by step."""

    def run() -> dict[int, float]:
        hook = ScoreAtSteps(args.steps)
        # Standard output is reserved for the report.
        with redirect_stdout(sys.stderr):
            runner = build_runner(
                make_config(method, seed, args.out, args), False)
            runner.register_hook(hook)
            runner.train()
        return hook.top1

    result = results.once(run_folder(args.out, method, seed).name, run)
    top1 = {int(k): v for k, v in result.items()}
    print(f'{method}, seed {seed}: top-1 {top1[max(top1)]:.1f} %',
          file=sys.stderr, flush=True)
    return top1


def format_report(results: dict[str, list[dict[int, float]]],
                  args: argparse.Namespace) -> str:
    """Format the report as Markdown."""
    final = [top1[max(top1)] for top1 in results[TEACHER]]
    lines = [
        f'Top-1 in percent on {args.val} clips by step (mean, lowest and '
        f'highest of the seeds {", ".join(map(str, args.seeds))}); a step '
        f'has {BATCH} of {args.train} clips, and chance is 12.5. The '
        'distilled student learns from the teacher in the first '
        f'{args.distill_epochs} of {args.epochs} epochs. The final top-1 of '
        f'the teachers is {statistics.mean(final):.1f} '
        f'({", ".join(f"{x:.1f}" for x in final)}).', '',
    ]
    rows = []
    for method, runs in results.items():
        cells = [method]
        for step in args.steps:
            top1 = [one[step] for one in runs]
            cells.append(f'{statistics.mean(top1):.1f} ({min(top1):.1f}-'
                         f'{max(top1):.1f})')
        rows.append(cells)
    lines += table(['', *map(str, args.steps)], rows)
    return '\n'.join(lines) + '\n'


def draw_curves(path: Path, results: dict[str, list[dict[int, float]]],
                args: argparse.Namespace) -> None:
    """Draw the mean of each method, and the range of its seeds."""
    figure = Figure(figsize=(7, 4.2), layout='constrained')
    axis = figure.subplots()
    for method, runs in results.items():
        curves = [[one[step] for step in args.steps] for one in runs]
        line, = axis.plot(
            args.steps, [statistics.mean(x) for x in zip(*curves)],
            marker='.', label=method,
            linestyle='--' if method == TEACHER else '-')
        axis.fill_between(
            args.steps, *([f(x) for x in zip(*curves)] for f in (min, max)),
            color=line.get_color(), alpha=0.15)
    axis.set_xscale('symlog', linthresh=10)
    axis.set_xticks(args.steps, list(map(str, args.steps)))
    axis.minorticks_off()
    axis.set_ylim(0, 102)
    axis.set_xlabel(f'steps of {BATCH} clips')
    axis.set_ylabel('top-1, %')
    axis.grid(alpha=0.3)
    axis.legend(fontsize=9)
    figure.savefig(path, dpi=110)


def parse_args() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument('--out', type=Path, required=True,
                        help='folder of the study')
    parser.add_argument('--seeds', nargs='+', type=int, default=[0, 1, 2],
                        help='seeds of weights and order (default: 0 1 2)')
    add_counts(
        parser, epochs=(8, 'epochs per run'),
        distill_epochs=(4, 'epochs with the teacher'),
        train=(2000, 'training clips'), val=(400, 'validation clips'))
    parser.add_argument(
        '--steps', nargs='+', type=int,
        default=[0, 10, 25, 50, 100, 250, 500, 1000],
        help='steps after which to validate (default: %(default)s)')
    return parser.parse_args()


def check_args(args: argparse.Namespace) -> None:
    total = args.epochs * math.ceil(args.train / BATCH)
    if min(args.steps) < 0 or max(args.steps) != total:
        raise ValueError(f'--steps must be from 0 to {total} and include '
                         f'{total}, the steps of a run, got {args.steps}')
    args.steps = sorted({*args.steps})


def main() -> None:
    args = parse_args()
    out = args.out
    options = dict(
        vars(args), motion=dict(seed=0), torch=torch.__version__)
    # A second run may add seeds to a study.
    del options['out'], options['seeds']
    results: dict[str, list[dict[int, float]]] = {}
    with one_line_errors():
        check_args(args)
        done = Results(out, options)
        make_data(out, options, SIDE)
        for seed in args.seeds:
            for method in (TEACHER, *METHODS):
                results.setdefault(method, []).append(
                    train(method, seed, done, args))
    text = format_report(results, args)
    write_atomically(out / 'report.md', text)
    draw_curves(out / 'curves.png', results, args)
    print(text, end='')


if __name__ == '__main__':
    main()
