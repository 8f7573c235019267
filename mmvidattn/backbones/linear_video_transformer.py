# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear video transformer with feature fixation.

Paper: *Linear Video Transformer with Feature Fixation*,
https://arxiv.org/abs/2210.08164. Authors' code:
https://github.com/OpenNLPLab/Linear_VideoTransformer.
"""
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import (
    MLP,
    PatchEmbed,
    VideoSelfAttention,
    VideoTransformerBlock,
)
from ..layers.video_transformer_block import (
    attention_of_layers,
    stochastic_depth_rates,
)
from ..utils.arguments import (
    Count,
    Fraction,
    Natural,
    NotNegative,
    Positive,
    check_arguments,
    to_pair,
)
from ..utils.modules import State, named, part_of
from .base import BaseBackbone, run_blocks
from .positions import repeat_cyclic

Pattern = Literal['factorized', 'joint', 'windowed', 'causal']
Order = Literal['time_space', 'space_time']
Placement = Literal['complementary', 'both']


@MODELS.register_module()
@check_arguments
class LinearVideoTransformer(BaseBackbone):
    """Linear video transformer with feature fixation.

    A PyTorch implementation of `Linear Video Transformer with Feature
    Fixation <https://arxiv.org/abs/2210.08164>`_.

    Differs from the paper: the defaults follow the released code, because
    only these yield the paper's parameters and FLOPs: overlapping patches
    with stride 14, a depth-wise convolution in the MLP in place of positions,
    attention in time before attention in space, ReLU with an offset, a gate
    within each head (with weights that all heads share), the temporal shift in
    the spatial attention and the spatial shift in the temporal attention.
    ``configs/linear_ff_paper_ssv2.py`` follows the paper's text.

    Not in the paper: ``pattern='causal'``, which runs as a stream
    (:meth:`forward_causal`). Each frame attends to itself and to all previous
    frames, whose weights may decay. The temporal shift and patches of several
    frames do not read later frames. A causal model has no temporal embedding
    and accepts clips of any length. It can load checkpoints of other patterns;
    from factorized attention, it takes only the spatial attention.

    Differs from the released code: the gate is evaluated once, products are
    formed in the cheaper order, and there are as many temporal embeddings as
    frames (the released code repeats a table of 8).

    Args:
        num_frames: Clip length T. Defaults to 16.
        img_size: Height and width of a frame, or one number for both. Only
            tables (of ``with_pos_embed`` and Linformer) depend on it; without
            them the model accepts any resolution. Defaults to 224.
        patch_frames: Frames of a patch, odd; see :class:`PatchEmbed`. (No
            published config uses the value 3 of the released code.) Defaults
            to 1.
        patch_size: Side of a patch. Defaults to 16.
        patch_stride: Distance of neighboring patches. Defaults to 14.
        patch_padding: Zero padding around the frame. Defaults to 8.
        with_patch_norm: Add a LayerNorm after the patch embedding. Defaults
            to True.
        arch: 'base', or a dict of ``embed_dims``, ``num_layers`` and
            ``num_heads``. Defaults to 'base'.
        attention: Config of a :class:`BaseAttention`, such as
            ``dict(type='SoftmaxAttention')``, for all layers or by layer,
            see :func:`attention_of_layers`. Defaults to LinearAttention with
            ReLU and ``offset='auto'``.
        pattern: 'factorized' (time and space), 'joint' (all tokens),
            'windowed' (tokens of the ``window_frames`` nearest frames) or
            'causal' (tokens of the same and of all previous frames).
            Defaults to 'factorized'.
        order: Order of factorized attention, 'time_space' or 'space_time'.
            Defaults to 'time_space'.
        window_frames: Frames of an attention window, only for 'windowed'.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`; None
            for no fixation. Defaults to cooperative fixation.
        fixation_first: Shift keys after they are reweighted; Sec. 5.3
            compares both orders. Defaults to False.
        temporal_shift: Options of :class:`mmvidattn.layers.NeighborShift`
            (mode 'tsm' or 'window'); None for no shift.
        spatial_shift: Options of :class:`mmvidattn.layers.NeighborShift`
            (mode 'cross', 'square' or 'eight'); None for no shift.
        shift_placement: Shifts in factorized attention: 'complementary' (as
            released: the temporal shift in spatial attention, the spatial
            shift in temporal attention) or 'both' (as in the paper: both
            shifts in each). The single attention of other patterns has both
            shifts. Defaults to 'complementary'.
        with_dwconv: Add the depth-wise convolution to the MLP. Defaults to
            True.
        with_pos_embed: Add a learned table of positions in the frame.
            Defaults to False.
        embed_init_std: Standard deviation of the initial temporal and
            position tables. Defaults to 0.
        decay: Options of :class:`mmvidattn.layers.FrameDecay`, only for
            'causal': the weights of previous frames decay with their age.
            Defaults to None, for no decay.
        embed_dims, num_layers, num_heads, in_channels, mlp_ratio: See
            :class:`BaseBackbone`.
        qkv_bias, drop_rate, drop_path_rate, with_cp, init_std, init_cfg: See
            :class:`BaseBackbone`. ``tools/convert.py vit_timm`` converts image
            models.
    """
    arch_zoo = dict(base=dict(embed_dims=512, num_layers=12, num_heads=8))

    def __init__(self,
                 num_frames: Count = 16,
                 img_size: Count | tuple[Count, Count] = 224,
                 in_channels: Count = 3,
                 patch_frames: Count = 1,
                 patch_size: Count = 16,
                 patch_stride: Count = 14,
                 patch_padding: Natural = 8,
                 with_patch_norm: bool = True,
                 embed_dims: Count | None = None,
                 num_layers: Count | None = None,
                 num_heads: Count | None = None,
                 mlp_ratio: Positive = 4,
                 attention: dict | Sequence[dict] = dict(
                     type='LinearAttention', kernel='relu', offset='auto'),
                 pattern: Pattern = 'factorized',
                 order: Order = 'time_space',
                 window_frames: Count | None = None,
                 fixation: dict | None = dict(
                     mode='cooperative', inputs='qkv', shared=True),
                 temporal_shift: dict | None = dict(mode='tsm', divisor=4),
                 spatial_shift: dict | None = dict(mode='eight', size=1),
                 shift_placement: Placement = 'complementary',
                 with_dwconv: bool = True,
                 with_pos_embed: bool = False,
                 qkv_bias: bool = True,
                 drop_rate: Fraction = 0.,
                 drop_path_rate: Fraction = 0.,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 embed_init_std: NotNegative = 0.,
                 init_cfg: dict | None = None,
                 arch: str | dict = 'base',
                 fixation_first: bool = False,
                 decay: dict | None = None) -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(arch, embed_dims=embed_dims,
                                num_layers=num_layers, num_heads=num_heads)
        embed_dims = arch['embed_dims']
        self.is_causal = self.any_length = pattern == 'causal'
        self.embed_dims = embed_dims
        self.frame_shape = to_pair(img_size)
        self.embed_init_std = embed_init_std
        self.patch_embed = PatchEmbed(in_channels, embed_dims, patch_frames,
                                      patch_size, patch_stride, patch_padding,
                                      with_patch_norm, self.is_causal)
        grid = self.patch_embed.grid_of(self.frame_shape)
        self.temporal_embed = None
        if not self.is_causal:
            self.temporal_embed = nn.Parameter(
                torch.zeros(1, num_frames, 1, 1, embed_dims))
            self.position_grids['temporal_embed'] = num_frames, 1, 1
        self.pos_embed = None
        if with_pos_embed:
            self.pos_embed = nn.Parameter(torch.zeros(1, 1, *grid, embed_dims))
            self.position_grids['pos_embed'] = 1, *grid

        options = dict(
            embed_dims=embed_dims,
            num_heads=arch['num_heads'],
            grid_shape=(num_frames, *grid),
            fixation=fixation, qkv_bias=qkv_bias, dropout=drop_rate,
            window_frames=window_frames, decay=decay,
            fixation_first=fixation_first)
        in_time = [] if temporal_shift is None else [temporal_shift]
        in_space = [] if spatial_shift is None else [spatial_shift]
        both = in_time + in_space
        apart = shift_placement == 'complementary'
        self.blocks = nn.ModuleList()
        for rate, layer_attention in zip(
                stochastic_depth_rates(drop_path_rate, arch['num_layers']),
                attention_of_layers(attention, arch['num_layers'])):
            options['attention'] = layer_attention
            if pattern == 'factorized':
                attentions = dict(
                    temporal_attn=VideoSelfAttention(
                        pattern='time', shifts=in_space if apart else both,
                        **options),
                    spatial_attn=VideoSelfAttention(
                        pattern='space', shifts=in_time if apart else both,
                        **options))
                if order == 'space_time':
                    attentions = dict(reversed(attentions.items()))
            else:
                attentions = dict(
                    attn=VideoSelfAttention(
                        pattern='window' if pattern == 'windowed' else pattern,
                        shifts=both,
                        **options))
            mlp = MLP(embed_dims, int(mlp_ratio * embed_dims), with_dwconv,
                      drop_rate)
            self.blocks.append(
                VideoTransformerBlock(attentions, mlp, embed_dims, rate))
        self.norm = nn.LayerNorm(embed_dims, eps=1e-6)

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]] | None:
        """Return one group per frame; None if patches overlap in time."""
        overlap = isinstance(self.patch_embed.projection, nn.Conv3d)
        return None if overlap else super().frame_groups(num_frames)

    def encode_frames(self, x: Tensor) -> Tensor:
        """Embed clips [B, C, T, H, W] as patches [B, T, H', W', D].

        The first block already mixes frames.
        """
        return self.patch_embed(x)

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute features [B, D, T, H', W'] of patches."""
        if self.is_causal:
            return self._forward_patches(x)[0]
        x = self._add_positions(x + self.temporal_embed)
        x = self.norm(run_blocks(self.blocks, x, self.with_cp))
        return x.permute(0, 4, 1, 2, 3)

    def _forward_causal(self, x: Tensor, state: State,
                        elapsed: Tensor | None) -> tuple[Tensor, State]:
        """Compute features [B, D, T, H', W'] of the next frames."""
        x, new = self.patch_embed.forward_causal(
            x, part_of(state, 'patch_embed'))
        y, blocks = self._forward_patches(x, state, elapsed)
        return y, named('patch_embed', new) | blocks

    def _initial_state(self, batch_size: int,
                       frame_shape: tuple[int, int] | None) -> State:
        shape = self.frame_shape if frame_shape is None else frame_shape
        example = self.norm.weight
        frames = example.new_empty(
            batch_size, self.patch_embed.projection.in_channels, 0, *shape)
        patches = example.new_empty(
            batch_size, 0, *self.patch_embed.grid_of(shape), len(example))
        return named('patch_embed', self.patch_embed.initial_state(frames)) \
            | self.initial_block_states(patches)

    def _forward_patches(self, x: Tensor, state: State | None = None,
                         elapsed: Tensor | None = None
                         ) -> tuple[Tensor, State]:
        """Run the blocks of a causal network on patches [B, T, H', W', D]."""
        x, state = self.run_causal_blocks(
            self._add_positions(x), state, elapsed)
        return self.norm(x).permute(0, 4, 1, 2, 3), state

    def _add_positions(self, x: Tensor) -> Tensor:
        if self.pos_embed is not None:
            self.check_grid(x.shape[2:4], 'pos_embed')
            x = x + self.pos_embed
        return x

    def _init_tables(self) -> None:
        for table in (self.temporal_embed, self.pos_embed):
            if table is not None:
                nn.init.normal_(table, std=self.embed_init_std)

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Adapt a checkpoint to the clip length, grid and patches."""
        repeat_cyclic(state_dict, f'{prefix}temporal_embed', self.num_frames)
        if self.is_causal:
            _make_causal(state_dict, prefix)
        super()._fit_checkpoint(state_dict, prefix, *args)
        # The kernel of an image model becomes the middle frame of this one,
        # or the last one if the network is causal.
        key = f'{prefix}patch_embed.projection.weight'
        kernel = state_dict.get(key)
        projection = self.patch_embed.projection
        if kernel is not None and kernel.dim() == 4 and isinstance(
                projection, nn.Conv3d):
            before = projection.kernel_size[0] // 2
            after = before
            if self.is_causal:
                before, after = 2 * before, 0
            state_dict[key] = F.pad(
                kernel.unsqueeze(2), (0, 0, 0, 0, before, after))


def _make_causal(state_dict: dict, prefix: str) -> None:
    """Fit a checkpoint of another pattern to a causal network, in place.

    The temporal embedding is removed. Spatial attention becomes the single
    attention, and temporal attention is removed.
    """
    state_dict.pop(f'{prefix}temporal_embed', None)
    for name in [*state_dict]:
        if not name.startswith(f'{prefix}blocks.'):
            continue
        if '.temporal_attn' in name:
            del state_dict[name]
        elif '.spatial_attn' in name:
            state_dict[name.replace('.spatial_attn', '.attn')] = (
                state_dict.pop(name))
