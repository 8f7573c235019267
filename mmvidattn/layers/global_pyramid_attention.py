# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import softmax_attention
from ..utils.arguments import check_arguments, check_divides
from .patch_conv import PatchConv3d

Size = tuple[int, int, int]

Pooling = Literal['dwconv', 'factorized', 'conv', 'avg']
# Side of the first of the two kernels of a coarse level.
COARSE_STEP = 7


class AveragePool3d(nn.Module):
    """Average the tokens of each block; incomplete blocks have fewer tokens.

    Args:
        kernel_size: Frames, rows and columns of a block.
    """

    def __init__(self, kernel_size: Size) -> None:
        super().__init__()
        self.kernel_size = tuple(kernel_size)

    def forward(self, x: Tensor) -> Tensor:
        """Pool [B, T, H, W, C] to [B, T', H', W', C]."""
        kernel_size = tuple(map(min, self.kernel_size, x.shape[1:4]))
        return F.avg_pool3d(
            x.movedim(-1, 1), kernel_size, ceil_mode=True,
            count_include_pad=False).movedim(1, -1)


class CoarseLevel(nn.Module):
    """Coarse level of the pyramid: two convolutions with BatchNorm and ReLU.

    Incomplete blocks are skipped, as in the released code.

    Args:
        embed_dims: Channels C.
        kernel_size: Frames, rows and columns of a block of both convolutions
            together; at least 7 rows and columns.
        by_channel: Use depth-wise convolutions.
    """

    def __init__(self, embed_dims: int, kernel_size: Size,
                 by_channel: bool) -> None:
        super().__init__()
        t, h, w = kernel_size
        first = (1, COARSE_STEP, COARSE_STEP)
        second = (t, h // COARSE_STEP, w // COARSE_STEP)
        self.conv1, self.conv2 = (
            PatchConv3d(embed_dims, embed_dims, size, by_channel,
                        keep_rest=False) for size in (first, second))
        self.norm = nn.BatchNorm3d(embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        """Reduce [B, T, H, W, C] to [B, T', H', W', C]."""
        x = self.norm(self.conv1(x).movedim(-1, 1)).movedim(1, -1)
        return self.conv2(F.relu(x))


@check_arguments
class GlobalPyramid(nn.Module):
    """Pooling of a clip's tokens to several scales, for keys and values.

    This is the pyramid of `DualFormer <https://arxiv.org/abs/2112.04674>`_,
    Sec. 3.2.2.

    Like the released code, it differs from the paper: the finest level is a
    single convolution. A coarser level has two convolutions, first in space,
    then in space and time, with BatchNorm and ReLU between them. A LayerNorm
    follows. ``pooling='factorized'`` is the paper's pyramid (Eq. 3): each
    level has a convolution in space, then one in time, and no norm follows.

    Differs from the released code: incomplete blocks of the finest level are
    padded with zeros; the released code skips them.

    Args:
        embed_dims: Channels C.
        kernels: Block (frames, rows, columns) of each level, the finest
            first. If empty, the tokens are the priors.
        pooling: Reduction of a block to a prior: 'dwconv' (depth-wise
            convolution), 'factorized' (two depth-wise convolutions), 'conv'
            (full convolution) or 'avg' (mean). Defaults to 'dwconv'.
    """

    def __init__(self, embed_dims: int, kernels: Sequence[Size],
                 pooling: Pooling = 'dwconv') -> None:
        super().__init__()
        self.levels = nn.ModuleList()
        for i, kernel in enumerate(kernels):
            if pooling == 'avg':
                level = AveragePool3d(kernel)
            elif pooling == 'factorized':
                level = nn.Sequential(*(
                    PatchConv3d(embed_dims, embed_dims, size, by_channel=True)
                    for size in ((1, *kernel[1:]), (kernel[0], 1, 1))))
            elif i and min(kernel[1:]) >= COARSE_STEP:
                level = CoarseLevel(embed_dims, kernel, pooling == 'dwconv')
            else:
                level = PatchConv3d(embed_dims, embed_dims, kernel,
                                    pooling == 'dwconv')
            self.levels.append(level)
        has_norm = self.levels and pooling != 'factorized'
        self.norm = nn.LayerNorm(embed_dims) if has_norm else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Reduce tokens [B, T, H, W, C] to priors [B, S, C]."""
        if not self.levels:
            return x.flatten(1, 3)
        priors = [level(x).flatten(1, 3) for level in self.levels]
        return self.norm(torch.cat(priors, dim=1))


class GlobalPyramidAttention(nn.Module):
    """Softmax attention of all tokens to the pooled tokens of a pyramid.

    This is the attention GP-MSA of `DualFormer
    <https://arxiv.org/abs/2112.04674>`_, Sec. 3.2.2. The paper calls the
    pooled tokens priors.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G.
        kernels: See :class:`GlobalPyramid`.
        pooling: See :class:`GlobalPyramid`. Defaults to 'dwconv'.
        qkv_bias: Add a bias to the projections to Q and to K, V. Defaults to
            True.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 kernels: Sequence[Size],
                 pooling: str = 'dwconv',
                 qkv_bias: bool = True) -> None:
        super().__init__()
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        self.num_heads = num_heads
        self.pyramid = GlobalPyramid(embed_dims, kernels, pooling)
        self.q = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims, bias=qkv_bias)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        """Attend within clips [B, T, H, W, C]; return the same shape."""
        kv = self.kv(self.pyramid(x)).unflatten(-1, (2, self.num_heads, -1))
        k, v = kv.unbind(-3)
        q = self.q(x.flatten(1, 3)).unflatten(-1, (self.num_heads, -1))
        y = softmax_attention(q, k, v)
        return self.proj(y.flatten(-2)).view(x.shape)
