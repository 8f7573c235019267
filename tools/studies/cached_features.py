# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Time the epochs of a training with and without cached features.

    python tools/studies/cached_features.py --out work_dirs/cached_features

A factorized encoder with a frozen spatial transformer (a ViT with random
weights) is trained twice on the same clips, without ``FeatureCacheHook`` and
with it. The program prints the seconds of each epoch and the difference of the
final weights. Clips come from the motion set, or from your own videos with a
folder per class.
"""
import argparse
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

# First, because it applies the workarounds to the packages below.
import mmvidattn  # noqa: F401, I001  isort: skip

import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from mmvidattn.apis.models import load_config
from mmvidattn.apis.runner import build_runner, one_line_errors
from mmvidattn.datasets.annotations.custom.labeled_videos import (
    read_labeled_videos,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import add_counts, parser_of, run_program, table

BASE = 'vivit_tiny_frozen_motion'
# Widths of ViT-S, B and L.
WIDTHS = dict(S=384, B=768, L=1024)


class EpochTimerHook(Hook):
    """Measure the seconds of each epoch, without saving checkpoints."""
    # Runs last before an epoch.
    priority = 'LOWEST'

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def before_train_epoch(self, runner: Runner) -> None:
        """Start the timer."""
        self._began = time.perf_counter()

    def after_train_iter(self, runner: Runner, batch_idx: int,
                         data_batch: dict | None = None,
                         outputs: dict | None = None) -> None:
        """Stop the timer after the last batch."""
        if batch_idx + 1 == len(runner.train_dataloader):
            self.seconds.append(time.perf_counter() - self._began)


def write_list(args: argparse.Namespace, folder: Path) -> Path:
    """Write the list of the clips, and return its path."""
    path = folder / 'clips.txt'
    if args.videos is None:
        run_program('data/motion/make_motion.py', folder / 'motion',
                    '--train', args.clips, '--val', 1)
        lines = (folder / 'motion/train.txt').read_text().splitlines()
        text = ''.join(f'{folder / "motion"}/{line}\n' for line in lines)
    else:
        root, videos, _ = read_labeled_videos(args.videos)
        classes = sorted({video.label for video in videos})
        text = ''.join(
            f'{(root / video.file).resolve()} {classes.index(video.label)}\n'
            for video in videos)
    path.write_text(text, 'utf-8')
    return path


def make_config(args: argparse.Namespace, clips: Path) -> Config:
    """Return the config of the training, without the cache."""
    width = WIDTHS[args.arch]
    cfg = load_config(BASE)
    cfg.model.backbone.update(
        arch=args.arch, embed_dims=None, num_layers=None, num_heads=None,
        num_frames=args.frames, img_size=224, tubelet_frames=1,
        num_temporal_layers=args.temporal_layers, drop_path_rate=0.1)
    cfg.model.cls_head.in_channels = width
    cfg.train_dataloader.update(
        batch_size=args.batch_size, num_workers=args.workers,
        persistent_workers=args.workers > 0)
    cfg.train_dataloader.dataset = dict(
        type='GuardedVideoDataset', ann_file=str(clips), pipeline=[
            dict(type='DecordInit'),
            dict(type='UniformSample', clip_len=args.frames, test_mode=True),
            dict(type='DecordDecode'),
            dict(type='Resize', scale=(224, 224), keep_ratio=False),
            dict(type='FormatShape', input_format='NCTHW'),
            dict(type='PackActionInputs')])
    for split in 'val', 'test':
        for part in 'cfg', 'dataloader', 'evaluator':
            cfg[f'{split}_{part}'] = None
    cfg.train_cfg = dict(by_epoch=True, max_epochs=args.epochs)
    cfg.default_hooks.checkpoint.save_best = None
    cfg.custom_hooks = []
    return cfg


def train(cfg: Config, work_dir: Path
          ) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Train, and return the seconds of each epoch and the weights."""
    cfg.work_dir = str(work_dir)
    cfg.experiment_name = work_dir.name
    timer = EpochTimerHook()
    # Standard output is reserved for the report.
    with redirect_stdout(sys.stderr):
        runner = build_runner(cfg, False)
        runner.register_hook(timer)
        return timer.seconds, runner.train().state_dict()


def format_report(plain: list[float], cached: list[float],
                  difference: float) -> str:
    """Format the report as Markdown.

    Args:
        plain: Seconds of each epoch without the cache.
        cached: Seconds of each epoch with the cache.
        difference: Largest difference of the final weights.
    """
    lines = table(
        ('epoch', 'without, s', 'cached, s'),
        ([f'{i}', f'{one:.3f}', f'{two:.3f}']
         for i, (one, two) in enumerate(zip(plain, cached), 1)))
    same = 'are bit-equal' if difference == 0 else (
        f'differ by at most {difference:.1e}')
    return '\n'.join([
        *lines, '', 'With the cache, the second epoch is '
        f'{cached[0] / cached[1]:.0f} times as fast as the first, and '
        f'{plain[1] / cached[1]:.0f} times as fast as the second epoch '
        f'without the cache; the final weights {same}.', ''])


def parse_args() -> argparse.Namespace:
    parser = parser_of(__doc__)
    add = parser.add_argument
    add('--out', type=Path, required=True, help='folder for report.md')
    add('--videos', type=Path, metavar='FOLDER',
        help='folder with a folder of videos per class (at most 8), or a CSV '
        'file, as for mmvidattn finetune (default: the motion set)')
    add('--arch', choices=WIDTHS, default='S',
        help='architecture of the frozen ViT (default: S)')
    add('--workers', type=int, default=0,
        help='data-loading workers (default: 0)')
    add_counts(
        parser, clips=(24, 'clips of the motion set'),
        frames=(8, 'frames per clip'),
        temporal_layers=(4, 'trained temporal layers'),
        batch_size=(4, 'clips per batch'), epochs=(3, 'epochs, at least 2'))
    args = parser.parse_args()
    if args.epochs < 2:
        parser.error(f'--epochs must be at least 2, got {args.epochs}')
    return args


def main() -> None:
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with one_line_errors(), TemporaryDirectory() as folder:
        clips = write_list(args, Path(folder))
        plain, one = train(make_config(args, clips), Path(folder, 'plain'))
        cfg = make_config(args, clips)
        cfg.custom_hooks = [dict(
            type='FeatureCacheHook', cache_dir=str(Path(folder, 'features')))]
        cached, two = train(cfg, Path(folder, 'cached'))
    difference = max(float((value - two[name]).abs().max())
                     for name, value in one.items())
    text = format_report(plain, cached, difference)
    (args.out / 'report.md').write_text(text)
    print(text, end='')


if __name__ == '__main__':
    main()
