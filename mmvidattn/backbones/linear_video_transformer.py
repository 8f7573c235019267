# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear video transformer with feature fixation.

Paper: *Linear Video Transformer with Feature Fixation*,
https://arxiv.org/abs/2210.08164. Authors' code:
https://github.com/OpenNLPLab/Linear_VideoTransformer.
"""
from functools import partial

from mmaction.registry import MODELS
from torch import Tensor

from ..layers import (
    ConvMLP,
    PatchEmbed,
    VideoSelfAttention,
    VideoTransformerBlock,
)
from .base_video_transformer import BaseVideoTransformer

PATTERNS = ('factorized', 'joint', 'windowed')
ORDERS = ('time_space', 'space_time')
PLACEMENTS = ('complementary', 'both')


@MODELS.register_module()
class LinearVideoTransformer(BaseVideoTransformer):
    """Linear video transformer with feature fixation.

    A PyTorch implementation of `Linear Video Transformer with Feature
    Fixation <https://arxiv.org/abs/2210.08164>`_.

    Differs from the paper: the defaults are what the released code does,
    because the paper's numbers of parameters and FLOPs come out only with it:
    overlapping patches of stride 14, a depth-wise convolution in the MLP in
    place of positions, attention in time before attention in space, ReLU with
    an offset, a gate per head, the temporal shift in the spatial attention
    and the spatial one in the temporal attention. The literal reading of the
    paper is ``configs/linear_ff_paper_ssv2.py``. Differs from the released
    code: the gate is evaluated once, products are formed in the cheaper
    order, and there are as many temporal embeddings as frames (the released
    code repeats a table of 8).

    Args:
        num_frames: Frames T of a clip.
        img_size: Height and width of a frame, or one number for both. It is
            needed only for tables (of ``with_pos_embed``, of Linformer);
            without one the model takes any resolution.
        in_channels: Channels of a frame.
        patch_frames: Frames of a patch, an odd number. There is a patch for
            each frame; those of more than one overlap. (The released code has
            the option of 3; no published configuration uses it.)
        patch_size: Side of a patch.
        patch_stride: Distance of neighbouring patches.
        patch_padding: Zeros around the frame.
        with_patch_norm: LayerNorm after the patch embedding.
        embed_dims: Channels D of a token.
        num_layers: Blocks.
        num_heads: Heads of each attention.
        mlp_ratio: Hidden channels of the MLP, in embed_dims.
        attention: Config of the attention itself, without its projections:
            ``type='LinearAttention'``, ``'SoftmaxAttention'``, ...
        pattern: 'factorized' (in time and in space), 'joint' (all tokens), or
            'windowed' (the tokens of the ``window_frames`` frames around).
        order: Of factorized attention: 'time_space' or 'space_time'.
        window_frames: Frames that a token of 'windowed' attends to.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`; None
            for no fixation.
        temporal_shift: Options of :class:`mmvidattn.layers.NeighbourShift`
            (mode 'tsm' or 'window'); None for no shift.
        spatial_shift: Likewise (mode 'cross', 'square' or 'eight').
        shift_placement: In factorized attention, 'complementary' (released
            code: the temporal shift in the spatial attention and the spatial
            one in the temporal attention) or 'both' (paper: both, in turn, in
            each). Other patterns have one attention, with both.
        with_dwconv: The depth-wise convolution in the MLP.
        with_pos_embed: Add a learned table of positions in the frame.
        qkv_bias: Bias of the projection to Q, K and V.
        drop_rate: Dropout after the projections and in the MLP.
        drop_path_rate: Stochastic depth of the last block; the others'
            increases linearly.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialisation.
            0.02 suits some 500 channels; narrow models learn faster from
            ``embed_dims ** -0.5``.
        embed_init_std: Likewise of the temporal and the position table.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` starts from
            the tensors of FILE that match in name and shape, such as a 2D
            ImageNet ViT through ``tools/convert.py vit_timm``, and prints
            which did.
    """

    def __init__(self,
                 num_frames: int = 16,
                 img_size: int | tuple[int, int] = 224,
                 in_channels: int = 3,
                 patch_frames: int = 1,
                 patch_size: int = 16,
                 patch_stride: int = 14,
                 patch_padding: int = 8,
                 with_patch_norm: bool = True,
                 embed_dims: int = 512,
                 num_layers: int = 12,
                 num_heads: int = 8,
                 mlp_ratio: float = 4,
                 attention: dict = dict(
                     type='LinearAttention', kernel='relu', offset='auto'),
                 pattern: str = 'factorized',
                 order: str = 'time_space',
                 window_frames: int | None = None,
                 fixation: dict | None = dict(
                     mode='cooperative', inputs='qkv', shared=True),
                 temporal_shift: dict | None = dict(mode='tsm', divisor=4),
                 spatial_shift: dict | None = dict(mode='eight', size=1),
                 shift_placement: str = 'complementary',
                 with_dwconv: bool = True,
                 with_pos_embed: bool = False,
                 qkv_bias: bool = True,
                 drop_rate: float = 0.,
                 drop_path_rate: float = 0.,
                 with_cp: bool = False,
                 init_std: float = 0.02,
                 embed_init_std: float = 0.,
                 init_cfg: dict | None = None) -> None:
        for name, value, allowed in (('pattern', pattern, PATTERNS),
                                     ('order', order, ORDERS),
                                     ('shift_placement', shift_placement,
                                      PLACEMENTS)):
            if value not in allowed:
                raise ValueError(
                    f'{name} must be one of {allowed}, got {value!r}')
        super().__init__(
            PatchEmbed(in_channels, embed_dims, patch_frames, patch_size,
                       patch_stride, patch_padding, with_patch_norm),
            num_frames,
            img_size,
            embed_dims,
            with_pos_embed=with_pos_embed,
            with_cp=with_cp,
            init_std=init_std,
            embed_init_std=embed_init_std,
            init_cfg=init_cfg)

        new_attention = partial(
            VideoSelfAttention,
            embed_dims,
            num_heads,
            attention,
            self.grid_shape,
            fixation=fixation,
            qkv_bias=qkv_bias,
            dropout=drop_rate)
        in_time = [] if temporal_shift is None else [temporal_shift]
        in_space = [] if spatial_shift is None else [spatial_shift]
        both = in_time + in_space
        for i in range(num_layers):
            if pattern == 'factorized':
                apart = shift_placement == 'complementary'
                attentions = dict(
                    temporal_attn=new_attention(
                        pattern='time', shifts=in_space if apart else both),
                    spatial_attn=new_attention(
                        pattern='space', shifts=in_time if apart else both))
                if order == 'space_time':
                    attentions = dict(reversed(attentions.items()))
            else:
                attentions = dict(
                    attn=new_attention(
                        pattern='joint' if pattern == 'joint' else 'window',
                        shifts=both,
                        window_frames=window_frames))
            self.blocks.append(
                VideoTransformerBlock(
                    attentions,
                    ConvMLP(embed_dims, int(mlp_ratio * embed_dims),
                            with_dwconv, drop_rate), embed_dims,
                    drop_path_rate * i / max(num_layers - 1, 1)))
        if pattern == 'factorized' and window_frames is not None:
            raise ValueError("window_frames belongs to pattern='windowed', "
                             "got it with 'factorized'")

    def forward(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to token features [B, D, T, H', W'].

        Raises:
            ValueError: If the clips have not ``num_frames`` frames, or the
                grid of patches is not that of the position table.
        """
        x = self.norm(self.run_blocks(self.embed(x)))
        return x.permute(0, 4, 1, 2, 3)
