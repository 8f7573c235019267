# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Try which online model sees what, on synthetic feature streams.

    python tools/studies/online_synthetic.py --out work_dirs/online_study

Trains `testra_tiny_synthetic` with the Laplace and the box kernel, with LSTR's
attention and without a long memory, each with MixClip and without, and the
other families' tiny models, each as its config has it, and writes `report.md`:
dense mAP of each kind of class. The same command goes on after an
interruption.
"""
import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[2]
CONFIG = 'testra_tiny_synthetic'
KINDS = ('now', 'recent', 'long')
LOADERS = ('train', 'val', 'test')


def of_datasets(option: str) -> list[str]:
    """An option of each dataset."""
    return [f'{name}_dataloader.dataset.{option}' for name in LOADERS]


# What each row changes in the config.
MEMORIES = {
    'Laplace, 0.97': [],
    'box': ['model.backbone.decay=1'],
    'LSTR': ['model.backbone.decay=1', 'model.backbone.fusion=none',
             'model.backbone.long_memory_pos_embed=True',
             *of_datasets('stretch_long_memory=True')],
    'none': ['model.backbone.long_memory_length=0',
             *of_datasets('long_steps=0')],
}
# Other families have a config of their own, and MixClip if it has.
RIVALS = {
    'MAT': 'mat_tiny_synthetic',
    'MiniROAD': 'miniroad_tiny_synthetic',
    'causal transformer': 'causal_transformer_tiny_synthetic',
}
MIXCLIP = dict(on=[], off=['train_dataloader.dataset.pipeline.0.prob=0'])


def rows() -> list[tuple[str, str]]:
    """Memory and MixClip of each run; without a memory there is none."""
    ours = [(memory, mix) for mix in MIXCLIP for memory in MEMORIES
            if memory != 'none' or mix == 'off']
    return ours + [(name, 'on' if name == 'MAT' else 'off')
                   for name in RIVALS]


def result_file(out: Path, memory: str, mix: str, seed: int) -> Path:
    word = memory.split(',')[0].lower().replace(' ', '_')
    return out / 'results' / f'{word}_mixclip_{mix}_seed{seed}.json'


def run_row(out: Path, memory: str, mix: str, seed: int) -> dict:
    """Train and test a row; returns its results.

    Raises:
        RuntimeError: If a program fails.
    """
    work_dir = out / 'runs' / result_file(out, memory, mix, seed).stem
    config, changes = RIVALS.get(memory), []
    if config is None:
        config, changes = CONFIG, [*MEMORIES[memory], *MIXCLIP[mix]]
    options = [
        *changes,
        *of_datasets(f'data_root={out / "data"}'),
        *of_datasets(f'metainfo.classes={out / "data/classes.txt"}'),
        'default_hooks.checkpoint.save_best=None',
        'default_hooks.checkpoint.max_keep_ckpts=1',
    ]
    start = time.monotonic()
    for command in (
            ['train.py', config, '--resume', '--seed', str(seed)],
            ['test.py', config, 'CHECKPOINT']):
        if command[-1] == 'CHECKPOINT':
            command[-1] = (work_dir / 'last_checkpoint').read_text().strip()
        done = subprocess.run(
            [sys.executable, ROOT / 'tools' / command[0], *command[1:],
             '--work-dir', work_dir, '--cfg-options', *options],
            capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f'{command[0]} failed: {done.stderr[-2000:]}')
        if command[0] == 'train.py':
            seconds = time.monotonic() - start
    newest = max(work_dir.glob('2*/2*.json'), key=lambda p: p.stat().st_mtime)
    metrics = json.loads(newest.read_text())
    return dict(memory=memory, mixclip=mix, seed=seed, seconds=seconds,
                metrics=metrics)


def kind_of(metrics: dict[str, float], kind: str) -> float:
    """Dense mAP of the classes of a kind, in percent."""
    return 100 * mean(value for key, value in metrics.items()
                      if key.startswith(f'online/AP_dense_{kind}_'))


def report(results: Iterable[dict]) -> str:
    """The table, in Markdown."""
    lines = ['| model, or long memory of TeSTra | MixClip | seed | ' +
             ' | '.join(f'mAP of `{kind}`' for kind in KINDS) +
             ' | mean anticipation mAP | minutes of training |',
             '|---|---|---|---|---|---|---|---|']
    for result in results:
        metrics = result['metrics']
        cells = [result['memory'], result['mixclip'], str(result['seed'])]
        cells += [f'{kind_of(metrics, kind):.1f}' for kind in KINDS]
        ahead = metrics.get('online/mAP_dense@mean')
        cells += ['-' if ahead is None else f'{100 * ahead:.1f}',
                  f'{result["seconds"] / 60:.1f}']
        lines.append(f'| {" | ".join(cells)} |')
    return '\n'.join(lines) + '\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out', type=Path, required=True,
                        help='folder of streams, runs, results and report')
    parser.add_argument('--seeds', nargs='+', type=int, default=[0])
    parser.add_argument('--noise', type=float, default=0.5,
                        help='of the streams (default: 0.5)')
    parser.add_argument('--rows', nargs='+', type=int, metavar='N',
                        help='which rows, from 0 (default: all)')
    args = parser.parse_args()
    out = args.out.resolve()
    (out / 'results').mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, ROOT / 'tools/data/online/make_synthetic.py',
         out / 'data', '--noise', str(args.noise)],
        check=True, stdout=subprocess.PIPE)
    chosen = rows()
    for seed in args.seeds:
        for number, (memory, mix) in enumerate(chosen):
            file = result_file(out, memory, mix, seed)
            wanted = args.rows is None or number in args.rows
            if file.is_file() or not wanted:
                continue
            print(f'{memory}, MixClip {mix}, seed {seed}', file=sys.stderr)
            file.write_text(json.dumps(run_row(out, memory, mix, seed)))
    files = [result_file(out, memory, mix, seed)
             for memory, mix in chosen for seed in args.seeds]
    text = report(json.loads(f.read_text()) for f in files if f.is_file())
    (out / 'report.md').write_text(text)
    print(text, end='')


if __name__ == '__main__':
    main()
