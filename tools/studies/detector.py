# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Measure a detector of events on new videos.

    python tools/studies/detector.py thresholds WORK_DIR --seeds 8
    python tools/studies/detector.py marks WORK_DIR --seeds 8

WORK_DIR is a run of `mmvidattn finetune --stream` on videos of
tools/data/online/make_events.py. Each seed has new videos to learn from, and
the same number of test videos, on which F1@50 is measured.

``thresholds`` compares thresholds that are tuned on the first videos with 0.5
and 0.3.

``marks`` compares the detector before and after a second round of training,
`mmvidattn finetune --continue WORK_DIR --add marks.csv`. The marks are up to
20 of its mistakes in the first videos: wrong, missed, or of another class.
``--noise`` and ``--contrast`` make videos like those of a different camera.
"""
import random
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from mmvidattn.apis.labels import read_labels
from mmvidattn.datasets.annotations.custom.marks_csv import (
    Mark,
    format_marks,
)
from mmvidattn.datasets.annotations.custom.segment_csv import write_segment_csv
from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.evaluation.events import detect_events, tune_thresholds
from mmvidattn.finetune.streams.plan import read_events
from mmvidattn.finetune.streams.results import measure
from mmvidattn.finetune.streams.scores import score_videos
from mmvidattn.online.event_thresholds import read_thresholds
from mmvidattn.utils.paired_test import decide
from tools.data.online.make_events import FPS, Recipe, make_video
from tools.data.online.make_pixels import write_video
from tools.harness import parser_of

# Number of the first video of each split.
SPLITS = dict(val=3, test=4)
OVERLAP = .5


def write_videos(out: Path, seed: int, recipe: Recipe, count: int) -> None:
    """Write new videos and the lists of their events."""
    for name in 'data', 'videos':
        (out / name).mkdir(parents=True)
    for split, first in SPLITS.items():
        numbers = range(first, first + 5 * count, 5)
        segments = []
        for i in numbers:
            frames, events = make_video(seed, i, recipe)
            write_video(out / f'videos/{i}.mp4', frames, FPS)
            segments += [VideoSegment(
                where := f'{i} {one.start}', f'{i}.mp4', one.start / FPS,
                one.end / FPS, dict(action=one.label), where)
                for one in events]
        write_segment_csv(segments, out / f'data/{split}.csv')
        (out / f'data/{split}_videos.txt').write_text(
            ''.join(f'{i}.mp4\n' for i in numbers))


def use_model(out: Path, work_dir: Path) -> None:
    """Let a folder of new videos use the model of a work directory."""
    text = (work_dir / 'config.py').read_text('utf-8')
    for name, folder in dict(data_root='data', videos='videos').items():
        line = f'{name} = {str(out / folder)!r}'
        text = re.sub(rf'(?m)^{name} = .*$', lambda _: line, text)
    (out / 'config.py').write_text(text, 'utf-8')
    shutil.copy(work_dir / 'best.pth', out)
    shutil.copy(work_dir / 'data/classes.txt', out / 'data')


def f1_of(out: Path, thresholds: dict) -> float:
    """Return F1@50 on the test videos, in percent."""
    classes = read_labels(out / 'data/classes.txt')
    scores, _ = score_videos(out, 'test')
    detected = detect_events(scores, classes, thresholds=thresholds)
    return 100 * measure(detected, read_events(out, 'test'), scores,
                         classes)['F1@50']


def compare_thresholds(out: Path, args: Namespace, seed: int
                       ) -> tuple[float, float]:
    """Return F1@50 with untuned and with tuned thresholds."""
    use_model(out, args.work_dir)
    scores, _ = score_videos(out, 'val')
    tuned = tune_thresholds(scores, read_events(out, 'val'),
                            read_labels(out / 'data/classes.txt'))
    return f1_of(out, {}), f1_of(out, tuned.classes)


def overlap(one: VideoSegment, other: VideoSegment) -> float:
    """Return the overlap (tIoU) of two segments."""
    common = min(one.end, other.end) - max(one.start, other.start)
    if one.video != other.video or common <= 0:
        return 0.
    return common / (max(one.end, other.end) - min(one.start, other.start))


def find_mistakes(detected: list[VideoSegment],
                  truth: list[VideoSegment]) -> list[Mark]:
    """Return the marks that a person would set on wrong and missed events."""
    marks, found = [], set()
    for one in detected:
        label = one.labels['action']
        best = max(truth, key=lambda other: (
            overlap(one, other), other.labels['action'] == label))
        correct = best.labels['action']
        if overlap(one, best) >= OVERLAP:
            found.add(best.id)
            if correct != label:
                marks.append(Mark(best.video, best.start, best.end, correct,
                                  'class', label, one.score))
        elif not any(overlap(one, other) > 0
                     and other.labels['action'] == label for other in truth):
            marks.append(Mark(one.video, one.start, one.end, label, 'wrong',
                              label, one.score))
    return marks + [
        Mark(one.video, one.start, one.end, one.labels['action'], 'missed')
        for one in truth if one.id not in found]


def compare_marks(out: Path, args: Namespace, seed: int
                  ) -> tuple[float, float]:
    """Return F1@50 before and after a second round of training."""
    use_model(out, args.work_dir)
    rules = read_thresholds(args.work_dir / 'thresholds.json').classes
    before = f1_of(out, rules)
    classes = read_labels(out / 'data/classes.txt')
    scores, _ = score_videos(out, 'val')
    marks = find_mistakes(detect_events(scores, classes, thresholds=rules),
                          read_events(out, 'val'))
    marks = random.Random(seed).sample(marks, min(args.marks, len(marks)))
    print(f'seed {seed}: {len(marks)} marks', flush=True)
    (out / 'marks.csv').write_text(format_marks(
        mark._replace(video=str(out / 'videos' / mark.video))
        for mark in marks), 'utf-8')
    second = out / 'second'
    subprocess.run(
        [sys.executable, '-m', 'mmvidattn', 'finetune', '--continue',
         str(args.work_dir), '--add', str(out / 'marks.csv'), '--epochs',
         str(args.epochs), '--work-dir', str(second), '--seed', str(seed)],
        check=True, stdout=subprocess.DEVNULL)
    use_model(out, second)
    return before, f1_of(
        out, read_thresholds(second / 'thresholds.json').classes)


COMPARISONS = dict(thresholds=(compare_thresholds, 'untuned', 'tuned'),
                   marks=(compare_marks, 'before', 'after'))


def main() -> None:
    parser = parser_of(__doc__)
    add = parser.add_argument
    add('comparison', choices=COMPARISONS)
    add('work_dir', type=Path, metavar='WORK_DIR',
        help='work directory of mmvidattn finetune --stream, with a network '
        'of pixels')
    add('--seeds', type=int, default=8, help='number of seeds (default: 8)')
    add('--first-seed', type=int, default=100,
        help='seed of the first videos (default: 100)')
    add('--videos', type=int, default=2,
        help='videos to learn from, and to measure on (default: 2)')
    add('--seconds', type=float, default=Recipe.seconds,
        help='mean length of a video (default: %(default)g)')
    add('--noise', type=float, default=Recipe.noise,
        help='noise of the videos, in gray levels (default: %(default)g)')
    add('--contrast', type=float, default=Recipe.contrast,
        help='least contrast of an event, in (0, 1] (default: %(default)g)')
    add('--marks', type=int, default=20,
        help='for marks: largest number of marks (default: 20)')
    add('--epochs', type=int, default=6,
        help='for marks: epochs of the second round (default: 6)')
    args = parser.parse_args()
    args.work_dir = args.work_dir.resolve()
    recipe = Recipe(seconds=args.seconds, noise=args.noise,
                    contrast=args.contrast)
    compare, first, second = COMPARISONS[args.comparison]
    differences = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        with TemporaryDirectory() as folder:
            write_videos(Path(folder), seed, recipe, args.videos)
            one, other = compare(Path(folder), args, seed)
        differences.append(other - one)
        print(f'seed {seed}: F1@50 {one:.1f} {first}, {other:.1f} {second}',
              flush=True)
    verdict = decide(differences)
    print(f'difference {verdict.mean:.1f} +- {verdict.half:.1f} points over '
          f'{verdict.seeds} seeds: {verdict.difference or "undecided"}')


if __name__ == '__main__':
    main()
