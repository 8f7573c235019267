# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from .stochastic_depth import StochasticDepth


class VideoTransformerBlock(nn.Module):
    """Pre-norm block: one attention or two, then the MLP.

    Args:
        attentions: The attentions by name, in the order of their use.
        mlp: The MLP.
        embed_dims: Channels C.
        drop_path: Probability of dropping a residual branch.
        eps: Added to the variance in LayerNorm.
        scale_by_keep: Whether a branch that is kept is divided by the
            probability of that.
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
        """[B, T, H, W, C] to the same shape."""
        for name in self.branches:
            branch = getattr(self, name)
            norm = getattr(self, f'{name}_norm')
            x = x + self.drop_path(branch(norm(x)))
        return x
