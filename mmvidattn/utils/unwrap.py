# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmengine.model import is_model_wrapper
from torch import nn


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model inside a wrapper such as DistributedDataParallel."""
    return model.module if is_model_wrapper(model) else model
