# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from .stochastic_depth import StochasticDepth


class VideoTransformerBlock(nn.Module):
    """Pre-norm block: one or two attentions, then the MLP.

    Args:
        attentions: Attentions by name, in the order of use.
        mlp: MLP.
        embed_dims: Channels C.
        drop_path: Probability of dropping a residual branch. Defaults to 0.
        eps: Added to the variance in LayerNorm. Defaults to 1e-6.
        scale_by_keep: Divide a branch that is kept by the probability of
            keeping it. Defaults to True.
    """

    def __init__(self,
                 attentions: dict[str, nn.Module],
                 mlp: nn.Module,
                 embed_dims: int,
                 drop_path: float = 0.,
                 eps: float = 1e-6,
                 scale_by_keep: bool = True) -> None:
        super().__init__()
        self.branches = (*attentions, 'mlp')
        for name, branch in {**attentions, 'mlp': mlp}.items():
            self.add_module(f'{name}_norm', nn.LayerNorm(embed_dims, eps=eps))
            self.add_module(name, branch)
        self.drop_path = (DropPath
                          if scale_by_keep else StochasticDepth)(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block to tokens [B, T, H, W, C]."""
        for name in self.branches:
            branch = getattr(self, name)
            norm = getattr(self, f'{name}_norm')
            x = x + self.drop_path(branch(norm(x)))
        return x
