# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""How all runs begin and go on."""
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

WARM_UP = 50


def _fresh(config: dict, seed: int) -> BaseModel:
    set_random_seed(seed)
    model = MODELS.build(config['model'])
    model.init_weights()
    return model


def build(config: dict, reference: dict | None, seed: int) -> BaseModel:
    """A model with the initial weights that a seed gives.

    Args:
        config: Its config.
        reference: Config of the model whose initial weights it takes where
            names and shapes agree, so that rows differ as little as can be.
        seed: Of the weights, and of dropout from here on.
    """
    register_all_modules(init_default_scope=True)
    model = _fresh(config, seed)
    if reference is not None:
        shared = _fresh(reference, seed).state_dict()
        own = model.state_dict()
        own.update({name: value for name, value in shared.items()
                    if name in own and own[name].shape == value.shape})
        model.load_state_dict(own)
    torch.manual_seed(seed)
    return model


def _warm_up_and_cosine(steps: int) -> Callable[[int], float]:
    """Factor of the learning rate at an update: up in a line, then down."""
    rise = min(WARM_UP, steps)
    return lambda step: (min(1., (step + 1) / rise)
                         * 0.5 * (1 + math.cos(math.pi * step / steps)))


def fit(model: BaseModel, config: dict, batches: Iterable[dict[str, Any]],
        rate: float, steps: int) -> float:
    """Train a model.

    Args:
        model: To be trained.
        config: Its optimizer is that of ``optim_wrapper``.
        batches: Of each update what the model takes, preprocessed.
        rate: Learning rate.
        steps: Updates.

    Returns:
        The mean loss of the last tenth of the updates.
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
