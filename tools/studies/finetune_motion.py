# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare methods to fine-tune on four new classes of motion.

    python tools/studies/finetune_motion.py CHECKPOINT --out work_dirs/finetune

CHECKPOINT belongs to ``linear_ff_tiny_motion``. For each seed, the program
writes 60 training and 200 test clips of the motion set's four double motions,
and runs ``mmvidattn finetune`` on them by each method. Then it writes
``report.md``. The same command resumes an interrupted study.
"""
import argparse
import statistics
import sys
from functools import partial
from pathlib import Path

# First, because it applies the workarounds to the packages below.
import mmvidattn  # noqa: F401, I001  isort: skip

from mmvidattn.apis.runner import one_line_errors
from mmvidattn.utils.files import write_atomically

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import Results, add_counts, parser_of, table
from tools.studies.finetune_runs import (
    MODEL,
    fine_tune,
    write_list,
    write_motions,
)

# Options of each method, in addition to --weights; None is without weights.
METHODS = {
    'from nothing': None,
    'probe': ['--freeze', 'backbone'],
    'LoRA': ['--lora', '8'],
    'full': ['--freeze', 'none'],
}


def run(clips: Path, out: Path, method: str, seed: int,
        args: argparse.Namespace) -> dict:
    """Fine-tune by a method; return top-1 in percent and seconds."""
    options = ['--weights', 'none'] if METHODS[method] is None else [
        '--weights', args.checkpoint, *METHODS[method]]
    # Without validation, the last checkpoint is tested, not the best one on
    # these clips.
    metrics, seconds = fine_tune(
        clips, out, '--epochs', args.epochs, '--seed', seed, '--val-share', 0,
        *options)
    return dict(top1=100 * metrics['top1'], seconds=seconds)


def format_report(results: dict[str, list[dict]],
                  args: argparse.Namespace) -> str:
    """Format the report as Markdown."""
    lines = [
        f'Top-1 in percent on {args.test} clips after {args.epochs} epochs on '
        f'{args.train} clips; chance is 25. The seeds '
        f'{", ".join(map(str, args.seeds))} determine the clips, their order '
        'and the new weights.', ''
    ]
    rows = []
    for method, runs in results.items():
        top1 = [one['top1'] for one in runs]
        rows.append([
            method, f'{statistics.mean(top1):.1f}',
            ', '.join(f'{x:.1f}' for x in top1),
            f'{statistics.mean(one["seconds"] for one in runs):.0f}'])
    lines += table(('', 'mean', 'each seed', 'seconds per run'), rows)
    return '\n'.join(lines) + '\n'


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('checkpoint', help=f'checkpoint of {MODEL}')
    parser.add_argument('--out', type=Path, required=True,
                        help='folder of the study')
    parser.add_argument('--seeds', nargs='+', type=int, default=[1, 2, 3],
                        help='seeds (default: 1 2 3)')
    add_counts(parser, epochs=(12, 'epochs per run'),
               train=(60, 'training clips'), test=(200, 'test clips'))
    args = parser.parse_args()
    options = vars(args).copy()
    # A second run may add seeds to a study.
    del options['out'], options['seeds']
    results: dict[str, list[dict]] = {method: [] for method in METHODS}
    with one_line_errors():
        done = Results(args.out, options)
        for seed in args.seeds:
            folder = args.out / f'data/seed{seed}'
            clips = write_list(folder / 'clips.csv', [*write_motions(
                folder, seed, args.train, args.test)])
            for method in METHODS:
                name = f'{method.replace(" ", "_")}_seed{seed}'
                result = done.once(name, partial(
                    run, clips, args.out / 'runs' / name, method, seed, args))
                results[method].append(result)
                print(f'{method}, seed {seed}: top-1 {result["top1"]:.1f} %',
                      file=sys.stderr, flush=True)
    text = format_report(results, args)
    write_atomically(args.out / 'report.md', text.encode())
    print(text, end='')


if __name__ == '__main__':
    main()
