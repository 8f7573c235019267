# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any

from torch import nn

from .causal_transformer import CausalTransformer
from .causal_transformer_step import CausalTransformerStep
from .mat import MAT
from .mat_step import MATStep
from .miniroad import MiniROAD
from .miniroad_step import MiniROADStep
from .stream_step import StreamStep
from .testra import TeSTra

STEPS = {
    CausalTransformer: CausalTransformerStep,
    MAT: MATStep,
    MiniROAD: MiniROADStep,
    TeSTra: StreamStep,
}


def make_stream_step(model: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """The step of a batch of streams of a model.

    Args:
        model: :class:`mmvidattn.recognizers.OnlineActionDetector` in eval
            mode.
        *args: Of :class:`mmvidattn.online.StreamStep`, which every network's
            step takes.
        **kwargs: Likewise.

    Raises:
        ValueError: If the backbone has no step, or the options do not fit it.
    """
    for kind, step in STEPS.items():
        if isinstance(model.backbone, kind):
            return step(model, *args, **kwargs)
    raise ValueError(
        'a stream takes a model whose backbone is one of '
        f'{", ".join(kind.__name__ for kind in STEPS)}, got '
        f'{type(model.backbone).__name__}')
