# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""XViT: space-time mixing attention.

Paper: *Space-time Mixing Attention for Video Transformer*,
https://arxiv.org/abs/2106.05968. The linear video transformer builds on it,
and its authors' code has it as well:
https://github.com/OpenNLPLab/Linear_VideoTransformer.
"""
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
from ..layers.stochastic_depth import stochastic_depth_rates
from ..ops.shift import TEMPORAL_MODES
from ..utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
)
from ..utils.checks import (
    check_choice,
    check_divides,
    to_pair,
)
from .base import BaseBackbone, run_blocks
from .positions import repeat_cyclic


@MODELS.register_module()
@check_arguments
class XViT(BaseBackbone):
    """A ViT of each frame that borrows keys and values from nearby frames.

    A PyTorch implementation of `Space-time Mixing Attention for Video
    Transformer <https://arxiv.org/abs/2106.05968>`_.

    A frame's tokens, its class token among them, attend to one another; a
    part of the channels of their keys and values is that of the same token in
    the next frame, another part that of the previous one. Time costs nothing
    more. :class:`mmvidattn.heads.XViTHead` then attends over the frames'
    class tokens.

    Differs from the released code: there are as many temporal embeddings as
    frames (the released code reads a table of 8 cyclically), and the class
    token has its position within it. For frames of other sizes than 224 the
    released code resizes the position table by the factor
    ``(img_size / 16) / 14``; here it is resized, when a checkpoint is loaded,
    to the grid of the patches, which is the same for all sizes that are
    multiples of the patch's, and others are refused.

    Args:
        num_frames: Frames T of a clip.
        img_size: Height and width of a frame, or one number for both:
            multiples of ``patch_size``.
        in_channels: Channels of a frame.
        patch_size: Side of a patch.
        arch: 'base', or a dict of ``embed_dims``, ``num_layers`` and
            ``num_heads``.
        embed_dims: Channels D of a token; that of ``arch`` by default.
        num_layers: Blocks. Likewise.
        num_heads: Heads of each attention. Likewise.
        mlp_ratio: Hidden channels of the MLP, in embed_dims.
        attention: Config of the attention itself, without its projections:
            ``type='SoftmaxAttention'``, ``'LinearAttention'``, ... Its
            sequences are a frame's tokens as one column, (1 + H' W', 1), the
            class token first.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`; None
            for no fixation. (Table 9 of the linear video transformer's paper
            has XViT with it.)
        temporal_shift: Options of :class:`mmvidattn.layers.NeighborShift`
            (mode 'tsm' or 'window'); None for no space-time mixing.
        qkv_bias: Bias of the projection to Q, K and V.
        norm_eps: Added to the variance in LayerNorm.
        gelu_approximate: GELU's formula: 'none', the exact one, 'tanh', or
            'sigmoid', as in OpenAI's CLIP.
        pre_norm: LayerNorm before the blocks as well, as in CLIP.
        drop_rate: Dropout after the projections and in the MLP.
        drop_path_rate: Stochastic depth of the last block; the others'
            increases linearly.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialization.
        embed_init_std: Likewise of the class token and the position table.
            The temporal table starts at zero.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` starts from
            the tensors of FILE that match in name and shape, such as a 2D
            ImageNet ViT through ``tools/convert.py xvit_image``, and prints
            which did.
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
                 attention: dict = dict(type='SoftmaxAttention'),
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
                 pre_norm: bool = False) -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(arch, embed_dims=embed_dims,
                                num_layers=num_layers, num_heads=num_heads)
        embed_dims = arch['embed_dims']
        sides = to_pair(img_size)
        check_divides(patch_size=patch_size, img_size=sides)
        if temporal_shift is not None:
            check_choice('the mode of temporal_shift',
                         temporal_shift.get('mode'), TEMPORAL_MODES)
        self.embed_init_std = embed_init_std
        self.patch_embed = PatchEmbed(
            in_channels, embed_dims, patch_frames=1, patch_size=patch_size,
            stride=patch_size, padding=0, with_norm=False)
        rows, columns = (side // patch_size for side in sides)
        self.position_grids.update(
            temporal_embed=(num_frames, 1, 1), pos_embed=(1, rows, columns))
        self.temporal_embed = nn.Parameter(
            torch.zeros(1, num_frames, 1, 1, embed_dims))
        self.pos_embed = nn.Parameter(
            torch.zeros(1, 1, rows, columns, embed_dims))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 1, 1, embed_dims))
        self.pre_norm = nn.LayerNorm(
            embed_dims, eps=norm_eps) if pre_norm else nn.Identity()
        self.blocks = nn.ModuleList()
        for rate in stochastic_depth_rates(drop_path_rate,
                                           arch['num_layers']):
            attn = VideoSelfAttention(
                embed_dims,
                arch['num_heads'],
                attention,
                (num_frames, 1 + rows * columns, 1),
                pattern='space',
                fixation=fixation,
                shifts=[] if temporal_shift is None else [temporal_shift],
                qkv_bias=qkv_bias,
                dropout=drop_rate)
            mlp = MLP(
                embed_dims, int(mlp_ratio * embed_dims), dropout=drop_rate,
                approximate=gelu_approximate)
            self.blocks.append(
                VideoTransformerBlock(dict(attn=attn), mlp, embed_dims, rate,
                                      norm_eps))
        self.norm = nn.LayerNorm(embed_dims, eps=norm_eps)

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Single frames."""
        self.check_length(num_frames)
        return [(i, ) for i in range(num_frames)]

    def encode_frames(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to patches [B, T, H', W', D].

        No more than that: the temporal embedding differs with a frame's
        place in the clip, and every block after it sees that. So it is even
        without space-time mixing.
        """
        x = self.patch_embed(x)
        self.check_grid(x.shape[2:4], 'pos_embed')
        return x

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Patches of clips to the frames' class tokens [B, D, T]."""
        x = x + self.temporal_embed + self.pos_embed
        cls_token = (self.cls_token + self.temporal_embed).expand(
            x.shape[0], -1, -1, -1, -1)
        # One column of tokens of each frame.
        x = torch.cat([cls_token, x.flatten(2, 3).unsqueeze(3)], dim=2)
        x = run_blocks(self.blocks, self.pre_norm(x), self.with_cp)
        return self.norm(x[:, :, 0, 0]).transpose(1, 2)

    def _init_tables(self) -> None:
        nn.init.zeros_(self.temporal_embed)
        for table in (self.cls_token, self.pos_embed):
            nn.init.normal_(table, std=self.embed_init_std)

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Fit a checkpoint to this model's clip length and grid."""
        repeat_cyclic(state_dict, f'{prefix}temporal_embed', self.num_frames)
        super()._fit_checkpoint(state_dict, prefix, *args)
