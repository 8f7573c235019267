# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""V-JEPA 2 and 2.1: the encoder, and the predictor of V-JEPA 2.

Paper: *V-JEPA 2: Self-Supervised Video Models Enable Understanding, Prediction
and Planning*, https://arxiv.org/abs/2506.09985. Authors' code:
https://github.com/facebookresearch/vjepa2.
"""
from collections.abc import Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
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
from ..ops import rotary_positions, softmax_attention
from ..utils.arguments import (
    Count,
    Fraction,
    Natural,
    NotNegative,
    Positive,
    check_arguments,
    check_divides,
)
from ..utils.modules import initialize
from .base import BaseBackbone, run_blocks
from .pretrained import load_matching, read_pretrained

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
            concatenated along the time, as in the probe for Diving-48. In
            version 2.1, blocks before the last one have norms of their own,
            as the released weights have for three blocks, (5, 11, 17) of
            'L'. Defaults to only the last block.
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
        self.level_norms = nn.ModuleDict({
            str(layer): nn.LayerNorm(width, eps=1e-6)
            for layer in out_layers or () if layer < depth - 1
        } if version == '2.1' else {})

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
            norm = self.level_norms[str(layer)] if str(
                layer) in self.level_norms else self.norm
            outputs.append(norm(x))
            first = layer + 1
        return torch.cat(outputs, dim=1).movedim(-1, 1)

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Leave out the norms of levels that ``out_layers`` does not name."""
        super()._fit_checkpoint(state_dict, prefix, *args)
        levels = f'{prefix}level_norms.'
        for name in [name for name in state_dict if name.startswith(levels)]:
            if name.removeprefix(levels).split('.')[0] not in self.level_norms:
                del state_dict[name]

    def _init_parameters(self) -> None:
        super()._init_parameters()
        nn.init.trunc_normal_(self.patch_embed.projection.weight,
                              std=self.init_std)
        rescale_blocks(self.blocks)


class PredictorBlock(nn.Module):
    """Pre-norm transformer block with rotary positions at given times.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads.
    """

    def __init__(self, embed_dims: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attn_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.mlp_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.mlp = MLP(embed_dims, 4 * embed_dims)

    def forward(self, x: Tensor, times: Tensor) -> Tensor:
        """Let all tokens [B, T, H, W, C] attend to each other.

        ``times`` are the positions of the T tubelets in time, [B, T].
        """
        q, k, v = self.qkv(self.attn_norm(x).flatten(1, 3)).unflatten(
            -1, (3, self.num_heads, -1)).unbind(-3)
        q, k = (rotary_positions(y, x.shape[1:4], **ROTARY['2'], times=times)
                for y in (q, k))
        y = self.proj(softmax_attention(q, k, v).flatten(-2))
        x = x + y.view_as(x)
        return x + self.mlp(self.mlp_norm(x))


@MODELS.register_module()
@check_arguments
class VJEPA2Predictor(BaseModule):
    """Neck that predicts the features of a future tubelet.

    As in the released code of `V-JEPA 2 <https://arxiv.org/abs/2506.09985>`_
    for action anticipation, a narrow transformer reads the features of a clip
    and mask tokens at the future tubelet. Its prediction is appended to the
    features. The predictor is frozen.

    Args:
        in_channels: Channels C of the encoder. Defaults to 1024.
        embed_dims, num_layers, num_heads: Sizes of the transformer. Default to
            384, 12 and 12, as released.
        seconds: Time between the end of the clip and the predicted tubelet.
            In training, ``seconds_ahead`` of a sample, as set by
            :class:`~mmvidattn.datasets.transforms.AnticipationSampleFrames`,
            replaces it. Defaults to 1.
        tubelet_rate: Tubelets per second, half of the frames per second.
            Defaults to 4.
        init_std: Standard deviation of the initial weights. Defaults to 0.02.
        init_cfg: Start weights, ``dict(type='Pretrained',
            source='vjepa2_predictor', checkpoint=FILE)``, see
            :class:`~.base.BaseBackbone`. Defaults to None: random weights.
    """

    def __init__(self,
                 in_channels: Count = 1024,
                 embed_dims: Count = 384,
                 num_layers: Count = 12,
                 num_heads: Count = 12,
                 seconds: NotNegative = 1.,
                 tubelet_rate: Positive = 4.,
                 init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg)
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        self.seconds = seconds
        self.tubelet_rate = tubelet_rate
        self.init_std = init_std
        self.embed = nn.Linear(in_channels, embed_dims)
        self.mask_token = nn.Parameter(torch.zeros(embed_dims))
        self.blocks = nn.ModuleList(
            PredictorBlock(embed_dims, num_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.proj = nn.Linear(embed_dims, in_channels)
        self.requires_grad_(False)

    def init_weights(self) -> None:
        """Initialize all layers, then load ``init_cfg``."""
        initialize(self, self.init_std)
        if self.init_cfg is not None:
            load_matching(self, *read_pretrained(self, 'neck.'))

    def forward(self, x: Tensor, data_samples: list | None = None
                ) -> tuple[Tensor, dict]:
        """Append the predicted features to the features of clips.

        Args:
            x: Features of the encoder, [B, C, T, H, W].
            data_samples: The samples of the clips.

        Returns:
            [B, C, T + 1, H, W], and no losses.
        """
        B, _, T, H, W = x.shape
        seconds = x.new_full((B, ), self.seconds, dtype=torch.float64)
        if data_samples is not None:
            seconds = seconds.new_tensor([
                sample.get('seconds_ahead', self.seconds)
                for sample in data_samples]).repeat_interleave(
                    B // len(data_samples))
        # Round down, as the released code does.
        future = T + (seconds * self.tubelet_rate).long()
        times = torch.cat([torch.arange(T, device=x.device).expand(B, T),
                           future[:, None]], dim=1)
        tokens = torch.cat([self.embed(x.movedim(1, -1)),
                            self.mask_token.expand(B, 1, H, W, -1)], dim=1)
        for block in self.blocks:
            tokens = block(tokens, times)
        y = self.proj(self.norm(tokens[:, -1:]))
        return torch.cat([x, y.movedim(-1, 1)], dim=2), {}
