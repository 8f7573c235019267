# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""DualFormer: attention in local windows and to global pyramids.

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
    VideoTransformerBlock,
)
from ..layers.global_pyramid_attention import Pooling
from ..layers.video_transformer_block import stochastic_depth_rates
from ..ops.depthwise_conv import depthwise_conv
from ..ops.sizes import is_any_size
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
    to_pair,
)
from .base import BaseBackbone, block_names, run_blocks

NUM_STAGES = 4
Pattern = Literal['LG', 'LL', 'GG']
Position = Literal['dwconv', 'relative', 'none']
Size = tuple[Count, Count, Count]


class PositionEncodingGenerator(nn.Module):
    """Residual depth-wise convolution that encodes positions.

    This is Eq. 4 of `DualFormer <https://arxiv.org/abs/2112.04674>`_. The zero
    padding around the grid reveals the position of a token.

    Args:
        embed_dims: Channels C.
    """

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv3d(
            embed_dims, embed_dims, 3, padding=1, groups=embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        """Add positions to tokens [B, T, H, W, C]."""
        return x + depthwise_conv(x, self.dwconv.weight, self.dwconv.bias)


@MODELS.register_module()
@check_arguments
class DualFormer(BaseBackbone):
    """Pyramid of four stages with alternating local and global attention.

    A PyTorch implementation of `DualFormer: Local-Global Stratified
    Transformer for Efficient Video Recognition
    <https://arxiv.org/abs/2112.04674>`_.

    The network accepts clips of any length and resolution: incomplete
    patches, windows and pyramid blocks are padded with zeros, and windows mask
    the padding. Convolutions reduce tokens to the pyramid levels. Their kernel
    sizes follow from ``num_frames`` and ``img_size``, so that clips of this
    size have levels of ``pyramid_sizes``. For other clips, the levels are
    larger or smaller. The released checkpoints have kernels for 32 x 224 x
    224, and the paper's results for 16 frames use the same kernels. A model
    for another size converts the kernels when it loads a checkpoint.

    Differs from the paper, like the released code: each stage embeds patches
    with a strided convolution and LayerNorm, and adds positions after its
    first block; see also :class:`GlobalPyramid`. ``patch_merging='linear'``
    and ``pooling='factorized'`` follow the paper, as in
    ``configs/dualformer_paper_*.py``.

    Differs from the released code: the network accepts clips of any size, and
    a converted kernel keeps its sum, so that its response to a still video
    does not change. (The released code initializes kernels whose shape differs
    from the checkpoint's.)

    Args:
        arch: 'tiny', 'small', 'base', or a dict of embed_dims (of the first
            stage; the channels double in each stage), num_layers and
            num_heads (of each stage). A layer is a block of one attention and
            one MLP; the paper counts pairs. Defaults to 'tiny'.
        num_frames: Clip length T that determines the kernels. Defaults to 32.
        img_size: Height and width of the clips that determine the kernels, or
            one number for both. Defaults to 224.
        patch_size: Frames, rows and columns of a patch. Defaults to
            (2, 4, 4).
        patch_merging: Reduction of tokens before the second to the fourth
            stage: 'conv' (strided convolution, then LayerNorm) or 'linear' (as
            in Swin: LayerNorm and a linear layer of four concatenated tokens).
            Defaults to 'conv'.
        temporal_pooling: Temporal stride between the stages (Table 7).
            Defaults to (1, 1, 1).
        pattern: Attentions of each stage: 'LG' (local and global
            alternate), 'LL' or 'GG' (Table 3).
        window_size: Frames, rows and columns of a window, for all stages or
            for each (Table 4). Defaults to (8, 7, 7).
        pyramid_sizes: Sizes (frames, rows, columns) of the pyramid levels of
            each stage, the finest first. In a stage without levels, or whose
            finest level has the size of the grid, the tokens are keys and
            values.
        pooling: See :class:`GlobalPyramid` (Table 5). Defaults to 'dwconv'.
        position: 'dwconv' (position encoding generator in each stage),
            'relative' (relative position bias in windows) or 'none'
            (Table 6). Defaults to 'dwconv'.
        in_channels, mlp_ratio: See :class:`BaseBackbone`.
        qkv_bias, drop_rate, drop_path_rate, with_cp, init_std, init_cfg: See
            :class:`BaseBackbone`. ``tools/convert.py dualformer_2d`` converts
            image models.
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
                 init_cfg: dict | None = None,
                 patch_merging: Literal['conv', 'linear'] = 'conv') -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(arch)
        windows = window_size
        if isinstance(window_size[0], int):
            windows = [window_size] * NUM_STAGES
        for name, value in (('pattern', pattern), ('window_size', windows),
                            ('pyramid_sizes', pyramid_sizes)):
            if len(value) != NUM_STAGES:
                raise ValueError(f'{name} must have an entry for each of the '
                                 f'{NUM_STAGES} stages, got {value}')
        from mmaction.models.backbones.swin import PatchMerging
        if patch_merging == 'linear' and tuple(temporal_pooling) != (1, 1, 1):
            raise ValueError("patch_merging='linear' requires "
                             'temporal_pooling=(1, 1, 1), got '
                             f'{temporal_pooling}')
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
            if i and patch_merging == 'linear':
                self.patch_embeds.append(PatchMerging(channels))
            else:
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
        """Return the blocks of each level; none if the finest is the grid."""
        kernels = [
            tuple(max(n // size, 1) for n, size in zip(grid_shape, level))
            for level in sizes
        ]
        return kernels if kernels and math.prod(kernels[0]) > 1 else []

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Return the frames of each patch; the last may be incomplete."""
        t = self.patch_embeds[0].projection.kernel_size[0]
        return [tuple(range(i, min(i + t, num_frames)))
                for i in range(0, num_frames, t)]

    def encode_frames(self, x: Tensor) -> Tensor:
        """Embed clips [B, C, T, H, W] as patches [B, T', H', W', D]."""
        return self.patch_embeds[0](x.movedim(1, -1))

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute features [B, D, T', H', W'] of patches."""
        for i, (embed, blocks) in enumerate(
                zip(self.patch_embeds, self.blocks)):
            x = run_blocks(blocks[:1], embed(x) if i else x, self.with_cp)
            if len(self.pegs):
                x = self.pegs[i](x)
            x = run_blocks(blocks[1:], x, self.with_cp)
        x = self.norm(x).movedim(-1, 1)
        # For channels-last tensors, pooling would compare the batch size with
        # 1, which an export cannot do for a dynamic size.
        return x.contiguous() if any(map(is_any_size, x.shape)) else x

    def _init_parameters(self) -> None:
        """Initialize as the released code does.

        Linear layers: truncated normal of ``init_std``, zero bias. Relative
        bias: truncated normal of 0.02. Convolutions: torch's default.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=self.init_std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif getattr(module, 'relative_bias', None) is not None:
                nn.init.trunc_normal_(module.relative_bias, std=0.02)

    def layer_groups(self) -> list[list[str]]:
        """List depths; a patch embedding belongs to the block before it."""
        groups = [[]]
        for i, blocks in enumerate(self.blocks):
            groups[-1].append(f'patch_embeds.{i}')
            groups += block_names(f'blocks.{i}', blocks)
            groups[-len(blocks)].append(f'pegs.{i}')
        return [*groups, ['norm']]

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Resize the kernels of a checkpoint to the kernels of this model.

        Repeats kernels of image models over the frames. Warns if kernels for
        clips are resized, because this changes the response to motion.
        """
        resized = []
        for name, parameter in self.named_parameters():
            kernel = state_dict.get(prefix + name)
            size = parameter.shape[2:]
            if kernel is None or len(size) != 3 or kernel.dim() not in (4, 5):
                continue
            if kernel.dim() == 4:
                kernel = kernel.unsqueeze(2)
            elif kernel.shape[2:] != size:
                resized.append(f'{prefix}{name} {tuple(kernel.shape[2:])} to '
                               f'{tuple(size)}')
            state_dict[prefix + name] = _resize(kernel, size)
        if resized:
            warnings.warn(
                f'resized {len(resized)} kernels of a DualFormer that was '
                f'built for other clips: {resized[0]}'
                f'{", ..." if len(resized) > 1 else ""}. Its scores change; '
                "build the model with the checkpoint's num_frames and "
                'img_size to keep them', stacklevel=2)


def _resize(kernel: Tensor, size: Size) -> Tensor:
    """Resize a kernel [K, C, kt, kh, kw] and keep its sum.

    Each old entry is spread evenly over the new entries that it overlaps.
    """
    out = kernel
    for axis, (old, new) in enumerate(zip(kernel.shape[2:], size), 2):
        if old == new:
            continue
        i = torch.arange(new, dtype=torch.float64)[:, None]
        j = torch.arange(old, dtype=torch.float64)
        # Overlap of new entry i with old entry j.
        overlap = torch.minimum((i + 1) / new, (j + 1) / old) - torch.maximum(
            i / new, j / old)
        share = (overlap.clamp(min=0) * old).to(out.device)
        out = (out.double().movedim(axis, -1) @ share.T).movedim(-1, axis)
    return out.to(kernel.dtype)
