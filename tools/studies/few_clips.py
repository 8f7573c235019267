# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Fine-tune on 12 clips per class, and report accuracies with intervals.

    python tools/studies/few_clips.py A.mp4 B.mp4 ... --out work_dirs/few_clips

Each video is a class: pieces of its first half are for training, pieces of its
second half for the test. The program runs ``mmvidattn finetune`` by each
method on these pieces, on the double motions of the motion set, and on both
sets together with noise. Then it writes ``report.md``. The same command
resumes an interrupted study.
"""
import argparse
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

# First, because it applies the workarounds to the packages below.
import mmvidattn  # noqa: F401, I001  isort: skip

import cv2
import numpy as np

from mmvidattn.apis.runner import one_line_errors
from mmvidattn.finetune.report import interval
from mmvidattn.utils.files import write_atomically
from mmvidattn.utils.video_readers import open_video

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import Results, add_counts, parser_of, table
from tools.studies.finetune_runs import (
    MODEL,
    Row,
    fine_tune,
    write_list,
    write_motions,
)

CLASSES = 4
# Gray levels.
NOISE = 25
METHODS = {
    'from nothing': ['--weights', 'none'],
    'probe': ['--freeze', 'backbone'],
    'LoRA': ['--lora', '8'],
    'all layers': ['--freeze', 'none'],
}


def cut(video: Path, out: Path, number: int, noise: int) -> Iterator[Row]:
    """Write pieces of a video; yield the file, class and split of each.

    Args:
        video: The video.
        out: Folder of the pieces.
        number: Number of pieces for training, and for the test.
        noise: Standard deviation of the noise in gray levels.
    """
    reader = open_video(video, backend='pyav')
    rng = np.random.default_rng(0)
    ends = np.linspace(0, len(reader), 2 * number + 1).astype(int)
    for i, (start, end) in enumerate(zip(ends, ends[1:])):
        path = out / f'{video.stem}_{video.suffix[1:]}_{i:02}.mp4'
        frames = reader.get_batch(range(start, end)).astype(float)
        frames += noise * rng.standard_normal(frames.shape)
        height, width = frames.shape[1:3]
        writer = cv2.VideoWriter(
            str(path), cv2.VideoWriter_fourcc(*'mp4v'), 25, (width, height))
        for frame in frames.clip(0, 255).astype(np.uint8):
            writer.write(frame[..., ::-1])
        writer.release()
        yield path, path.stem[:-3], 'train' if i < number else 'test'


def make_set(name: str, out: Path, seed: int,
             args: argparse.Namespace) -> Path:
    """Write a data set, and return its CSV list."""
    out.mkdir(parents=True, exist_ok=True)
    noise = NOISE if name == 'both with noise' else 0
    rows: list[Row] = []
    if name != 'drawn':
        for video in args.videos:
            rows += cut(video, out, args.clips, noise)
    if name != 'real':
        number = CLASSES * args.clips
        rows += write_motions(out / 'motion', seed, number, number, noise)
    return write_list(out / 'clips.csv', rows)


def run(clips: Path, out: Path, options: list[str], seed: int,
        args: argparse.Namespace) -> dict:
    """Fine-tune by a method; return its correct answers and seconds."""
    if args.weights and '--weights' not in options:
        options = [*options, '--weights', args.weights]
    metrics, seconds = fine_tune(
        clips, out, '--epochs', args.epochs, '--seed', seed, *options)
    return dict(videos=metrics['videos'], chance=metrics['chance'],
                right=round(metrics['top1'] * metrics['videos']),
                seconds=seconds)


def format_report(results: dict[tuple[str, str], list[dict]],
                  args: argparse.Namespace) -> str:
    """Format the report as Markdown."""
    rows = []
    for (name, method), runs in results.items():
        top1 = [100 * one['right'] / one['videos'] for one in runs]
        lowest = [100 * interval(one['right'], one['videos'])[0]
                  for one in runs]
        rows.append([
            name, method, f'{100 * runs[0]["chance"]:.1f}',
            f'{statistics.mean(top1):.1f}',
            ', '.join(f'{x:.1f}' for x in top1), f'{min(lowest):.1f}',
            f'{statistics.mean(one["seconds"] for one in runs):.0f}'])
    return '\n'.join([
        f'Top-1 in percent with {args.clips} clips per class for training and '
        f'{args.clips} for the test, at most {args.epochs} epochs, seeds '
        f'{", ".join(map(str, args.seeds))}:', '',
        *table(('clips', 'method', 'chance', 'mean', 'each seed',
                'lowest end of a 95 % interval', 'seconds per run'), rows),
        ''])


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('videos', nargs='+', type=Path, metavar='VIDEO',
                        help='videos, one per class')
    parser.add_argument('--out', type=Path, required=True,
                        help='folder of the study')
    parser.add_argument('--weights', help=f'checkpoint of {MODEL} (default: '
                        'the default weights)')
    parser.add_argument('--seeds', nargs='+', type=int, default=[*range(5)],
                        help='seeds (default: 0 1 2 3 4)')
    add_counts(parser, clips=(12, 'clips per class, for each split'),
               epochs=(20, 'most epochs of a run'))
    args = parser.parse_args()
    options = dict(weights=args.weights, epochs=args.epochs, clips=args.clips)
    results: dict[tuple[str, str], list[dict]] = {}
    with one_line_errors():
        done = Results(args.out, options)
        for name in 'drawn', 'real', 'both with noise':
            for seed in args.seeds:
                folder = f'{name.replace(" ", "_")}_seed{seed}'
                clips = make_set(name, args.out / 'data' / folder, seed, args)
                for method, more in METHODS.items():
                    key = f'{folder}_{method.replace(" ", "_")}'
                    result = done.once(key, partial(
                        run, clips, args.out / 'runs' / key, more, seed, args))
                    results.setdefault((name, method), []).append(result)
                    print(f'{name}, {method}, seed {seed}: '
                          f'{result["right"]} of {result["videos"]}',
                          file=sys.stderr, flush=True)
    text = format_report(results, args)
    write_atomically(args.out / 'report.md', text.encode())
    print(text, end='')


if __name__ == '__main__':
    main()
