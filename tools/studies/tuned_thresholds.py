# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare tuned with untuned thresholds of a detector on new videos.

    python tools/studies/tuned_thresholds.py WORK_DIR --seeds 8

WORK_DIR is a run of `mmvidattn finetune --stream` on videos of
tools/data/online/make_events.py. For each seed, the thresholds are tuned on
two new videos, and F1@50 is measured on two others, with the tuned thresholds
and with 0.5 and 0.3.
"""
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from mmvidattn.apis.labels import read_labels
from mmvidattn.datasets.annotations.custom.segment_csv import write_segment_csv
from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.evaluation.events import detect_events, tune_thresholds
from mmvidattn.finetune.streams.plan import read_events
from mmvidattn.finetune.streams.results import measure
from mmvidattn.finetune.streams.scores import score_videos
from mmvidattn.utils.paired_test import decide
from tools.data.online.make_events import FPS, Recipe, make_video
from tools.data.online.make_pixels import write_video
from tools.harness import parser_of

# Videos of each split.
SPLITS = dict(val=(3, 8), test=(4, 9))


def write_videos(out: Path, work_dir: Path, seed: int, recipe: Recipe) -> None:
    """Write new videos, and a work directory that scores them."""
    for name in 'data', 'videos':
        (out / name).mkdir(parents=True)
    text = (work_dir / 'config.py').read_text('utf-8')
    for name, folder in dict(data_root='data', videos='videos').items():
        line = f'{name} = {str(out / folder)!r}'
        text = re.sub(rf'(?m)^{name} = .*$', lambda _: line, text)
    (out / 'config.py').write_text(text, 'utf-8')
    shutil.copy(work_dir / 'best.pth', out)
    shutil.copy(work_dir / 'data/classes.txt', out / 'data')
    for split, numbers in SPLITS.items():
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


def compare(out: Path) -> tuple[float, float]:
    """Return F1@50 with tuned and with untuned thresholds, in percent."""
    classes = read_labels(out / 'data/classes.txt')
    scores, _ = score_videos(out, 'val')
    tuned = tune_thresholds(scores, read_events(out, 'val'), classes)
    scores, _ = score_videos(out, 'test')
    truth = read_events(out, 'test')
    return tuple(100 * measure(
        detect_events(scores, classes, thresholds=thresholds), truth, scores,
        classes)['F1@50'] for thresholds in (tuned.classes, {}))


def main() -> None:
    parser = parser_of(__doc__)
    add = parser.add_argument
    add('work_dir', type=Path, metavar='WORK_DIR',
        help='work directory of mmvidattn finetune --stream, with a network '
        'of pixels')
    add('--seeds', type=int, default=8, help='number of seeds (default: 8)')
    add('--first-seed', type=int, default=100,
        help='seed of the first videos (default: 100)')
    add('--seconds', type=float, default=Recipe.seconds,
        help='mean length of a video (default: %(default)g)')
    args = parser.parse_args()
    differences = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        with TemporaryDirectory() as folder:
            write_videos(Path(folder), args.work_dir, seed,
                         Recipe(seconds=args.seconds))
            tuned, untuned = compare(Path(folder))
        differences.append(tuned - untuned)
        print(f'seed {seed}: F1@50 {tuned:.1f} tuned, {untuned:.1f} untuned',
              flush=True)
    verdict = decide(differences)
    print(f'difference {verdict.mean:.1f} +- {verdict.half:.1f} points over '
          f'{verdict.seeds} seeds: {verdict.difference or "undecided"}')


if __name__ == '__main__':
    main()
