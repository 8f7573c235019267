# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Clips and runs of ``mmvidattn finetune`` in studies of few clips."""
import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tools.harness import run_program

MODEL = 'linear_ff_tiny_motion'
# File, class and split of a clip.
Row = tuple[Path, str, str]


def write_motions(out: Path, seed: int, num_train: int, num_test: int,
                  noise: int = 0) -> Iterator[Row]:
    """Write clips of the motion set's four double motions; yield their rows.

    Args:
        out: Folder of the clips.
        seed: Seed of the clips.
        num_train: Number of clips for training.
        num_test: Number of clips for the test.
        noise: Standard deviation of the noise in gray levels. Defaults to 0.
    """
    run_program('data/motion/make_motion.py', out, '--motions', 'double',
                '--seed', seed, '--noise', noise, '--train', num_train,
                '--val', num_test)
    classes = (out / 'label_map.txt').read_text().splitlines()
    for name, split in ('train', 'train'), ('val', 'test'):
        for line in (out / f'{name}.txt').read_text().splitlines():
            video, label = line.split()
            yield out / video, classes[int(label)], split


def write_list(path: Path, rows: Iterable[Row]) -> Path:
    """Write the CSV list of clips that ``mmvidattn finetune`` reads."""
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['file', 'label', 'split'])
        writer.writerows((video.resolve(), *rest) for video, *rest in rows)
    return path


def fine_tune(clips: Path, out: Path, *options: object
              ) -> tuple[dict[str, Any], float]:
    """Run the command; return its metrics and the seconds that it took.

    Args:
        clips: List of the clips.
        out: Work directory of the run; the log lies beside it.
        options: More options of the command.

    Raises:
        ValueError: If the command fails.
    """
    began = time.monotonic()
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out.parent / f'{out.name}.log', 'a') as log:
        done = subprocess.run(
            [sys.executable, '-m', 'mmvidattn', 'finetune', clips, '--model',
             MODEL, '--work-dir', out, '--workers', '0', *map(str, options)],
            stdout=log, stderr=log)
    if done.returncode:
        raise ValueError(f'{out.name} failed; see {log.name}')
    metrics = json.loads((out / 'metrics.json').read_text('utf-8'))
    return metrics, time.monotonic() - began
