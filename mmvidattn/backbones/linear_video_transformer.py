# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear video transformer with feature fixation.

Paper: *Linear Video Transformer with Feature Fixation*,
https://arxiv.org/abs/2210.08164. Authors' code:
https://github.com/OpenNLPLab/Linear_VideoTransformer.
"""
import math
from functools import partial

import torch
import torch.nn.functional as F
import torch.utils.checkpoint as cp
from mmaction.registry import MODELS
from mmcv.cnn.bricks import DropPath
from mmengine.logging import print_log
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..layers import ConvMLP, VideoSelfAttention
from ..utils.checkpoint import load_state_dict_file
from ..utils.pretrained import load_matching

PATTERNS = ('factorized', 'joint', 'windowed')
ORDERS = ('time_space', 'space_time')
PLACEMENTS = ('complementary', 'both')


class PatchEmbed(nn.Module):
    """Frames to patches: a strided convolution, then LayerNorm."""

    def __init__(self, in_channels: int, embed_dims: int, patch_frames: int,
                 patch_size: int, stride: int, padding: int,
                 with_norm: bool) -> None:
        super().__init__()
        if patch_frames % 2 == 0:
            raise ValueError(
                f'patch_frames must be an odd number, got {patch_frames}')
        if patch_frames == 1:
            self.projection = nn.Conv2d(in_channels, embed_dims, patch_size,
                                        stride, padding)
        else:
            self.projection = nn.Conv3d(
                in_channels,
                embed_dims, (patch_frames, patch_size, patch_size),
                (1, stride, stride), (patch_frames // 2, padding, padding))
        self.norm = nn.LayerNorm(embed_dims) if with_norm else None

    def forward(self, x: Tensor) -> Tensor:
        """[B, C, T, H, W] to [B, T, H', W', D]."""
        if isinstance(self.projection, nn.Conv3d):
            x = self.projection(x).permute(0, 2, 3, 4, 1)
        else:
            B, _, T = x.shape[:3]
            x = self.projection(x.transpose(1, 2).flatten(0, 1))
            x = x.permute(0, 2, 3, 1).unflatten(0, (B, T))
        return x.contiguous() if self.norm is None else self.norm(x)


class LinearVideoTransformerBlock(nn.Module):
    """Pre-norm block: one attention or two, then the MLP.

    Args:
        attentions: The attentions by name, in the order of their use.
        mlp: The MLP.
        embed_dims: Channels.
        drop_path: Probability of dropping a residual branch.
    """

    def __init__(self, attentions: dict[str, nn.Module], mlp: nn.Module,
                 embed_dims: int, drop_path: float) -> None:
        super().__init__()
        self.branches = (*attentions, 'mlp')
        for name, branch in {**attentions, 'mlp': mlp}.items():
            self.add_module(f'{name}_norm', nn.LayerNorm(embed_dims, eps=1e-6))
            self.add_module(name, branch)
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, H, W, D] to the same shape."""
        for name in self.branches:
            branch = getattr(self, name)
            norm = getattr(self, f'{name}_norm')
            x = x + self.drop_path(branch(norm(x)))
        return x


