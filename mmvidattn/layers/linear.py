# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from ..ops import linear


class Linear(nn.Linear):
    """``nn.Linear`` that calls :func:`mmvidattn.ops.linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
