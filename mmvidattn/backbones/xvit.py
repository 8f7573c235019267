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
    ConvMLP,
    PatchEmbed,
    VideoSelfAttention,
    VideoTransformerBlock,
)
from ..ops.shift import TEMPORAL_MODES
from .base_video_transformer import BaseVideoTransformer


@MODELS.register_module()
class XViT(BaseVideoTransformer):
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
        embed_dims: Channels D of a token.
        num_layers: Blocks.
        num_heads: Heads of each attention.
        mlp_ratio: Hidden channels of the MLP, in embed_dims.
        attention: Config of the attention itself, without its projections:
            ``type='SoftmaxAttention'``, ``'LinearAttention'``, ... Its
            sequences are a frame's tokens as one column, (1 + H' W', 1), the
            class token first.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`; None
            for no fixation. (Table 9 of the linear video transformer's paper
            has XViT with it.)
        temporal_shift: Options of :class:`mmvidattn.layers.NeighbourShift`
            (mode 'tsm' or 'window'); None for no space-time mixing.
        qkv_bias: Bias of the projection to Q, K and V.
        drop_rate: Dropout after the projections and in the MLP.
        drop_path_rate: Stochastic depth of the last block; the others'
            increases linearly.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialisation.
        embed_init_std: Likewise of the class token and the position table.
            The temporal table starts at zero.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` starts from
            the tensors of FILE that match in name and shape, such as a 2D
            ImageNet ViT through ``tools/convert.py xvit_image``, and prints
            which did.
    """

    def __init__(self,
                 num_frames: int = 16,
                 img_size: int | tuple[int, int] = 224,
                 in_channels: int = 3,
                 patch_size: int = 16,
                 embed_dims: int = 768,
                 num_layers: int = 12,
                 num_heads: int = 12,
                 mlp_ratio: float = 4,
                 attention: dict = dict(type='SoftmaxAttention'),
                 fixation: dict | None = None,
                 temporal_shift: dict | None = dict(mode='tsm', divisor=4),
                 qkv_bias: bool = True,
                 drop_rate: float = 0.,
                 drop_path_rate: float = 0.,
                 with_cp: bool = False,
                 init_std: float = 0.02,
                 embed_init_std: float = 0.02,
                 init_cfg: dict | None = None) -> None:
        sides = (img_size, ) if isinstance(img_size, int) else img_size
        if any(side < patch_size or side % patch_size for side in sides):
            raise ValueError(f'img_size must be a multiple of patch_size='
                             f'{patch_size}, got {img_size}')
        if temporal_shift is not None and \
                temporal_shift.get('mode') not in TEMPORAL_MODES:
            raise ValueError(
                f'the mode of temporal_shift must be one of {TEMPORAL_MODES}, '
                f'got {temporal_shift.get("mode")!r}')
        super().__init__(
            PatchEmbed(in_channels, embed_dims, patch_frames=1,
                       patch_size=patch_size, stride=patch_size, padding=0,
                       with_norm=False),
            num_frames,
            img_size,
            embed_dims,
            with_pos_embed=True,
            with_cp=with_cp,
            init_std=init_std,
            embed_init_std=embed_init_std,
            init_cfg=init_cfg)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 1, 1, embed_dims))
        rows, columns = self.grid_shape[1:]
        for i in range(num_layers):
            attn = VideoSelfAttention(
                embed_dims,
                num_heads,
                attention,
                (num_frames, 1 + rows * columns, 1),
                pattern='space',
                fixation=fixation,
                shifts=[] if temporal_shift is None else [temporal_shift],
                qkv_bias=qkv_bias,
                dropout=drop_rate)
            self.blocks.append(
                VideoTransformerBlock(
                    dict(attn=attn),
                    ConvMLP(embed_dims, int(mlp_ratio * embed_dims),
                            with_conv=False, dropout=drop_rate), embed_dims,
                    drop_path_rate * i / max(num_layers - 1, 1)))

    def forward(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to the frames' class tokens [B, D, T].

        Raises:
            ValueError: If the clips have not ``num_frames`` frames, or the
                grid of patches is not that of the position table.
        """
        x = self.embed(x).flatten(2, 3).unsqueeze(3)
        cls_token = self.cls_token + self.temporal_embed
        x = torch.cat([cls_token.expand(len(x), -1, -1, -1, -1), x], dim=2)
        x = self.run_blocks(x)
        return self.norm(x[:, :, 0, 0]).transpose(1, 2)

    def _init_tables(self) -> None:
        nn.init.zeros_(self.temporal_embed)
        for table in (self.cls_token, self.pos_embed):
            nn.init.normal_(table, std=self.embed_init_std)
