# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ResT for images and, with LAPS, for videos.

Papers: *ResT: An Efficient Transformer for Visual Recognition*,
https://arxiv.org/abs/2105.13677 (authors' code:
https://github.com/wofmanaf/ResT), and *Long-term Leap Attention, Short-term
Periodic Shift for Video Classification*, https://arxiv.org/abs/2207.05526
(https://github.com/VideoNetworks/LAPS-transformer).
"""
from collections.abc import Sequence

import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import MLP, VideoTransformerBlock
from ..layers.temporal import FrameMixing
from ..layers.video_transformer_block import (
    attention_of_layers,
    stochastic_depth_rates,
)
from ..ops import softmax_attention
from ..ops.precision import at_least_float32
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
    check_divides,
)
from .base import run_blocks
from .laps import Attention, Attentions, First, LAPSBackbone, Shift

# Stride of the keys and values of each stage.
REDUCTIONS = 8, 4, 2, 1


class _PixelAttention(nn.Module):
    """Gate of frames [B T, C, H, W] by a depth-wise convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pa_conv = nn.Conv2d(
            channels, channels, 3, padding=1, groups=channels)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.pa_conv(x).sigmoid()


class _Stem(nn.Module):

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.conv1 = nn.Conv2d(in_channels, half, 3, 2, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(half)
        self.conv2 = nn.Conv2d(half, half, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(half)
        self.conv3 = nn.Conv2d(half, channels, 3, 2, 1, bias=False)
        self.pos = _PixelAttention(channels)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return self.pos(self.conv3(x))


class _PatchEmbed(nn.Module):

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, channels, 3, 2, 1)
        self.norm = nn.BatchNorm2d(channels)
        self.pos = _PixelAttention(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.pos(self.norm(self.conv(x)))


class _EMSA(nn.Module):
    """Attention to a reduced frame that mixes its heads before the softmax.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G. A single head has neither the
            convolution across heads nor the norm of the attention weights.
        reduction: Stride of keys and values.
        mixing: Frames that attend to each other, and the shift.
    """

    def __init__(self, embed_dims: int, num_heads: int, reduction: int,
                 mixing: FrameMixing) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.mixing = mixing
        self.q = nn.Linear(embed_dims, embed_dims)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.sr = None
        if reduction > 1:
            self.sr = nn.Conv2d(
                embed_dims, embed_dims, reduction + 1, reduction,
                reduction // 2, groups=embed_dims)
            self.sr_norm = nn.LayerNorm(embed_dims)
        self.transform_conv = None
        if num_heads > 1:
            self.transform_conv = nn.Conv2d(num_heads, num_heads, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Attend with frames [B T, H, W, C]; return the same shape."""
        shape, reduced = x.shape, x
        if self.sr is not None:
            reduced = self.sr(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            reduced = self.sr_norm(reduced)
        join, heads = self.mixing.join, (self.num_heads, -1)
        q = self.q(join(x.flatten(1, 2))).unflatten(-1, heads)
        kv = self.kv(join(reduced.flatten(1, 2)))
        k, v = kv.unflatten(-1, (2, *heads)).unbind(-3)
        y = self.mixing.part(self._attend(q, k, v))
        y = self.mixing.shift_heads(y)
        return self.proj(y.flatten(-2)).view(shape)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend from q [P, N, G, D] to k and v [P, M, G, D]."""
        if self.transform_conv is None:
            return softmax_attention(q, k, v)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        scores = (q * q.shape[-1]**-0.5) @ k.mT
        scores = self.transform_conv(scores)
        # Normalize at least in float32: the variance of the weights is about
        # 1e-4, which half precision cannot resolve.
        scores, = at_least_float32(scores)
        weights = F.instance_norm(scores.softmax(dim=-1), eps=1e-5)
        return (weights.to(v.dtype) @ v).transpose(1, 2)


@MODELS.register_module()
@check_arguments
class ResT(LAPSBackbone):
    """ResT of frames, with attention and shift across the frames.

    A PyTorch implementation of `LAPS <https://arxiv.org/abs/2207.05526>`_ on
    `ResT <https://arxiv.org/abs/2105.13677>`_: four stages of attention to
    reduced frames, at strides 4 to 32. In leap attention, the convolution
    across heads, the softmax and the norm of the weights are over the tokens
    of both frames. Frames may have any size.

    Differs from the paper: see :class:`Visformer`; the pyramid restarts in
    each stage, as in the released code.

    Args:
        arch: 'small', 'base', 'large', or a dict of ``embed_dims`` (of the
            first stage; the channels double in each stage), ``num_layers``
            and ``num_heads`` of the four stages. Defaults to 'small'.
        num_frames: Clip length T. Defaults to 8.
        pyramid: Levels R of leap attention, repeated over the blocks of each
            stage. The released model for 32 frames uses (1, 2, 3, 4).
            Defaults to (1, 2, 3).
        attention, shift, shift_fraction, shift_first: See
            :class:`LAPSBackbone`. Default to 'leap', 'periodic', 1/8 and
            'next'.
        in_channels, mlp_ratio, drop_path_rate, with_cp, init_std, init_cfg:
            See :class:`BaseBackbone`. ``tools/convert.py rest`` converts image
            models.
    """

    arch_zoo = dict(
        small=dict(
            embed_dims=64, num_layers=(2, 2, 6, 2), num_heads=(1, 2, 4, 8)),
        base=dict(
            embed_dims=96, num_layers=(2, 2, 6, 2), num_heads=(1, 2, 4, 8)),
        large=dict(
            embed_dims=96, num_layers=(2, 2, 18, 2), num_heads=(1, 2, 4, 8)))

    def __init__(self,
                 arch: str | dict = 'small',
                 num_frames: Count = 8,
                 in_channels: Count = 3,
                 attention: Attentions = 'leap',
                 shift: Shift = 'periodic',
                 pyramid: Sequence[Count] = (1, 2, 3),
                 shift_fraction: Fraction = 0.125,
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
        total = sum(arch['num_layers'])
        rates = iter(stochastic_depth_rates(drop_path_rate, total))
        attentions = iter(attention_of_layers(attention, total, Attention))
        width = arch['embed_dims']
        self.stem = _Stem(in_channels, width)
        for stage, (num_layers, num_heads, reduction) in enumerate(
                zip(arch['num_layers'], arch['num_heads'], REDUCTIONS),
                start=1):
            if stage > 1:
                self.add_module(f'patch_embed_{stage}',
                                _PatchEmbed(width, 2 * width))
                width *= 2
            check_divides(num_heads=num_heads, embed_dims=width)
            blocks = nn.ModuleList(
                VideoTransformerBlock(
                    dict(attn=_EMSA(width, num_heads, reduction,
                                    self.mixing(next(attentions), i))),
                    MLP(width, int(mlp_ratio * width)),
                    width, next(rates), eps=1e-5)
                for i in range(num_layers))
            self.add_module(f'stage{stage}', blocks)
        self.norm = nn.LayerNorm(width, eps=1e-5)

    def encode_images(self, x: Tensor) -> Tensor:
        """Apply the stem, and all stages if frames are independent."""
        x = self.stem(x)
        return x if self.mixes_frames else self._run_stages(x)

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute features [B, D, T, H / 32, W / 32]."""
        x = x.flatten(0, 1)
        if self.mixes_frames:
            x = self._run_stages(x)
        return self.to_clips(self.norm(x).permute(0, 3, 1, 2))

    def _run_stages(self, x: Tensor) -> Tensor:
        """Compute tokens [B T, H / 8, W / 8, D] of maps [B T, C, H, W]."""
        for stage in (1, 2, 3, 4):
            if stage > 1:
                x = getattr(self, f'patch_embed_{stage}')(
                    x.permute(0, 3, 1, 2))
            x = run_blocks(
                getattr(self, f'stage{stage}'), x.permute(0, 2, 3, 1),
                self.with_cp)
        return x
