# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Short training runs that draw from every random generator."""
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmaction.structures import ActionDataSample
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from torch import nn
from torch.utils.data import Dataset

from mmvidattn.engine import VideoRunner

# Runs of the same name would share their logs.
NUMBERS = itertools.count()


class Data(Dataset):
    """Dataset of numbers with noise from Python, numpy and torch."""

    def __len__(self):
        # Makes four batches of three, of which the last is smaller.
        return 11

    def __getitem__(self, index):
        noise = random.random() + np.random.rand() + torch.rand(3)
        return dict(inputs=index + noise.float(),
                    data_samples=ActionDataSample(
                        metainfo=dict(filename=f'{index}.mp4')))


class Model(BaseModel):
    """Model with dropout and BatchNorm."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5),
            nn.Linear(4, 1))

    def forward(self, inputs, data_samples=None, mode='tensor'):
        out = self.layers(torch.stack(list(inputs)))
        # mixup draws from numpy.
        out = out * np.random.rand()
        if mode == 'loss':
            return dict(loss=(out - 1).square().mean())
        for sample, score in zip(data_samples, out):
            sample.pred_score = score.detach()
        return data_samples


class WeightMetric(BaseMetric):
    """Metric computed from the weights, which also draws random numbers.

    Some models draw random numbers in validation, too.
    """

    def process(self, data_batch, data_samples):
        self.results.append(torch.rand(()).item())

    def compute_metrics(self, results):
        state = self.model.state_dict()
        return dict(acc=state['layers.0.weight'].sum().item(),
                    loss=state['layers.0.bias'].sum().item())


class Stop(Exception):
    """Interruption of a run."""


class StopHook(Hook):
    """Interrupt a run at the ``count``-th event."""
    priority = 'LOWEST'

    def __init__(self, event: str, count: int) -> None:
        self.left = count
        setattr(self, event, self.count_down)

    def count_down(self, runner, *args, **kwargs):
        self.left -= 1
        if not self.left:
            raise Stop


def build(work_dir: Path, *, by_epoch: bool = True, resume: bool = False,
          workers: int = 0, checkpoint: dict | None = None,
          stop: tuple[str, int] | None = None, hooks: list = (),
          wrapper: dict | None = None, loader: dict | None = None,
          seed: int | None = 0,
          **default_hooks: Any) -> VideoRunner:
    """Build a runner of 4 epochs of 4 batches, or of 16 iterations."""
    torch.manual_seed(0)
    model = Model()
    metric = WeightMetric()
    metric.model = model
    workers = dict(num_workers=workers, persistent_workers=workers > 0)
    many = dict(max_epochs=4, val_interval=1, by_epoch=True) if by_epoch \
        else dict(max_iters=16, val_interval=4, by_epoch=False)
    custom = [*hooks] + ([StopHook(*stop)] if stop else [])
    return VideoRunner(
        model,
        str(work_dir),
        dict(dataset=Data(), batch_size=3,
             sampler=dict(type='DefaultSampler', shuffle=True),
             **workers) | (loader or {}),
        dict(dataset=Data(), batch_size=5, num_workers=0,
             sampler=dict(type='DefaultSampler', shuffle=False)),
        train_cfg=many,
        val_cfg=dict(),
        val_evaluator=Evaluator(metric),
        optim_wrapper=dict(
            optimizer=dict(type='AdamW', lr=0.01), **(wrapper or {})),
        param_scheduler=dict(type='CosineAnnealingLR', T_max=16,
                             by_epoch=False),
        default_hooks={name: hook for name, hook in {
            'checkpoint': dict(
                type='AtomicCheckpointHook', interval=1, max_keep_ckpts=2,
                save_best='acc', by_epoch=by_epoch) | (checkpoint or {}),
            'exact_resume': dict(type='ExactResumeHook'),
            **default_hooks
        }.items() if hook is not None},
        custom_hooks=custom,
        randomness=dict(seed=seed),
        resume=resume, log_level='INFO', default_scope='mmaction',
        experiment_name=f'{work_dir.name}_{next(NUMBERS)}')


def log_of(work_dir: Path) -> str:
    """Return the logs of all runs in a folder."""
    return ''.join(path.read_text() for path in sorted(
        work_dir.rglob('*.log')))
