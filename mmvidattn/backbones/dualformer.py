# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""DualFormer: local windows, global pyramids.

Paper: *DualFormer: Local-Global Stratified Transformer for Efficient Video
Recognition*, https://arxiv.org/abs/2112.04674. Authors' code:
https://github.com/sail-sg/dualformer.
"""
import math
import warnings
from collections.abc import Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import (
    MLP,
    GlobalPyramidAttention,
    LocalWindowAttention,
    PatchEmbed3d,
    PositionEncodingGenerator,
    VideoTransformerBlock,
)
from ..layers.global_pyramid_attention import Pooling
from ..layers.stochastic_depth import stochastic_depth_rates
from ..ops.sizes import is_any_size
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
)
from ..utils.checks import to_pair
from .base import BaseBackbone, block_names, run_blocks

NUM_STAGES = 4
Pattern = Literal['LG', 'LL', 'GG']
Position = Literal['dwconv', 'relative', 'none']
Size = tuple[Count, Count, Count]


@MODELS.register_module()
@check_arguments
class DualFormer(BaseBackbone):
    """A pyramid of four stages of local and global attention in turns.

    A PyTorch implementation of `DualFormer: Local-Global Stratified
    Transformer for Efficient Video Recognition
    <https://arxiv.org/abs/2112.04674>`_.

    It takes clips of any length and resolution: what does not fill a patch,
    a window or a block of the pyramid is filled with zeros, and in windows
    nothing attends to them. ``num_frames`` and ``img_size`` are those of
    the clips for which the pyramids have the sizes of ``pyramid_sizes``:
    they fix the convolution kernels, which other clips then give more or
    fewer priors. The released checkpoints have the kernels of 32 x 224 x 224,
    and the paper's figures for 16 frames are those of the same kernels; for a
    model built for other clips they are converted when they are loaded.

    Differs from the paper, and is as released: patches come from a strided
    convolution and LayerNorm in each stage; positions are added after the
    first block of a stage and its MLP; see also :class:`GlobalPyramid`.
    Differs from the released code: clips of any size; a converted kernel has
    the sum of the original, so that it means the same of a still video (the
    released code loads no kernel of another shape, and starts it afresh).

    Args:
        arch: 'tiny', 'small', 'base', or a dict of embed_dims (those of the
            first stage; each stage has twice the channels of the one before),
            num_layers and num_heads (of each stage). Layers are blocks of one
            attention and one MLP; the paper counts pairs.
        num_frames: Frames T of the clips that the kernels are made for.
        img_size: Their height and width, or one number for both.
        in_channels: Channels of a frame.
        patch_size: Frames, rows and columns of a patch.
        temporal_pooling: Frames of tokens that the second, third and fourth
            stage make one of (Table 7).
        pattern: Attentions of each stage: 'LG' (local and global in turns),
            'LL' or 'GG' (Table 3).
        window_size: Frames, rows and columns of a window, or those of each
            stage (Table 4).
        pyramid_sizes: Of each stage the sizes (frames, rows, columns) of its
            levels, the finest first. Without any, or where the finest has the
            size of the grid, the tokens themselves are keys and values.
        pooling: 'dwconv', 'conv' or 'avg': see :class:`GlobalPyramid`
            (Table 5).
        position: 'dwconv' (a position encoding generator in each stage),
            'relative' (a bias of each distance within a window) or 'none'
            (Table 6).
        mlp_ratio: Hidden channels of the MLP, in channels.
        qkv_bias: Bias of the projections to Q, K and V.
        drop_rate: Dropout in the MLP.
        drop_path_rate: Stochastic depth of the last block; the others'
            increases linearly.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialization.
            0.02 suits some 500 channels; narrow models learn faster from
            ``embed_dims ** -0.5``.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` starts from
            the tensors of FILE that match in name and shape, such as a 2D
            DualFormer through ``tools/convert.py dualformer_2d``, and prints
            which did.
    """
    any_length = True
    arch_zoo = dict(
        tiny=dict(
            embed_dims=64, num_layers=(2, 2, 10, 4), num_heads=(2, 4, 8, 16)),
        small=dict(
            embed_dims=96, num_layers=(2, 2, 18, 2), num_heads=(3, 6, 12,
                                                                24)),
        base=dict(
            embed_dims=128, num_layers=(2, 2, 18, 2), num_heads=(4, 8, 16,
                                                                 32)))

    def __init__(self,
                 arch: str | dict = 'tiny',
                 num_frames: Count = 32,
                 img_size: Count | tuple[Count, Count] = 224,
                 in_channels: Count = 3,
                 patch_size: Size = (2, 4, 4),
                 temporal_pooling: Size = (1, 1, 1),
                 pattern: Sequence[Pattern] = ('LG', 'LG', 'LG', 'LG'),
                 window_size: Size | Sequence[Size] = (8, 7, 7),
                 pyramid_sizes: Sequence[Sequence[Size]] = (
                     ((8, 7, 7), (4, 4, 4)), ((8, 7, 7), (4, 4, 4)),
                     ((8, 7, 7), ), ()),
                 pooling: Pooling = 'dwconv',
                 position: Position = 'dwconv',
                 mlp_ratio: Positive = 4,
                 qkv_bias: bool = True,
                 drop_rate: Fraction = 0.,
                 drop_path_rate: Fraction = 0.,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None) -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(arch)
        windows = window_size
        if isinstance(window_size[0], int):
            windows = [window_size] * NUM_STAGES
        for name, value in (('pattern', pattern), ('window_size', windows),
                            ('pyramid_sizes', pyramid_sizes)):
            if len(value) != NUM_STAGES:
                raise ValueError(f'{name} must be those of each of the '
                                 f'{NUM_STAGES} stages, got {value}')
        self.patch_embeds = nn.ModuleList()
        self.blocks = nn.ModuleList()
        self.pegs = nn.ModuleList()
        grid_shape = (num_frames, *to_pair(img_size))
        patches = [patch_size] + [(n, 2, 2) for n in temporal_pooling]
        rates = iter(
            stochastic_depth_rates(drop_path_rate, sum(arch['num_layers'])))
        channels = in_channels
        for i, patch in enumerate(patches):
            dims, num_heads = arch['embed_dims'] * 2**i, arch['num_heads'][i]
            self.patch_embeds.append(PatchEmbed3d(channels, dims, patch))
            grid_shape = tuple(-(-n // k) for n, k in zip(grid_shape, patch))
            kernels = self._kernels(grid_shape, pyramid_sizes[i])
            self.blocks.append(nn.ModuleList())
            for j in range(arch['num_layers'][i]):
                if pattern[i][j % 2] == 'L':
                    attn = LocalWindowAttention(
                        dims, num_heads, windows[i], qkv_bias,
                        with_relative_bias=position == 'relative')
                else:
                    attn = GlobalPyramidAttention(dims, num_heads, kernels,
                                                  pooling, qkv_bias)
                mlp = MLP(dims, int(mlp_ratio * dims), dropout=drop_rate)
                self.blocks[i].append(
                    VideoTransformerBlock(
                        dict(attn=attn), mlp, dims, next(rates), eps=1e-5))
            if position == 'dwconv':
                self.pegs.append(PositionEncodingGenerator(dims))
            channels = dims
        self.norm = nn.LayerNorm(channels)

    @staticmethod
    def _kernels(grid_shape: Size, sizes: Sequence[Size]) -> list[Size]:
        """Blocks of each level of a pyramid; none if the finest is whole."""
        kernels = [
            tuple(max(n // size, 1) for n, size in zip(grid_shape, level))
            for level in sizes
        ]
        return kernels if kernels and math.prod(kernels[0]) > 1 else []

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Frames of a patch; the last ones of a clip may be fewer."""
        t = self.patch_embeds[0].projection.kernel_size[0]
        return [tuple(range(i, min(i + t, num_frames)))
                for i in range(0, num_frames, t)]

    def encode_frames(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to patches [B, T', H', W', D]."""
        # Channels last from here on.
        return self.patch_embeds[0](x.movedim(1, -1))

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Patches of clips to token features [B, D, T', H', W']."""
        for i, (embed, blocks) in enumerate(
                zip(self.patch_embeds, self.blocks)):
            x = run_blocks(blocks[:1], embed(x) if i else x, self.with_cp)
            if len(self.pegs):
                x = self.pegs[i](x)
            x = run_blocks(blocks[1:], x, self.with_cp)
        x = self.norm(x).movedim(-1, 1)
        # Of channels that lie last, pooling asks whether the batch is 1.
        return x.contiguous() if any(map(is_any_size, x.shape)) else x

    def _init_parameters(self) -> None:
        """As the released code does: convolutions are left as torch has them.

        Linear layers: truncated normal of ``init_std``, zero bias. The
        relative bias: truncated normal of 0.02.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=self.init_std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif getattr(module, 'relative_bias', None) is not None:
                nn.init.trunc_normal_(module.relative_bias, std=0.02)

    def layer_groups(self) -> list[list[str]]:
        """See :class:`BaseBackbone`; patches join the block before them."""
        groups = [[]]
        for i, blocks in enumerate(self.blocks):
            groups[-1].append(f'patch_embeds.{i}')
            groups += block_names(f'blocks.{i}', blocks)
            groups[-len(blocks)].append(f'pegs.{i}')
        return [*groups, ['norm']]

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Fit the kernels of a checkpoint to those of this model.

        An image model's are repeated over the frames. If those of clips are
        resized it warns: on moving pictures they are another model.
        """
        resized = []
        for name, own in self.named_parameters():
            kernel = state_dict.get(prefix + name)
            if kernel is None or own.dim() != 5 or kernel.dim() not in (4, 5):
                continue
            if kernel.dim() == 4:
                kernel = kernel.unsqueeze(2)
            elif kernel.shape[2:] != own.shape[2:]:
                resized.append(f'{prefix}{name} {tuple(kernel.shape[2:])} to '
                               f'{tuple(own.shape[2:])}')
            state_dict[prefix + name] = _resize(kernel, own.shape[2:])
        if resized:
            warnings.warn(
                'the checkpoint is of a DualFormer of other clips, and '
                f'{len(resized)} of its kernels are resized: {resized[0]}'
                f'{", ..." if len(resized) > 1 else ""}. With its own '
                'num_frames and img_size this model gives the scores that it '
                'was trained for', stacklevel=2)


def _resize(kernel: Tensor, size: Size) -> Tensor:
    """A kernel [K, C, kt, kh, kw] of another size, with the same sum.

    Each old place is spread evenly over the new ones that it covers.
    """
    out = kernel
    for axis, (old, new) in enumerate(zip(kernel.shape[2:], size), 2):
        if old == new:
            continue
        i = torch.arange(new, dtype=torch.float64)[:, None]
        j = torch.arange(old, dtype=torch.float64)
        # How much of old place j is in new place i.
        overlap = torch.minimum((i + 1) / new, (j + 1) / old) - torch.maximum(
            i / new, j / old)
        share = (overlap.clamp(min=0) * old).to(out.device)
        out = (out.double().movedim(axis, -1) @ share.T).movedim(-1, axis)
    return out.to(kernel.dtype)
