# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ViT that encodes each frame, with LAPS or TokShift across frames.

Papers: *Long-term Leap Attention, Short-term Periodic Shift for Video
Classification*, https://arxiv.org/abs/2207.05526, and *Token Shift Transformer
for Video Classification*, https://arxiv.org/abs/2108.02432. Authors' code:
https://github.com/VideoNetworks/LAPS-transformer.
"""
from collections.abc import Sequence

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import MLP, PatchEmbed, VideoTransformerBlock
from ..layers.temporal import LAPSAttention
from ..layers.video_transformer_block import (
    attention_of_layers,
    stochastic_depth_rates,
)
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
    check_divides,
    to_pair,
)
from .base import run_blocks
from .laps import Attention, Attentions, First, LAPSBackbone, TokenShift


class _Block(VideoTransformerBlock):
    """Block that can shift the residual stream before each branch."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block to tokens [B T, 1 + N, C]."""
        for name in self.branches:
            x = self.attn.mixing.shift_tokens(x)
            norm = getattr(self, f'{name}_norm')
            x = x + self.drop_path(getattr(self, name)(norm(x)))
        return x


@MODELS.register_module()
@check_arguments
class VisionTransformerLAPS(LAPSBackbone):
    """ViT of frames, with attention and shift across the frames.

    A PyTorch implementation of `LAPS <https://arxiv.org/abs/2207.05526>`_ on
    ViT and, with ``attention='2d', shift='token'``, of `TokShift
    <https://arxiv.org/abs/2108.02432>`_. Leap attention and shift have no
    parameters, and treat the class token like a patch. The token shift moves
    only channels of the class token, in the residual stream, before the
    attention and before the MLP.

    Differs from the paper in the same ways as :class:`Visformer`; the pyramid
    is (1, 2, 3, 1), as in the released code.

    Args:
        arch: 'base', 'large', or a dict of ``embed_dims``, ``num_layers`` and
            ``num_heads``. Defaults to 'base'.
        num_frames: Clip length T. Defaults to 8.
        img_size: Height and width of a frame, or one number for both;
            multiples of ``patch_size``. Defaults to 224.
        patch_size: Side of a patch. Defaults to 16.
        attention, shift, pyramid, shift_fraction, shift_first: See
            :class:`LAPSBackbone`. Default to 'leap', 'periodic',
            (1, 2, 3, 1), 1/4 and 'next'.
        in_channels, mlp_ratio, drop_path_rate, with_cp, init_std, init_cfg:
            See :class:`BaseBackbone`. ``tools/convert.py laps_vit_timm``
            converts image models.
    """
    arch_zoo = dict(
        base=dict(embed_dims=768, num_layers=12, num_heads=12),
        large=dict(embed_dims=1024, num_layers=24, num_heads=16))

    def __init__(self,
                 arch: str | dict = 'base',
                 num_frames: Count = 8,
                 img_size: Count | tuple[Count, Count] = 224,
                 in_channels: Count = 3,
                 patch_size: Count = 16,
                 attention: Attentions = 'leap',
                 shift: TokenShift = 'periodic',
                 pyramid: Sequence[Count] = (1, 2, 3, 1),
                 shift_fraction: Fraction = 0.25,
                 shift_first: First = 'next',
                 mlp_ratio: Positive = 4,
                 drop_path_rate: Fraction = 0.,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None) -> None:
        super().__init__(
            num_frames, shift, pyramid, shift_fraction, shift_first,
            with_cp=with_cp, init_std=init_std, init_cfg=init_cfg)
        arch = self.choose_arch(arch)
        sides = to_pair(img_size)
        check_divides(patch_size=patch_size, img_size=sides)
        width = arch['embed_dims']
        self.patch_embed = PatchEmbed(
            in_channels, width, patch_frames=1, patch_size=patch_size,
            stride=patch_size, padding=0, with_norm=False)
        rows, columns = (side // patch_size for side in sides)
        self.position_grids['pos_embed'] = 1, rows, columns
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(
            torch.zeros(1, 1 + rows * columns, width))
        self.blocks = nn.ModuleList(
            _Block(
                dict(attn=LAPSAttention(width, arch['num_heads'],
                                        self.mixing(layer_attention, i))),
                MLP(width, int(mlp_ratio * width)),
                width, rate)
            for i, (rate, layer_attention) in enumerate(zip(
                stochastic_depth_rates(drop_path_rate, arch['num_layers']),
                attention_of_layers(attention, arch['num_layers'],
                                    Attention))))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def encode_images(self, x: Tensor) -> Tensor:
        """Embed patches and positions, and run the blocks if possible."""
        x = self.patch_embed(x.unsqueeze(2)).squeeze(1)
        self.check_grid(x.shape[1:3], 'pos_embed')
        cls_token = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat([cls_token, x.flatten(1, 2)], dim=1) + self.pos_embed
        return x if self.mixes_frames else run_blocks(
            self.blocks, x, self.with_cp)

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute class tokens [B, D, T] from tokens [B, T, 1 + N, D]."""
        x = x.flatten(0, 1)
        if self.mixes_frames:
            x = run_blocks(self.blocks, x, self.with_cp)
        return self.to_clips(self.norm(x[:, 0]))
