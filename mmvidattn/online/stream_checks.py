# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import nn


def check_stream(model: nn.Module, **rates: int) -> None:
    """Check what the steps of all networks ask of their arguments.

    Args:
        model: What is to read streams.
        **rates: Every how many frames each memory takes one.

    Raises:
        ValueError: If the model is in training, or a rate is below 1.
    """
    if model.training:
        raise ValueError('a stream takes a model in eval mode; call '
                         'model.eval()')
    for name, value in rates.items():
        if value < 1:
            raise ValueError(f'{name} must be at least 1, got {value}')
