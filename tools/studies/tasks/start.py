# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Initial weights and training loop of all runs."""
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from mmaction.registry import MODELS
from mmaction.utils import register_all_modules
from mmengine.model import BaseModel
from mmengine.optim import build_optim_wrapper
from mmengine.runner import set_random_seed
from torch.optim.lr_scheduler import LambdaLR

from tools.studies.study import Training

WARM_UP = 50


def _fresh(config: dict, seed: int) -> BaseModel:
    set_random_seed(seed)
    model = MODELS.build(config['model'])
    model.init_weights()
    return model


def build(config: dict, reference: dict | None, seed: int) -> BaseModel:
    """Build a model with the initial weights of a seed.

    Args:
        config: Config of the model.
        reference: Config of another model. Parameters with the same name and
            shape in both start with the values of this model, so that the
            compared models differ as little as possible.
        seed: Seed of the random generator, which draws the initial weights
            and then dropout.
    """
    register_all_modules(init_default_scope=True)
    model = _fresh(config, seed)
    if reference is not None:
        state = model.state_dict()
        state.update({
            name: value
            for name, value in _fresh(reference, seed).state_dict().items()
            if name in state and state[name].shape == value.shape})
        model.load_state_dict(state)
    torch.manual_seed(seed)
    return model


def _warm_up_and_cosine(steps: int) -> Callable[[int], float]:
    """Return the learning-rate factor by update: linear, times a cosine."""
    rise = min(WARM_UP, steps)
    return lambda step: (min(1., (step + 1) / rise)
                         * 0.5 * (1 + math.cos(math.pi * step / steps)))


def fit(model: BaseModel, config: dict, batches: Iterable[dict[str, Any]],
        rate: float, steps: int) -> float:
    """Train a model.

    Args:
        model: Model to train.
        config: Config with the optimizer in ``optim_wrapper``.
        batches: Preprocessed batches, one per update.
        rate: Learning rate.
        steps: Number of updates.

    Returns:
        Mean loss of the last tenth of the updates.
    """
    optim = build_optim_wrapper(model, {
        **config['optim_wrapper'],
        'optimizer': {**config['optim_wrapper']['optimizer'], 'lr': rate}})
    scheduler = LambdaLR(optim.optimizer, _warm_up_and_cosine(steps))
    losses = []
    model.train()
    for _, batch in zip(range(steps), batches):
        loss, _ = model.parse_losses(model(**batch, mode='loss'))
        optim.update_params(loss)
        scheduler.step()
        losses.append(loss.item())
    last = losses[-max(1, steps // 10):]
    return sum(last) / len(last)


def train_model(
    job: Training,
    batches: Callable[[BaseModel, Training], Iterable[dict[str, Any]]]
) -> tuple[BaseModel, float]:
    """Build and train the model of a row.

    Args:
        job: Config, data and settings of the training.
        batches: Function that returns the preprocessed batches for a model,
            one per update.

    Returns:
        The model, and the mean loss of the last tenth of the updates.
    """
    model = build(job.config, job.reference, job.seed)
    return model, fit(model, job.config, batches(model, job), job.rate,
                      job.steps)
