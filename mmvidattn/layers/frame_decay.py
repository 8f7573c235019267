# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import torch
from torch import Tensor, nn

from ..utils.arguments import Count, Positive, check_arguments


@check_arguments
class FrameDecay(nn.Module):
    """Decay of previous frames in causal attention, for each head.

    The weight of a previous frame is multiplied by ``exp(-rate * age)``, where
    the age is in nominal frame intervals. The half-lives rise geometrically
    over the heads.

    Args:
        num_heads: Number of heads G.
        half_life: Half-lives of the first and of the last head, in nominal
            intervals. Defaults to (8, 512).
        learned: Learn a factor of each rate. Its logarithm is the parameter,
            so weight decay pulls a rate to its initial value. Defaults to
            True.
    """

    def __init__(self,
                 num_heads: Count,
                 half_life: tuple[Positive, Positive] = (8, 512),
                 learned: bool = True) -> None:
        super().__init__()
        first, last = map(math.log, half_life)
        self.register_buffer(
            'initial_rate',
            math.log(2) / torch.linspace(first, last, num_heads).exp(),
            persistent=False)
        self.log_factor = nn.Parameter(
            torch.zeros(num_heads)) if learned else None

    def forward(self) -> Tensor:
        """Return the rate of each head, [G]."""
        if self.log_factor is None:
            return self.initial_rate
        return self.initial_rate * self.log_factor.exp()
