# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Try the claims of the feature fixation paper on a small set of videos.

    python tools/studies/linear_ff_motion.py --out work_dirs/study --jobs 2

Trains the rows of the paper's Tables 3 and 5 (https://arxiv.org/abs/2210.08164)
with several seeds, and writes ``report.md`` and ``report.json``: each row's
top-1 beside the paper's, and for each claim whether the data agree.

What is finished is kept: the same command goes on after an interruption, and
more ``--seeds`` add to a study. A run that was cut short starts again.
"""
import argparse
import hashlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

# First, so that what is imported next is patched.
import mmvidattn  # noqa: F401, I001  isort: skip

import cv2
import decord
import torch
from mmengine.config import Config
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)
from scipy import stats

from mmvidattn.apis.models import load_config
from mmvidattn.apis.runner import one_line_errors
from mmvidattn.utils.files import write_atomically

ROOT = Path(__file__).resolve().parents[2]
CONFIG = 'linear_ff_tiny_motion'
BATCH = 16
NUM_FRAMES = 4
SIDE = 48
# With patches of one frame it is attention that has to see the motion.
CHANGES = {
    'model.backbone.num_frames': NUM_FRAMES,
    'model.backbone.patch_frames': 1,
    'model.backbone.embed_dims': 64,
    'model.backbone.num_heads': 4,
    'model.cls_head.in_channels': 64,
    'default_hooks.checkpoint': None,
    'test_cfg': None,
    'test_dataloader': None,
    'test_evaluator': None,
}
SPLITS = ('train', 'val')
FRAME = 'img_{:05}.png'
# Options of make_motion.py. Four frames see half as fast a motion as well as
# eight see the usual one.
MOTION = dict(seed=0, distractors=0, noise=0, scale=1, speed=0.5)

NO_SPATIAL = {'model.backbone.spatial_shift': None}
NO_TEMPORAL = {'model.backbone.temporal_shift': None}
NO_FIXATION = {'model.backbone.fixation': None}


def _kernel(name: str) -> dict[str, Any]:
    # The offset is of ReLU alone: the others are positive as they are.
    return {
        'model.backbone.attention.kernel': name,
        'model.backbone.attention.offset': 0.
    }


@dataclass(frozen=True)
class Row:
    """A row of the paper's tables.

    Args:
        paper: The paper's top-1 on Something-Something V2, in percent.
        changes: What the row changes in the full model, by dotted keys.
    """
    paper: float
    changes: dict[str, Any] = field(default_factory=dict)


ROWS = {
    'baseline': Row(61.67, {**NO_SPATIAL, **NO_TEMPORAL, **NO_FIXATION}),
    'spatial_shift': Row(61.99, {**NO_TEMPORAL, **NO_FIXATION}),
    'temporal_shift': Row(64.18, {**NO_SPATIAL, **NO_FIXATION}),
    'both_shifts': Row(64.28, NO_FIXATION),
    'fixation': Row(62.57, {**NO_SPATIAL, **NO_TEMPORAL}),
    'all': Row(65.46),
    'sigmoid': Row(63.26, _kernel('sigmoid')),
    'elu': Row(60.42, _kernel('elu+1')),
}
# What the paper says, and the rows of which the first is the better one.
CLAIMS = {
    'The spatial shift helps': ('spatial_shift', 'baseline'),
    'The temporal shift helps': ('temporal_shift', 'baseline'),
    'The temporal shift helps more than the spatial one':
    ('temporal_shift', 'spatial_shift'),
    'Both shifts together help': ('both_shifts', 'baseline'),
    'Feature fixation helps': ('fixation', 'baseline'),
    'Feature fixation helps on top of the shifts': ('all', 'both_shifts'),
    'All three together help': ('all', 'baseline'),
    'ReLU is better than sigmoid': ('all', 'sigmoid'),
    'Sigmoid is better than ELU+1': ('sigmoid', 'elu'),
}


class Run(NamedTuple):
    """One training."""
    row: str
    seed: int

    def __str__(self) -> str:
        return f'{self.row}, seed {self.seed}'

    @property
    def stem(self) -> str:
        return f'{self.row}_seed{self.seed}'


def frame_loaders(data: str, num_frames: int) -> dict[str, Any]:
    """Changes of a config, so that it reads the frames in ``data``."""
    changes = {}
    for split in SPLITS:
        loader = f'{split}_dataloader'
        changes.update({
            f'{loader}.batch_size': BATCH,
            f'{loader}.num_workers': 0,
            f'{loader}.persistent_workers': False,
            f'{loader}.dataset': dict(
                _delete_=True,
                type='RawframeDataset',
                ann_file=f'{data}/{split}.txt',
                data_prefix=dict(img=data),
                filename_tmpl=FRAME,
                test_mode=split == 'val',
                pipeline=[
                    dict(
                        type='UniformSample',
                        clip_len=num_frames,
                        test_mode=split == 'val'),
                    dict(type='RawFrameDecode', io_backend='disk'),
                    dict(type='FormatShape', input_format='NCTHW'),
                    dict(type='PackActionInputs')
                ])
        })
    return changes


def make_config(row: str, epochs: int, data: str) -> Config:
    """The config of a row, to be trained on the frames in ``data``."""
    changes = {
        **CHANGES,
        **ROWS[row].changes,
        **frame_loaders(data, NUM_FRAMES)
    }
    changes.update({
        'train_cfg.max_epochs': epochs,
        # The last epoch counts, and not the best one on these very clips.
        'train_cfg.val_interval': epochs,
        'param_scheduler.1.T_max': epochs,
        'param_scheduler.1.end': epochs,
    })
    return load_config(CONFIG, changes)


def describe(args: argparse.Namespace) -> dict[str, Any]:
    """All that the results depend on, besides row and seed."""
    configs = {
        row: make_config(row, args.epochs, 'FRAMES').to_dict()
        for row in ROWS
    }
    text = json.dumps(configs, sort_keys=True)
    return dict(
        epochs=args.epochs,
        train=args.train,
        val=args.val,
        motion=MOTION,
        torch=torch.__version__,
        configs=hashlib.sha256(text.encode()).hexdigest())


def open_study(out: Path, options: dict[str, Any]) -> None:
    """Make the folder of a study, or check that it is of these options."""
    file = out / 'options.json'
    if file.is_file():
        found = json.loads(file.read_text())
        differing = [
            f'{key} was {found.get(key)}, and now is {options.get(key)}'
            for key in sorted({*found, *options})
            if found.get(key) != options.get(key)
        ]
        if differing:
            raise ValueError(
                f'--out {out} holds a study with other options: '
                + '; '.join(differing)
                + '. Repeat the options, or choose another folder')
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f'--out {out} is not empty and holds no study; '
                         'choose a folder that is empty or does not exist')
    (out / 'runs').mkdir(parents=True, exist_ok=True)
    (out / 'results').mkdir(exist_ok=True)
    write_atomically(file, json.dumps(options, indent=2))


def make_data(out: Path, options: dict[str, Any], side: int = SIDE) -> None:
    """Write the videos, and frames of them of ``side`` pixels."""
    motion = {**options['motion'], **{k: options[k] for k in ('train', 'val')}}
    flags = [word for k, v in motion.items() for word in (f'--{k}', str(v))]
    # The standard output is for the report alone.
    done = subprocess.run(
        [
            sys.executable, ROOT / 'tools/data/motion/make_motion.py',
            out / 'data', *flags
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True)
    print(done.stdout, end='', file=sys.stderr)
    for split in SPLITS:
        extract_frames(out, split, side)


def extract_frames(out: Path, split: str, side: int) -> None:
    """Write the frames of a split's videos, of the size that is trained on.

    Each clip is read many times, and a video would be decoded each time.
    """
    annotations = out / 'frames' / f'{split}.txt'
    if annotations.is_file():
        return
    lines = []
    videos = (out / 'data' / f'{split}.txt').read_text().splitlines()
    for line in track(
            videos,
            f'Frames of the {split} videos',
            console=Console(stderr=True)):
        video, label = line.split()
        name = Path(video).with_suffix('')
        folder = out / 'frames' / name
        folder.mkdir(parents=True, exist_ok=True)
        frames = decord.VideoReader(str(out / 'data' / video))[:].asnumpy()
        for i, frame in enumerate(frames, start=1):
            small = cv2.resize(frame[..., ::-1], (side, side))
            if not cv2.imwrite(str(folder / FRAME.format(i)), small):
                raise OSError(f'cannot write {folder / FRAME.format(i)}')
        lines.append(f'{name} {len(frames)} {label}\n')
    write_atomically(annotations, ''.join(lines))


def result_file(out: Path, run: Run) -> Path:
    return out / 'results' / f'{run.stem}.json'


def read_results(out: Path, runs: Iterable[Run]) -> dict[Run, dict]:
    """The results of those runs that are finished."""
    files = {run: result_file(out, run) for run in runs}
    return {
        run: json.loads(file.read_text())
        for run, file in files.items() if file.is_file()
    }


def read_logs(work_dir: Path) -> list[dict]:
    """Read what a run has logged so far."""
    logs = []
    for file in work_dir.glob('*/vis_data/scalars.json'):
        # Without the line that may be half written.
        lines = file.read_text().rpartition('\n')[0].splitlines()
        logs.extend(map(json.loads, lines))
    return logs


class Training:
    """A run in a process of its own, with one thread."""

    def __init__(self, run: Run, out: Path, epochs: int,
                 num_train: int) -> None:
        self.run = run
        self.work_dir = out / 'runs' / run.stem
        self.steps = epochs * math.ceil(num_train / BATCH)
        self.log = self.work_dir / 'train.log'
        self._start = time.monotonic()
        if self.work_dir.exists():
            shutil.rmtree(self.work_dir)
        self.work_dir.mkdir()
        config = self.work_dir / 'config.py'
        make_config(run.row, epochs, str(out / 'frames')).dump(config)
        with self.log.open('w') as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, ROOT / 'tools/train.py', config,
                    '--work-dir', self.work_dir, '--seed', str(run.seed)
                ],
                env=dict(os.environ, OMP_NUM_THREADS='1',
                         MKL_NUM_THREADS='1'),
                stdout=log,
                stderr=log)

    def progress(self) -> float:
        """How much of the training is done, from 0 to 1."""
        steps = [log['step'] for log in read_logs(self.work_dir)
                 if 'loss' in log]
        return max(steps, default=0) / self.steps

    def result(self) -> dict | None:
        """The result of a process that has ended; None if it failed."""
        logs = read_logs(self.work_dir)
        found = [log['acc/top1'] for log in logs if 'acc/top1' in log]
        if self.process.returncode or not found:
            return None
        return dict(
            row=self.run.row,
            seed=self.run.seed,
            top1=100 * found[-1],
            train_loss=[log['loss'] for log in logs if 'loss' in log][-1],
            seconds=round(time.monotonic() - self._start, 1))


def train_all(runs: Sequence[Run], out: Path, options: dict[str, Any],
              jobs: int) -> list[Run]:
    """Train and write the results; returns the runs that failed."""
    waiting, running, failed = list(runs), [], []
    with Progress(
            BarColumn(),
            TextColumn('{task.fields[finished]}/{task.total} runs,'),
            TimeElapsedColumn(),
            TextColumn('gone,'),
            TimeRemainingColumn(),
            TextColumn('left; {task.description}'),
            console=Console(stderr=True),
            speed_estimate_period=600) as bar:
        task = bar.add_task('', total=len(runs), finished=0)
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.append(
                        Training(
                            waiting.pop(0), out, options['epochs'],
                            options['train']))
                for training in [*running]:
                    if training.process.poll() is None:
                        continue
                    running.remove(training)
                    result = training.result()
                    if result is None:
                        failed.append(training.run)
                        bar.console.print(f'{training.run}: failed, see '
                                          f'{training.log}')
                        continue
                    write_atomically(
                        result_file(out, training.run), json.dumps(result))
                    bar.console.print(
                        f'{training.run}: top-1 {result["top1"]:.1f} % in '
                        f'{result["seconds"]:.0f} s')
                finished = len(runs) - len(waiting) - len(running)
                bar.update(
                    task,
                    finished=finished,
                    completed=finished + sum(t.progress() for t in running),
                    description='; '.join(str(t.run) for t in running))
                time.sleep(0.5)
        finally:
            for training in running:
                training.process.terminate()
            for training in running:
                training.process.wait()
    return failed


def summarise(top1: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation; None where there are too few."""
    return dict(
        mean=statistics.mean(top1) if top1 else None,
        std=statistics.stdev(top1) if len(top1) > 1 else None)


