# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Scores of each frame of untrimmed videos."""
from pathlib import Path

import numpy as np
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ...apis.runner import build_runner
from ...online.frame_scores import FrameScores
from ...utils.lines import read_lines
from ..console import no_prints
from ..work_dir import load_run_config
from .config import FEATURE_RATE
from .features import stream_name


class _CollectScoresHook(Hook):
    """Collect the scores of each video, [T, K], in ``scores``."""

    def __init__(self) -> None:
        self.scores: dict[str, np.ndarray] = {}

    def after_test_iter(self, runner: Runner, batch_idx: int,
                        data_batch: dict, outputs: list) -> None:
        """Store the scores of a batch of videos."""
        for sample in outputs:
            self.scores[sample.video_name] = (
                sample.pred_action.float().cpu().numpy())


def score_videos(out: Path, split: str
                 ) -> tuple[dict[str, FrameScores], dict[str, float]]:
    """Score the videos of a split with ``best.pth``, like a stream.

    Args:
        out: Work directory.
        split: ``'val'`` or ``'test'``.

    Returns:
        Scores of each video, and the metrics of frames.
    """
    cfg = load_run_config(out, out / f'run/score_{split}')
    cfg.load_from, cfg.resume = str(out / 'best.pth'), False
    names = read_lines(out / f'data/{split}_videos.txt')
    dataset = cfg.test_dataloader.dataset
    is_pixels = dataset.type == 'VideoStreamDataset'
    if is_pixels:
        dataset.ann_file = f'{split}.csv'
        dataset.video_list = str(out / f'data/{split}_videos.txt')
    else:
        dataset.ann_file = f'{split}_features.txt'
        dataset.windows = 'stream'
        names = {stream_name(name): name for name in names}
    runner = build_runner(cfg, True)
    hook = _CollectScoresHook()
    runner.register_hook(hook)
    with no_prints():
        metrics = runner.test()
    loaded = runner.test_dataloader.dataset
    if is_pixels:
        rates = dict(zip(loaded.videos, loaded.rates))
        return {name: FrameScores(rates[name], scores)
                for name, scores in hook.scores.items()}, metrics
    return {names[name]: FrameScores(FEATURE_RATE, scores)
            for name, scores in hook.scores.items()}, metrics
