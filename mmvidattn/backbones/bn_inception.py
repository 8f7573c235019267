# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections import OrderedDict

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Count, check_arguments

# Channels of the branches of each block: 1x1; 3x3 (reduction, convolution);
# two 3x3 (reduction, convolutions); projection after the pool. Blocks without
# the first and the last branch halve the resolution.
BLOCKS = dict(
    inception_3a=(64, (64, 64), (64, 96, 96), 32),
    inception_3b=(64, (64, 96), (64, 96, 96), 64),
    inception_3c=(None, (128, 160), (64, 96, 96), None),
    inception_4a=(224, (64, 96), (96, 128, 128), 128),
    inception_4b=(192, (96, 128), (96, 128, 128), 128),
    inception_4c=(160, (128, 160), (128, 160, 160), 128),
    inception_4d=(96, (128, 192), (160, 192, 192), 128),
    inception_4e=(None, (128, 192), (192, 256, 256), None),
    inception_5a=(352, (192, 320), (160, 224, 224), 128),
    inception_5b=(352, (192, 320), (192, 224, 224), 128))
# The only block with a max pooling that keeps the resolution.
MAX_POOLED = 'inception_5b'


class ConvNorm(nn.Sequential):
    """Padded convolution with bias, batch normalization and ReLU."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int,
                 stride: int = 1) -> None:
        super().__init__(OrderedDict(
            conv=nn.Conv2d(in_channels, out_channels, kernel_size, stride,
                           kernel_size // 2),
            norm=nn.BatchNorm2d(out_channels),
            relu=nn.ReLU(inplace=True)))


class InceptionBlock(nn.Module):
    """Parallel branches, concatenated along the channels.

    Args:
        in_channels: Channels C.
        branches: Channels of the branches, see ``BLOCKS``.
        max_pool: Use max pooling instead of average pooling in a block that
            keeps the resolution. Defaults to False.
    """

    def __init__(self, in_channels: int, branches: tuple,
                 max_pool: bool = False) -> None:
        super().__init__()
        single, (reduce, wide), (double_reduce, *double), project = branches
        stride = 1 if single else 2
        self.branches = nn.ModuleDict()
        if single:
            self.branches['1x1'] = ConvNorm(in_channels, single, 1)
        self.branches['3x3'] = nn.Sequential(OrderedDict(
            reduce=ConvNorm(in_channels, reduce, 1),
            conv=ConvNorm(reduce, wide, 3, stride)))
        self.branches['double_3x3'] = nn.Sequential(OrderedDict(
            reduce=ConvNorm(in_channels, double_reduce, 1),
            conv1=ConvNorm(double_reduce, double[0], 3),
            conv2=ConvNorm(double[0], double[1], 3, stride)))
        if project:
            pool = nn.MaxPool2d if max_pool else nn.AvgPool2d
            self.branches['pool'] = nn.Sequential(OrderedDict(
                pool=pool(3, 1, 1),
                proj=ConvNorm(in_channels, project, 1)))
            self.out_channels = single + wide + double[1] + project
        else:
            self.branches['pool'] = nn.MaxPool2d(3, 2, ceil_mode=True)
            self.out_channels = wide + double[1] + in_channels

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches.values()], 1)


@MODELS.register_module()
@check_arguments
class BNInception(BaseModule):
    """Inception with batch normalization, the version that TSN uses.

    The network is from Ioffe and Szegedy, https://arxiv.org/abs/1502.03167,
    Figure 5. TSN, https://arxiv.org/abs/1608.00859, and the extractors of the
    optical-flow features for LSTR and TeSTra use it. The source
    ``bn_inception`` of :mod:`mmvidattn.convert` converts their weights.

    Like the published weights, it differs from the paper: the projections of
    the pools in blocks 4c and 4d have 128 channels instead of 96, and pools of
    stride 2 have no padding and round the resolution up.

    The inputs are images, or optical flow with channels (x, y, x, y, ...), [B,
    C, H, W]. The outputs are [B, 1024, H / 32, W / 32]. The published features
    are their mean over H and W.

    Args:
        in_channels: Channels C: 3 for images, 10 for five flow fields.
            Defaults to 3.
        init_cfg: See ``BaseModule`` of mmengine.
    """
    out_channels = 1024

    def __init__(self, in_channels: Count = 3,
                 init_cfg: dict | list[dict] | None = None) -> None:
        super().__init__(init_cfg=init_cfg or [
            dict(type='Kaiming', layer='Conv2d'),
            dict(type='Constant', layer='BatchNorm2d', val=1)
        ])
        self.in_channels = in_channels
        self.conv1 = ConvNorm(in_channels, 64, 7, 2)
        self.conv2_reduce = ConvNorm(64, 64, 1)
        self.conv2 = ConvNorm(64, 192, 3)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        channels = 192
        for name, branches in BLOCKS.items():
            block = InceptionBlock(channels, branches, name == MAX_POOLED)
            self.add_module(name, block)
            channels = block.out_channels

    def forward(self, x: Tensor) -> Tensor:
        """Compute features [B, 1024, H / 32, W / 32] of [B, C, H, W]."""
        if x.dim() != 4 or x.shape[1] != self.in_channels or any(
                side % 32 for side in x.shape[2:]):
            raise ValueError(
                f'BNInception takes [B, {self.in_channels}, H, W], H and W '
                'multiples of 32, got a tensor of shape '
                f'{tuple(x.shape)}')
        x = self.pool(self.conv1(x))
        x = self.pool(self.conv2(self.conv2_reduce(x)))
        for name in BLOCKS:
            x = self.get_submodule(name)(x)
        return x