def compare(better: Sequence[float], worse: Sequence[float]) -> dict:
    """Test whether one row is better than another, by Welch's t-test.

    Returns:
        ``difference`` of the means, ``margin``, so that difference +- margin
        is the 95 % confidence interval, and ``verdict``: 'agree' if the
        interval is above zero, 'do not agree' if below, else 'within the
        spread'; 'undecided' if a row has fewer than two seeds.
    """
    if min(len(better), len(worse)) < 2:
        return dict(difference=None, margin=None, verdict='undecided')
    a, b = (statistics.variance(x) / len(x) for x in (better, worse))
    difference = statistics.mean(better) - statistics.mean(worse)
    margin = 0.
    if a + b:
        freedom = (a + b)**2 / (a**2 / (len(better) - 1) + b**2 /
                                (len(worse) - 1))
        margin = float(stats.t.ppf(0.975, freedom)) * math.sqrt(a + b)
    verdict = 'within the spread'
    if abs(difference) > margin:
        verdict = 'agree' if difference > 0 else 'do not agree'
    return dict(difference=difference, margin=margin, verdict=verdict)


def make_report(results: dict[Run, dict], rows: Sequence[str],
                options: dict[str, Any]) -> dict[str, Any]:
    """All figures of the report."""
    top1 = {
        row: {
            run.seed: result['top1']
            for run, result in sorted(results.items()) if run.row == row
        }
        for row in rows
    }
    claims = []
    for text, (better, worse) in CLAIMS.items():
        if better in rows and worse in rows:
            claims.append(
                dict(
                    claim=text,
                    better=better,
                    worse=worse,
                    paper=round(ROWS[better].paper - ROWS[worse].paper, 2),
                    **compare(*(list(top1[row].values())
                                for row in (better, worse)))))
    return dict(
        options=options,
        rows=[
            dict(
                row=row,
                paper=ROWS[row].paper,
                top1=top1[row],
                **summarise(list(top1[row].values()))) for row in rows
        ],
        claims=claims)


