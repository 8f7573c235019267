# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""V-JEPA 2 and 2.1: the encoder.

Paper: *V-JEPA 2: Self-Supervised Video Models Enable Understanding, Prediction
and Planning*, https://arxiv.org/abs/2506.09985. Authors' code:
https://github.com/facebookresearch/vjepa2.
"""
from collections.abc import Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import (
    MLP,
    TubeletEmbed,
    VideoSelfAttention,
    VideoTransformerBlock,
)
from ..layers.video_transformer_block import (
    rescale_blocks,
    stochastic_depth_rates,
)
from ..utils.arguments import (
    Count,
    Fraction,
    Natural,
    NotNegative,
    check_arguments,
)
from .base import BaseBackbone, run_blocks

# Rotary positions of the two releases. The second one scales the positions in
# a frame to those of the 16 x 16 patches of 256 x 256 pixels.
ROTARY = {'2': dict(paired=False), '2.1': dict(paired=True, span=16)}


@MODELS.register_module()
@check_arguments
class VJEPA2(BaseBackbone):
    """Encoder of V-JEPA 2: a ViT of tubelets with rotary positions.

    A PyTorch implementation of the encoder of `V-JEPA 2
    <https://arxiv.org/abs/2506.09985>`_ (Sec. 2.1). All tokens attend to each
    other. There are no class token and no tables, so clips may have any even
    length and frames any multiple of 16 pixels.

    Differs from the released code: images of V-JEPA 2.1 (clips of one frame)
    have no patch embedding of their own.

    Args:
        arch: 'B', 'L', 'H', 'g', 'G', or a dict of ``embed_dims``,
            ``num_layers``, ``num_heads`` and ``mlp_dims``. B and G exist for
            2.1 only, H for 2 only. Defaults to 'L'.
        embed_dims, num_layers, num_heads, mlp_dims: Values that override
            ``arch``.
        num_frames: Clip length for tools that need one; clips of other lengths
            are accepted. Defaults to 16.
        version: '2' or '2.1', which have different rotary positions. Defaults
            to '2'.
        out_layers: Numbers of blocks, from 0, whose normalized tokens are
            concatenated along the time, as in the probe for Diving-48.
            Defaults to only the last block.
        in_channels, drop_path_rate, with_cp, init_std, init_cfg: See
            :class:`BaseBackbone`. ``mmvidattn convert vjepa2`` converts
            published weights.
    """
    arch_zoo = dict(
        B=dict(embed_dims=768, num_layers=12, num_heads=12, mlp_dims=3072),
        L=dict(embed_dims=1024, num_layers=24, num_heads=16, mlp_dims=4096),
        H=dict(embed_dims=1280, num_layers=32, num_heads=16, mlp_dims=5120),
        g=dict(embed_dims=1408, num_layers=40, num_heads=22, mlp_dims=6144),
        G=dict(embed_dims=1664, num_layers=48, num_heads=26, mlp_dims=8192))
    any_length = True

    def __init__(self,
                 arch: str | dict = 'L',
                 embed_dims: Count | None = None,
                 num_layers: Count | None = None,
                 num_heads: Count | None = None,
                 mlp_dims: Count | None = None,
                 num_frames: Count = 16,
                 in_channels: Count = 3,
                 version: Literal['2', '2.1'] = '2',
                 out_layers: Sequence[Natural] | None = None,
                 drop_path_rate: Fraction = 0.,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None) -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(
            arch, embed_dims=embed_dims, num_layers=num_layers,
            num_heads=num_heads, mlp_dims=mlp_dims)
        width, depth = arch['embed_dims'], arch['num_layers']
        if out_layers is not None and (
                not out_layers or max(out_layers) >= depth):
            raise ValueError(f'out_layers must be numbers of blocks from 0 to '
                             f'{depth - 1}, got {list(out_layers)}')
        self.out_layers = out_layers
        self.patch_embed = TubeletEmbed(in_channels, width, 2, 16)
        self.blocks = nn.ModuleList(
            VideoTransformerBlock(
                dict(attn=VideoSelfAttention(
                    width, arch['num_heads'],
                    dict(type='RotaryAttention', **ROTARY[version]),
                    # Rotary attention has no tables.
                    grid_shape=(1, 1, 1))),
                MLP(width, arch['mlp_dims']), width, rate)
            for rate in stochastic_depth_rates(drop_path_rate, depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Return the frames of each tubelet."""
        return self.patch_embed.frame_groups(num_frames)

    def encode_frames(self, x: Tensor) -> Tensor:
        """Embed clips [B, C, T, H, W] as tubelets, [B, T', H', W', D].

        Raises:
            ValueError: If T is odd, or H or W is no multiple of 16.
        """
        # Check the size.
        self.patch_embed.grid_of(x.shape[2], tuple(x.shape[-2:]))
        return self.patch_embed(x)

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute features [B, D, T', H', W'] from tubelets.

        With n ``out_layers``, they are [B, D, n T', H', W'].
        """
        outputs, first = [], 0
        for layer in self.out_layers or [len(self.blocks) - 1]:
            x = run_blocks(self.blocks[first:layer + 1], x, self.with_cp)
            outputs.append(self.norm(x))
            first = layer + 1
        return torch.cat(outputs, dim=1).movedim(-1, 1)

    def _init_parameters(self) -> None:
        super()._init_parameters()
        nn.init.trunc_normal_(self.patch_embed.projection.weight,
                              std=self.init_std)
        rescale_blocks(self.blocks)
