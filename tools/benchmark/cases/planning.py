# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Planning of long lists: seconds by the number of names.

"features" lists the empty files of a folder and plans the outputs of
``mmvidattn extract-features``. "manifest" does the same, and writes and reads
the manifest of ``--engine local``. "names" reads the list of a data set of
feature streams. All find repeated names. The time should grow in proportion to
the number of names; "pairwise" compares all pairs of names, for lists up to
--pairwise names.

Nothing is measured unless "names" and "pairwise" find the same repeated names
in lists with random repetitions.
"""
import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from mmvidattn.corpus.manifest import FILE, open_manifest, plan_videos
from mmvidattn.datasets.feature_stream_dataset import read_video_names
from tools.benchmark.measure import measure, settings_of, title
from tools.harness import count

TRIALS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--names', nargs='+', type=count,
        default=[1000, 10_000, 100_000, 1_000_000],
        help='lengths of the lists (default: %(default)s)')
    parser.add_argument(
        '--pairwise', type=count, default=4000,
        help='longest list that is also compared pairwise (default: '
        '%(default)s)')


def pairwise(names: Sequence[str]) -> list[str]:
    """Return the repeated names, in quadratic time."""
    return sorted({name for name in names if names.count(name) > 1})


def check(folder: Path) -> None:
    """Exit with an error unless repeated names are found."""
    draw, path = random.Random(0), folder / 'trial.txt'
    for trial in range(TRIALS):
        names = [f'v{draw.randrange(10 + 20 * trial)}' for _ in range(20)]
        path.write_text('\n'.join(names))
        expected = pairwise(names)
        try:
            found, message = read_video_names(path), ''
        except ValueError as error:
            found, message = [], str(error)
        agree = (message.endswith(f'got {", ".join(expected)} twice')
                 if expected else found == names)
        if not agree:
            raise SystemExit(f'no timing: {names} repeat {expected}, got '
                             f'{message or "no error"}')


def run(args: argparse.Namespace) -> dict:
    result = settings_of(args, seconds={})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        check(folder)
        for number in args.names:
            videos = folder / str(number)
            for i in range(number):
                # A thousand videos in each folder.
                path = videos / str(i // 1000) / f'{i}.mp4'
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            names = [f'video_{i}' for i in range(number)]
            path = folder / 'names.txt'
            path.write_text('\n'.join(names))

            def manifest() -> None:
                (folder / FILE).unlink(missing_ok=True)
                open_manifest(folder, [videos], 100)

            tasks = dict(
                features=lambda: plan_videos([videos]), manifest=manifest,
                names=lambda: read_video_names(path))
            if number <= args.pairwise:
                tasks['pairwise'] = lambda: pairwise(names)
            result['seconds'][str(number)] = measure(
                tasks, args.repeats, torch.device('cpu'))
    return result


def report(result: dict) -> str:
    columns = 'features', 'manifest', 'names', 'pairwise'
    lines = [title(result), f'| names | {" | ".join(columns)} |',
             '|---' * 5 + '|']
    for number, seconds in result['seconds'].items():
        cells = [f'{seconds[key]:.4f} s' if key in seconds else ''
                 for key in columns]
        lines.append(f'| {number} | {" | ".join(cells)} |')
    return '\n'.join(lines)
