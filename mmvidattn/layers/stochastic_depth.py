# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmcv.cnn.bricks import DropPath
from torch import Tensor


class StochasticDepth(DropPath):
    """Drop a residual branch of some samples, without rescaling the others.

    As in the released ViViT. ``DropPath``, which it is otherwise, divides by
    the probability of keeping a branch, so that its mean is that of testing.

    Args:
        drop_prob: Probability of dropping the branch of a sample.
    """

    def forward(self, x: Tensor) -> Tensor:
        """[B, *] to the same shape."""
        y = super().forward(x)
        return y * (1 - self.drop_prob) if self.training else y
