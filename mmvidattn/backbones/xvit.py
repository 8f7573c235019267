# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""XViT: space-time mixing attention.

Paper: *Space-time Mixing Attention for Video Transformer*,
https://arxiv.org/abs/2106.05968. The linear video transformer builds on it;
its authors' code also contains XViT:
https://github.com/OpenNLPLab/Linear_VideoTransformer.
"""
from collections.abc import Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import (
    MLP,
    PatchEmbed,
    VideoSelfAttention,
    VideoTransformerBlock,
)
from ..layers.mlp import Approximation
from ..layers.video_transformer_block import (
    attention_of_layers,
    stochastic_depth_rates,
)
from ..ops.neighbor_shift import TEMPORAL_MODES
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
    check_divides,
    check_type,
    to_pair,
)
from ..utils.modules import State
from .base import BaseBackbone, run_blocks
from .positions import repeat_cyclic


@MODELS.register_module()
@check_arguments
class XViT(BaseBackbone):
    """ViT of frames, whose keys and values partly come from nearby frames.

    A PyTorch implementation of `Space-time Mixing Attention for Video
    Transformer <https://arxiv.org/abs/2106.05968>`_.

    The tokens of a frame and its class token attend to each other. Some
    channels of keys and values come from the same token in the next frame, and
    some from the previous frame, at no extra cost.
    :class:`mmvidattn.heads.XViTHead` then attends over the class tokens of the
    frames.

    Not in the paper: ``causal=True``, which runs as a stream
    (:meth:`forward_causal`). Keys and values come from previous frames only,
    so that a frame depends on ``size`` earlier frames per block. There is no
    temporal embedding, clips may have any length, and the features
    [B, D, T, 1, 1] are for the heads of the linear video transformer instead
    of :class:`mmvidattn.heads.XViTHead`.

    Differs from the released code: there are as many temporal embeddings as
    frames (the released code reads a table of 8 cyclically), and the class
    token has its position within it. For other frame sizes than 224, the
    released code resizes the position table by ``(img_size / 16) / 14``. Here
    it is resized to the grid of patches when a checkpoint is loaded, which is
    the same for multiples of ``patch_size``; other sizes are rejected.

    Args:
        num_frames: Clip length T. Defaults to 16.
        img_size: Height and width of a frame, or one number for both;
            multiples of ``patch_size``. Defaults to 224.
        patch_size: Side of a patch. Defaults to 16.
        arch: 'base', or a dict of ``embed_dims``, ``num_layers`` and
            ``num_heads``. Defaults to 'base'.
        attention: Config of a :class:`BaseAttention`, for all layers or by
            layer, see :func:`attention_of_layers`. Its sequences are the
            tokens of a frame as one column, (1 + H' W', 1), the class token
            first. Defaults to ``dict(type='SoftmaxAttention')``.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`, as in
            Table 9 of the linear video transformer's paper. Defaults to
            None, for no fixation.
        temporal_shift: Options of :class:`mmvidattn.layers.NeighborShift`
            (mode 'tsm' or 'window'); None for no space-time mixing.
        norm_eps: Added to the variance in LayerNorm. Defaults to 1e-6.
        gelu_approximate: Formula of GELU, see :class:`MLP`. Defaults to
            'none'.
        pre_norm: Add a LayerNorm before the blocks, as in CLIP. Defaults to
            False.
        embed_init_std: Standard deviation of the initial class token and
            position table; the temporal table starts at zero. Defaults to
            0.02.
        causal: Read no later frames: the channels that ``temporal_shift``
            would take from them stay unshifted. It requires a shift without
            ``segment_frames`` and with the boundary 'zero'. Defaults to
            False.
        embed_dims, num_layers, num_heads, in_channels, mlp_ratio: See
            :class:`BaseBackbone`.
        qkv_bias, drop_rate, drop_path_rate, with_cp, init_std, init_cfg: See
            :class:`BaseBackbone`. ``tools/convert.py xvit_image`` converts
            image models.
    """
    arch_zoo = dict(base=dict(embed_dims=768, num_layers=12, num_heads=12))

    def __init__(self,
                 num_frames: Count = 16,
                 img_size: Count | tuple[Count, Count] = 224,
                 in_channels: Count = 3,
                 patch_size: Count = 16,
                 embed_dims: Count | None = None,
                 num_layers: Count | None = None,
                 num_heads: Count | None = None,
                 mlp_ratio: Positive = 4,
                 attention: dict | Sequence[dict] = dict(
                     type='SoftmaxAttention'),
                 fixation: dict | None = None,
                 temporal_shift: dict | None = dict(mode='tsm', divisor=4),
                 qkv_bias: bool = True,
                 drop_rate: Fraction = 0.,
                 drop_path_rate: Fraction = 0.,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 embed_init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None,
                 arch: str | dict = 'base',
                 norm_eps: Positive = 1e-6,
                 gelu_approximate: Approximation = 'none',
                 pre_norm: bool = False,
                 causal: bool = False) -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(arch, embed_dims=embed_dims,
                                num_layers=num_layers, num_heads=num_heads)
        embed_dims = arch['embed_dims']
        sides = to_pair(img_size)
        check_divides(patch_size=patch_size, img_size=sides)
        if temporal_shift is not None:
            check_type('the mode of temporal_shift',
                       temporal_shift.get('mode'),
                       Literal[tuple(TEMPORAL_MODES)])
            temporal_shift = dict(temporal_shift, causal=causal)
        self.is_causal = self.any_length = causal
        self.frame_shape, self.embed_dims = sides, embed_dims
        self.embed_init_std = embed_init_std
        self.patch_embed = PatchEmbed(
            in_channels, embed_dims, patch_frames=1, patch_size=patch_size,
            stride=patch_size, padding=0, with_norm=False)
        rows, columns = (side // patch_size for side in sides)
        self.position_grids['pos_embed'] = 1, rows, columns
        self.temporal_embed = None
        if not causal:
            self.position_grids['temporal_embed'] = num_frames, 1, 1
            self.temporal_embed = nn.Parameter(
                torch.zeros(1, num_frames, 1, 1, embed_dims))
        self.pos_embed = nn.Parameter(
            torch.zeros(1, 1, rows, columns, embed_dims))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 1, 1, embed_dims))
        self.pre_norm = nn.LayerNorm(
            embed_dims, eps=norm_eps) if pre_norm else nn.Identity()
        self.blocks = nn.ModuleList()
        for rate, layer_attention in zip(
                stochastic_depth_rates(drop_path_rate, arch['num_layers']),
                attention_of_layers(attention, arch['num_layers'])):
            attn = VideoSelfAttention(
                embed_dims, arch['num_heads'], layer_attention,
                (num_frames, 1 + rows * columns, 1),
                pattern='space', fixation=fixation,
                shifts=[] if temporal_shift is None else [temporal_shift],
                qkv_bias=qkv_bias, dropout=drop_rate)
            mlp = MLP(
                embed_dims, int(mlp_ratio * embed_dims), dropout=drop_rate,
                approximate=gelu_approximate)
            self.blocks.append(
                VideoTransformerBlock(dict(attn=attn), mlp, embed_dims, rate,
                                      norm_eps))
        self.norm = nn.LayerNorm(embed_dims, eps=norm_eps)

    def encode_frames(self, x: Tensor) -> Tensor:
        """Embed clips [B, C, T, H, W] as patches [B, T, H', W', D].

        Only this embedding is independent of a frame's position in the clip,
        because all blocks follow the temporal embedding.
        """
        x = self.patch_embed(x)
        self.check_grid(x.shape[2:4], 'pos_embed')
        return x

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute the class tokens [B, D, T] of the frames.

        They are [B, D, T, 1, 1] if the network is causal.
        """
        return self._class_tokens(run_blocks(
            self.blocks, self._columns(x), self.with_cp))

    def _forward_causal(self, x: Tensor, state: State,
                        elapsed: Tensor | None) -> tuple[Tensor, State]:
        """Compute the class tokens [B, D, T, 1, 1] of the next frames.

        The shift counts frames, so ``elapsed`` has no effect.
        """
        x, state = self.run_causal_blocks(
            self._columns(self.encode_frames(x)), state)
        return self._class_tokens(x), state

    def _initial_state(self, batch_size: int,
                       frame_shape: tuple[int, int] | None) -> State:
        rows, columns = self.position_grids['pos_embed'][1:]
        return self.initial_block_states(self.pos_embed.new_empty(
            batch_size, 0, 1 + rows * columns, 1, len(self.norm.weight)))

    def _columns(self, x: Tensor) -> Tensor:
        """Turn patches into columns [B, T, 1 + H' W', 1, D]."""
        x = x + self.pos_embed
        cls_token = self.cls_token.expand(*x.shape[:2], -1, -1, -1)
        x = torch.cat([cls_token, x.flatten(2, 3).unsqueeze(3)], dim=2)
        if self.temporal_embed is not None:
            x = x + self.temporal_embed
        return self.pre_norm(x)

    def _class_tokens(self, x: Tensor) -> Tensor:
        x = self.norm(x[:, :, 0, 0]).transpose(1, 2)
        return x[..., None, None] if self.is_causal else x

    def _init_tables(self) -> None:
        if self.temporal_embed is not None:
            nn.init.zeros_(self.temporal_embed)
        for table in (self.cls_token, self.pos_embed):
            nn.init.normal_(table, std=self.embed_init_std)

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Adapt a checkpoint to the clip length and grid."""
        if self.is_causal:
            state_dict.pop(f'{prefix}temporal_embed', None)
        repeat_cyclic(state_dict, f'{prefix}temporal_embed', self.num_frames)
        super()._fit_checkpoint(state_dict, prefix, *args)
