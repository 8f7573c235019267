# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Features of the frozen layers of a run, computed once for each clip."""
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from mmengine.config import Config
from rich.progress import Progress
from safetensors.torch import save_file

from ..apis.runner import build_runner
from ..datasets.annotations.custom.labeled_videos import count
from ..utils.files import replacing
from ..utils.printable import echo
from .console import no_prints


def write_features(cfg: Config, split: str, path: Path) -> None:
    """Run the frozen layers on the clips of a split, and write the results.

    Unreadable clips are left out and counted. Training clips are augmented
    once.

    Args:
        cfg: Config of the run, whose data loaders read videos.
        split: 'train' or 'val'.
        path: File for :class:`~mmvidattn.datasets.FrozenFeatureDataset`.

    Raises:
        ValueError: If no clip can be read, or the features of the model
            cannot be stored.
    """
    cfg = cfg.copy()
    loader = cfg[f'{split}_dataloader']
    dataset = loader.dataset
    while 'dataset' in dataset:
        # Repetitions and the balance of classes apply to the features.
        dataset = dataset.dataset
    cfg.test_dataloader = dict(
        batch_size=loader.batch_size, num_workers=loader.num_workers,
        sampler=dict(type='DefaultSampler', shuffle=False), dataset=dataset)
    cfg.test_cfg, cfg.test_evaluator = {}, dict(type='AccMetric')
    features, labels, lost = [], [], 0
    with no_prints(), TemporaryDirectory() as folder:
        cfg.work_dir = folder
        # Not strict, because the head may have other classes.
        runner = build_runner(cfg, False)
        batches = runner.test_loop.dataloader
        runner.load_or_resume()
    model = runner.model.eval()
    with Progress(transient=True) as progress:
        for batch in progress.track(batches, description='frozen layers'):
            batch = model.data_preprocessor(batch)
            values = model.frozen_features(batch['inputs']).cpu()
            for sample, one in zip(batch['data_samples'], values):
                if 'unreadable' in sample:
                    lost += 1
                    continue
                features.append(one)
                labels.append(sample.gt_label.cpu())
    if not features:
        raise ValueError(f'no clip of {dataset.ann_file} can be read')
    if lost:
        echo(f'note: {split} features: {count(range(lost), "clip")} left out, '
             'because they cannot be read')
    with replacing(path) as part:
        save_file(dict(features=torch.stack(features).contiguous(),
                       labels=torch.stack(labels)), part)