def format_report(report: dict[str, Any]) -> str:
    """The report in Markdown."""
    options = report['options']
    motion = ', '.join(f'{k} {v}' for k, v in options['motion'].items())
    lines = [
        f'Top-1 in percent on {options["val"]} clips after {options["epochs"]}'
        f' epochs of {options["train"]} clips ({motion}); chance is 12.5. The '
        "paper's column is its top-1 on Something-Something V2 with a model "
        'of 52 M parameters: compare differences, not values.', '',
        "| row | ours, mean | standard deviation | each seed | paper's |",
        '|---|---|---|---|---|'
    ]
    for row in report['rows']:
        mean, std = ('-' if row[key] is None else f'{row[key]:.1f}'
                     for key in ('mean', 'std'))
        seeds = ', '.join(f'{x:.1f}' for x in row['top1'].values()) or '-'
        lines.append(f'| {row["row"]} | {mean} | {std} | {seeds} | '
                     f'{row["paper"]:.2f} |')
    lines += [
        '', "The data agree with a claim if the 95 % interval of Welch's "
        't-test, of the difference of the means over the seeds, is above '
        'zero, and do not if it is below. All runs see the same clips.', ''
    ]
    for claim in report['claims']:
        says = {
            'agree': 'the data agree',
            'do not agree': 'the data do not agree',
            'within the spread': 'the difference is within the spread',
            'undecided': 'undecided, each row takes two seeds or more',
        }[claim['verdict']]
        figures = f'{claim["paper"]:+.2f} in the paper'
        if claim['difference'] is not None:
            figures = (f'{claim["difference"]:+.1f} ± {claim["margin"]:.1f}, '
                       + figures)
        lines.append(f'* {claim["claim"]}: {says} ({claim["better"]} - '
                     f'{claim["worse"]}: {figures}).')
    return '\n'.join(lines) + '\n'


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--out',
        type=Path,
        required=True,
        help='folder of the study: videos, runs, results and report')
    parser.add_argument(
        '--rows',
        nargs='+',
        choices=ROWS,
        default=list(ROWS),
        metavar='ROW',
        help=f'which rows, of {", ".join(ROWS)} (default: all)')
    parser.add_argument(
        '--seeds',
        nargs='+',
        type=int,
        default=[0, 1, 2],
        help='train each row with these (default: 0 1 2)')
    parser.add_argument(
        '--epochs', type=int, default=12, help='(default: %(default)s)')
    parser.add_argument(
        '--train',
        type=int,
        default=1600,
        help='number of training clips (default: %(default)s)')
    parser.add_argument(
        '--val',
        type=int,
        default=800,
        help='number of validation clips (default: %(default)s)')
    parser.add_argument(
        '--jobs',
        type=int,
        default=1,
        help='runs at the same time, each with one thread (default: '
        '%(default)s)')
    parser.add_argument(
        '--report-only',
        action='store_true',
        help='train nothing, report what is finished')
    return parser.parse_args()


