# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmcv.cnn.bricks import DropPath
from torch import Tensor


def stochastic_depth_rates(last: float, num_blocks: int) -> list[float]:
    """Return drop rates of blocks that rise linearly from 0 to ``last``.

    Raises:
        ValueError: If ``last`` is not in [0, 1).
    """
    if not 0 <= last < 1:
        raise ValueError('drop_path_rate must be at least 0 and below 1, got '
                         f'{last}')
    return [last * i / max(num_blocks - 1, 1) for i in range(num_blocks)]


class StochasticDepth(DropPath):
    """``DropPath`` without rescaling of kept branches.

    ``DropPath`` divides a kept branch by the probability of keeping it, so
    that the mean in training equals the output in testing. This module does
    not, like the released code of ViViT.

    Args:
        drop_prob: Probability of dropping the branch of a sample.
    """

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * (1 - self.drop_prob) if self.training else y