@MODELS.register_module()
class LinearVideoTransformer(BaseModule):
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
        super().__init__(init_cfg=init_cfg)
        for name, value, allowed in (('pattern', pattern, PATTERNS),
                                     ('order', order, ORDERS),
                                     ('shift_placement', shift_placement,
                                      PLACEMENTS)):
            if value not in allowed:
                raise ValueError(
                    f'{name} must be one of {allowed}, got {value!r}')
        self.num_frames = num_frames
        self.num_layers = num_layers
        self.init_std = init_std
        self.embed_init_std = embed_init_std
        self.with_cp = with_cp
        self.patch_embed = PatchEmbed(in_channels, embed_dims, patch_frames,
                                      patch_size, patch_stride, patch_padding,
                                      with_patch_norm)
        self.temporal_embed = nn.Parameter(
            torch.zeros(1, num_frames, 1, 1, embed_dims))
        height, width = (img_size, img_size) if isinstance(
            img_size, int) else img_size
        grid = [(side + 2 * patch_padding - patch_size) // patch_stride + 1
                for side in (height, width)]
        self.pos_embed = None
        if with_pos_embed:
            self.pos_embed = nn.Parameter(
                torch.zeros(1, 1, *grid, embed_dims))

        new_attention = partial(
            VideoSelfAttention,
            embed_dims,
            num_heads,
            attention,
            (num_frames, *grid),
            fixation=fixation,
            qkv_bias=qkv_bias,
            dropout=drop_rate)
        in_time = [] if temporal_shift is None else [temporal_shift]
        in_space = [] if spatial_shift is None else [spatial_shift]
        both = in_time + in_space
        self.blocks = nn.ModuleList()
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
                LinearVideoTransformerBlock(
                    attentions,
                    ConvMLP(embed_dims, int(mlp_ratio * embed_dims),
                            with_dwconv, drop_rate), embed_dims,
                    drop_path_rate * i / max(num_layers - 1, 1)))
        if pattern == 'factorized' and window_frames is not None:
            raise ValueError("window_frames belongs to pattern='windowed', "
                             "got it with 'factorized'")
        self.norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self._register_load_state_dict_pre_hook(self._fit_checkpoint)

    def forward(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to token features [B, D, T, H', W'].

        Raises:
            ValueError: If the clips have not ``num_frames`` frames, or the
                grid of patches is not that of the position table.
        """
        if x.shape[2] != self.num_frames:
            raise ValueError(
                f'LinearVideoTransformer was built for num_frames='
                f'{self.num_frames}, got clips of {x.shape[2]} frames '
                f'{tuple(x.shape)}; set clip_len in the pipeline or '
                'num_frames in the config (a checkpoint is resized on load)')
        x = self.patch_embed(x) + self.temporal_embed
        if self.pos_embed is not None:
            if x.shape[2:4] != self.pos_embed.shape[2:4]:
                raise ValueError(
                    f'the frames give {tuple(x.shape[2:4])} patches, but the '
                    f'position table has {tuple(self.pos_embed.shape[2:4])}; '
                    'set img_size (a checkpoint is resized on load)')
            x = x + self.pos_embed
        for block in self.blocks:
            if self.with_cp and x.requires_grad:
                x = cp.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.norm(x).permute(0, 4, 1, 2, 3)

    def init_weights(self) -> None:
        """Initialise as the released code does, then from ``init_cfg``.

        Linear: truncated normal of ``init_std``, zero bias. Convolution:
        normal of variance 2 / fan-out, zero bias. Tables: normal of
        ``embed_init_std``, zero in the released code.
        """
        for table in (self.temporal_embed, self.pos_embed):
            if table is not None:
                nn.init.normal_(table, std=self.embed_init_std)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=self.init_std)
            elif isinstance(module, (nn.Conv2d, nn.Conv3d)):
                fan_out = module.weight[:, 0].numel() / module.groups
                nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
            elif not isinstance(module, nn.LayerNorm):
                continue
            if getattr(module, 'bias', None) is not None:
                nn.init.zeros_(module.bias)
        if self.init_cfg is None:
            return
        if self.init_cfg.get('type') != 'Pretrained':
            raise ValueError("init_cfg of LinearVideoTransformer must be "
                             "dict(type='Pretrained', checkpoint=...), got "
                             f'{self.init_cfg}')
        path = self.init_cfg['checkpoint']
        prefix = self.init_cfg.get('prefix', 'backbone.')
        state_dict = {
            key.removeprefix(prefix): value
            for key, value in load_state_dict_file(path).items()
        }
        self._fit_checkpoint(state_dict, '')
        print_log(load_matching(self, state_dict, path), 'current')

    def get_layer_depth(self, name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of depths, for layer-wise rates."""
        name = name.removeprefix(prefix)
        num_depths = self.num_layers + 2
        if name.startswith('blocks.'):
            return int(name.split('.')[1]) + 1, num_depths
        return (num_depths - 1 if name.startswith('norm.') else 0), num_depths

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Fit a checkpoint to this model's clip length, grid and patches."""
        # The released table is read cyclically, so more frames repeat it.
        cyclic = state_dict.pop(f'{prefix}cyclic_temporal_embed', None)
        key = f'{prefix}temporal_embed'
        if cyclic is not None:
            repeats = math.ceil(self.num_frames / cyclic.shape[1])
            state_dict[key] = cyclic.repeat(1, repeats, 1, 1,
                                            1)[:, :self.num_frames]
        table = state_dict.get(key)
        if table is not None and table.shape[1] != self.num_frames:
            state_dict[key] = F.interpolate(
                table.flatten(2).transpose(1, 2).float(),
                size=self.num_frames,
                mode='linear').transpose(1, 2).reshape(
                    1, self.num_frames, 1, 1, -1).to(table.dtype)
        # The patches of an image model become the middle frame of ours.
        key = f'{prefix}patch_embed.projection.weight'
        kernel = state_dict.get(key)
        projection = self.patch_embed.projection
        if kernel is not None and kernel.dim() == 4 and isinstance(
                projection, nn.Conv3d):
            around = projection.kernel_size[0] // 2
            state_dict[key] = F.pad(
                kernel.unsqueeze(2), (0, 0, 0, 0, around, around))
        key = f'{prefix}pos_embed'
        table = state_dict.get(key)
        if table is not None and self.pos_embed is not None and \
                table.shape != self.pos_embed.shape and \
                table.shape[-1] == self.pos_embed.shape[-1]:
            state_dict[key] = F.interpolate(
                table[0].permute(0, 3, 1, 2).float(),
                size=self.pos_embed.shape[2:4],
                mode='bicubic').permute(0, 2, 3, 1)[None].to(table.dtype)
