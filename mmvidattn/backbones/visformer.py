# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Visformer for images and, with LAPS, for videos.

Papers: *Visformer: The Vision-friendly Transformer*,
https://arxiv.org/abs/2104.12533, and *Long-term Leap Attention, Short-term
Periodic Shift for Video Classification*, https://arxiv.org/abs/2207.05526.
Authors' code of the latter: https://github.com/VideoNetworks/LAPS-transformer.
"""
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from ..layers.temporal import FrameMixing, LAPSAttention
from ..layers.video_transformer_block import (
    attention_of_layers,
    stochastic_depth_rates,
)
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    check_arguments,
    to_pair,
)
from .base import block_names, run_blocks
from .laps import Attention, Attentions, First, LAPSBackbone, Shift

GROUPS = 8
# Patch size of each stage, in pixels of the previous stage.
PATCHES = 4, 2, 2


class _PatchEmbed(nn.Module):
    """Embedding of the patches of frames [B T, C, H, W], and BatchNorm."""

    def __init__(self, in_channels: int, out_channels: int,
                 patch_size: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(in_channels, out_channels, patch_size,
                              patch_size)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.proj(x))


class _MLP(nn.Module):
    """1x1 convolutions, with a grouped 3x3 convolution between in stage 1."""

    def __init__(self, channels: int, hidden: int, with_conv: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, hidden, 1, bias=False)
        self.conv2 = nn.Conv2d(
            hidden, hidden, 3, padding=1, groups=GROUPS,
            bias=False) if with_conv else None
        self.conv3 = nn.Conv2d(hidden, channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.conv1(x))
        if self.conv2 is not None:
            x = F.gelu(self.conv2(x))
        return self.conv3(x)


class _Block(nn.Module):
    """Pre-norm block for frames [B T, C, H, W]; attention is optional."""

    def __init__(self, channels: int, num_heads: int,
                 mixing: FrameMixing | None, drop_path: float) -> None:
        super().__init__()
        self.attn = None
        if mixing is not None:
            self.norm1 = nn.BatchNorm2d(channels)
            self.attn = LAPSAttention(channels, num_heads, mixing, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.mlp = _MLP(channels, channels * (2 if mixing is None else 4),
                        with_conv=mixing is None)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        if self.attn is not None:
            # This is a view, because frames are channels-last in memory.
            y = self.attn(self.norm1(x).permute(0, 2, 3, 1))
            x = x + self.drop_path(y.permute(0, 3, 1, 2))
        return x + self.drop_path(self.mlp(self.norm2(x)))


@MODELS.register_module()
@check_arguments
class Visformer(LAPSBackbone):
    """Visformer of frames, with attention and shift across the frames.

    A PyTorch implementation of `LAPS <https://arxiv.org/abs/2207.05526>`_ on
    `Visformer <https://arxiv.org/abs/2104.12533>`_: a stage of convolutions at
    stride 8, and two stages of attention at strides 16 and 32, all with
    BatchNorm. In leap attention, the tokens of two frames at a distance attend
    to each other. The periodic shift moves some channels to the neighboring
    frames. Neither adds parameters, so weights of image models load into every
    variant.

    Differs from the paper: as in the released code, the first part of the
    shifted channels comes from the next frame, the second from the previous
    frame, and each part is a quarter of a head. ``shift_first='previous'``
    and ``shift_fraction=1/8`` follow the paper. Differs from the released
    code: position tables are resized when a checkpoint of a different
    resolution is loaded.

    Args:
        arch: 'tiny', 'small', or a dict of ``stem_channels``, ``embed_dims``
            (of the second stage; the first has half, the third twice as many
            channels), ``num_layers`` and ``num_heads``. Defaults to 'small'.
        num_frames: Clip length T. Defaults to 8.
        img_size: Height and width of a frame, or one number for both; at
            least 32. The released models use 224, 320 and 360. Defaults to
            224.
        pyramid: Levels R of leap attention, repeated over the attentions of
            the last two stages. The released models use (1, 2, 3) for 8
            frames, (1, 2, 3, 4) for 16 and (1, 2, 3, 4, 5) for 32. Defaults
            to (1, 2, 3).
        attention, shift, shift_fraction, shift_first: See
            :class:`LAPSBackbone`. Default to 'leap', 'periodic', 1/4 and
            'next'.
        in_channels, drop_path_rate, with_cp, init_std, init_cfg: See
            :class:`BaseBackbone`. ``tools/convert.py visformer_timm`` converts
            image models.
    """

    arch_zoo = dict(
        tiny=dict(
            stem_channels=16, embed_dims=192, num_layers=(7, 4, 4),
            num_heads=3),
        small=dict(
            stem_channels=32, embed_dims=384, num_layers=(7, 4, 4),
            num_heads=6))

    def __init__(self,
                 arch: str | dict = 'small',
                 num_frames: Count = 8,
                 img_size: Count | tuple[Count, Count] = 224,
                 in_channels: Count = 3,
                 attention: Attentions = 'leap',
                 shift: Shift = 'periodic',
                 pyramid: Sequence[Count] = (1, 2, 3),
                 shift_fraction: Fraction = 0.25,
                 shift_first: First = 'next',
                 drop_path_rate: Fraction = 0.,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None) -> None:
        super().__init__(
            num_frames, shift, pyramid, shift_fraction, shift_first,
            with_cp=with_cp, init_std=init_std, init_cfg=init_cfg)
        arch = self.choose_arch(arch)
        stem, width = arch['stem_channels'], arch['embed_dims']
        if width % (2 * GROUPS):
            raise ValueError('embed_dims of arch must be a multiple of '
                             f'{2 * GROUPS}, got {width}')
        sides = to_pair(img_size)
        if min(sides) < 32:
            raise ValueError(f'img_size must be at least 32, got {img_size}')
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, stem, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(stem), nn.ReLU(inplace=True))
        rates = iter(
            stochastic_depth_rates(drop_path_rate, sum(arch['num_layers'])))
        grid = [(side + 1) // 2 for side in sides]
        # The first stage has no attention.
        attentions = enumerate(attention_of_layers(
            attention, sum(arch['num_layers'][1:]), Attention))
        channels = stem
        for stage, (patch, out, num_layers) in enumerate(
                zip(PATCHES, (width // 2, width, 2 * width),
                    arch['num_layers']), start=1):
            grid = [side // patch for side in grid]
            self.add_module(f'patch_embed{stage}',
                            _PatchEmbed(channels, out, patch))
            name = f'pos_embed{stage}'
            self.register_parameter(
                name, nn.Parameter(torch.zeros(1, out, *grid)))
            self.position_grids[name] = (1, *grid)
            blocks = nn.ModuleList()
            for _ in range(num_layers):
                mixing = None
                if stage > 1:
                    i, layer_attention = next(attentions)
                    mixing = self.mixing(layer_attention, i)
                blocks.append(
                    _Block(out, arch['num_heads'], mixing, next(rates)))
            self.add_module(f'stage{stage}', blocks)
            channels = out
        self.norm = nn.BatchNorm2d(channels)

    def encode_images(self, x: Tensor) -> Tensor:
        """Apply the first stage, or all if frames are independent."""
        x = self.stem(x.contiguous(memory_format=torch.channels_last))
        return self._run_stages(x, *((1,) if self.mixes_frames else (1, 2, 3)))

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute features [B, D, T, H / 32, W / 32]."""
        x = x.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        if self.mixes_frames:
            x = self._run_stages(x, 2, 3)
        return self.to_clips(self.norm(x))

    def _run_stages(self, x: Tensor, *stages: int) -> Tensor:
        for stage in stages:
            x = getattr(self, f'patch_embed{stage}')(x)
            self.check_grid(x.shape[2:], f'pos_embed{stage}')
            x = x + getattr(self, f'pos_embed{stage}')
            x = run_blocks(getattr(self, f'stage{stage}'), x, self.with_cp)
        return x

    def layer_groups(self) -> list[list[str]]:
        """List depths; a patch embedding belongs to the block before it."""
        groups = [['stem']]
        for stage in (1, 2, 3):
            groups[-1] += [f'patch_embed{stage}', f'pos_embed{stage}']
            groups += block_names(f'stage{stage}',
                                  getattr(self, f'stage{stage}'))
        return [*groups, ['norm']]