def check_args(args: argparse.Namespace) -> None:
    for name, least in (('epochs', 1), ('train', 1), ('val', 1), ('jobs', 1)):
        if getattr(args, name) < least:
            raise ValueError(f'--{name} must be at least {least}, got '
                             f'{getattr(args, name)}')
    if min(args.seeds) < 0:
        raise ValueError(f'--seeds must be at least 0, got {args.seeds}')


def main() -> None:
    args = parse_args()
    rows = [row for row in ROWS if row in args.rows]
    # Seed by seed, so that a study that is cut short compares all rows.
    runs = [Run(row, seed) for seed in sorted({*args.seeds}) for row in rows]
    out = args.out
    failed = []
    with one_line_errors():
        check_args(args)
        if args.report_only:
            options = json.loads((out / 'options.json').read_text())
        else:
            options = describe(args)
            open_study(out, options)
            make_data(out, options)
    if not args.report_only:
        # Ends the trainings as well.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        finished = read_results(out, runs)
        failed = train_all([run for run in runs if run not in finished], out,
                           options, args.jobs)
    report = make_report(read_results(out, runs), rows, options)
    text = format_report(report)
    write_atomically(out / 'report.json', json.dumps(report, indent=2))
    write_atomically(out / 'report.md', text)
    print(text, end='')
    if failed:
        raise SystemExit(
            f'linear_ff_motion.py: error: {len(failed)} of {len(runs)} runs '
            f'failed: {"; ".join(map(str, failed))}; their logs are in '
            f'{out / "runs"}')


if __name__ == '__main__':
    main()
