# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ViViT, models 1 to 4.

Paper: *ViViT: A Video Vision Transformer*, https://arxiv.org/abs/2103.15691.
Authors' code:
https://github.com/google-research/scenic/tree/main/scenic/projects/vivit.
"""
import math
from typing import Literal, get_args

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import (
    MLP,
    FactorizedDotAttention,
    TubeletEmbed,
    VideoSelfAttention,
    VideoTransformerBlock,
)
from ..layers.mlp import Approximation
from ..layers.stochastic_depth import stochastic_depth_rates
from ..layers.tubelet_embed import inflate_kernel
from ..utils.arguments import (
    Count,
    Fraction,
    Natural,
    NotNegative,
    Positive,
    check_arguments,
)
from ..utils.checks import check_divides, to_pair
from .base import BaseBackbone, block_names, run_blocks

# The paper's models 1 to 4.
ENCODERS = ('joint', 'fact_encoder', 'fact_attention', 'fact_dot')
Model = Literal[ENCODERS]
Order = Literal['time_space', 'space_time']
Pool = Literal['cls', 'mean', 'mean_norm']
PatchInit = Literal['central', 'average', 'random']


class Encoder(nn.Module):
    """Positions, perhaps a class token, blocks, the last norm, pooling.

    Args:
        grid_shape: Tokens along time, rows and columns, (T, H, W).
        pattern: Which tokens attend to each other: 'joint' (all of the
            clip), 'space' (those of a frame, which then has positions, class
            token and result of its own), 'time_space' or 'space_time' (in
            turn those at a place and those of a frame), 'dot' (half of the
            heads those at a place, the others those of a frame).
        num_layers: Blocks.
        num_temporal_layers: Blocks of a joint encoder of the frames'
            results; with 0 these are averaged, with None they stay apart.
        embed_dims: Channels D.
        num_heads: Heads of each attention.
        mlp_ratio: Hidden channels of the MLP, in embed_dims.
        attention: Config of the attention itself.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`, or
            None.
        pool: The class token, 'cls', the normalized tokens' mean, 'mean', or
            the normalized mean, 'mean_norm'.
        qkv_bias: Bias of the projection to Q, K and V.
        drop_rate: Dropout after the projections and in the MLP.
        drop_path_rate: Stochastic depth of the last block.
        drop_path_scale: See ``scale_by_keep`` of
            :class:`VideoTransformerBlock`.
        norm_eps: Added to the variance in LayerNorm.
        gelu_approximate: GELU's formula, see :class:`MLP`.
        pre_norm: LayerNorm before the blocks as well.
    """

    def __init__(self,
                 grid_shape: tuple[int, int, int],
                 pattern: str,
                 num_layers: int,
                 num_temporal_layers: int | None = None,
                 *,
                 embed_dims: int,
                 num_heads: int,
                 mlp_ratio: float,
                 attention: dict,
                 fixation: dict | None,
                 pool: str,
                 qkv_bias: bool,
                 drop_rate: float,
                 drop_path_rate: float,
                 drop_path_scale: bool,
                 norm_eps: float,
                 gelu_approximate: Approximation,
                 pre_norm: bool = False) -> None:
        super().__init__()
        options = dict(
            embed_dims=embed_dims,
            num_heads=num_heads,
            attention=attention,
            fixation=fixation,
            qkv_bias=qkv_bias,
            drop_rate=drop_rate)
        T, H, W = grid_shape
        self.frame_wise = pattern == 'space'
        self.pos_embed = nn.Parameter(
            torch.zeros(1, 1 if self.frame_wise else T, H, W, embed_dims))
        self.cls_token = None
        if pool == 'cls':
            self.cls_token = nn.Parameter(torch.zeros(1, 1, 1, 1, embed_dims))
            # The tokens become one column, of each frame or of all, and a
            # column of all tokens is that of a single frame.
            grid_shape = (T, 1 + H * W, 1) if self.frame_wise else (
                1, 1 + T * H * W, 1)
            pattern = 'space'
        self.norm_of_mean = pool == 'mean_norm'
        self.pre_norm = nn.LayerNorm(
            embed_dims, eps=norm_eps) if pre_norm else nn.Identity()
        self.blocks = nn.ModuleList(
            VideoTransformerBlock(
                _attentions(pattern, grid_shape, **options),
                MLP(
                    embed_dims,
                    int(mlp_ratio * embed_dims),
                    dropout=drop_rate,
                    approximate=gelu_approximate),
                embed_dims,
                rate,
                norm_eps,
                scale_by_keep=drop_path_scale)
            for rate in stochastic_depth_rates(drop_path_rate, num_layers))
        self.norm = nn.LayerNorm(embed_dims, eps=norm_eps)
        self.temporal = None
        self.average_frames = num_temporal_layers == 0
        if num_temporal_layers:
            self.temporal = Encoder(
                (T, 1, 1),
                'joint',
                num_temporal_layers,
                mlp_ratio=mlp_ratio,
                pool=pool,
                drop_path_rate=drop_path_rate,
                drop_path_scale=drop_path_scale,
                norm_eps=norm_eps,
                gelu_approximate=gelu_approximate,
                **options)

    def forward(self, x: Tensor, with_cp: bool = False) -> Tensor:
        """Encode tokens [B, T, H, W, D].

        Args:
            x: The tokens.
            with_cp: Recompute each block in the backward pass.

        Returns:
            [B, D]; with the pattern 'space' and ``num_temporal_layers=None``
            [B, T, D].
        """
        return self.forward_frames(self.forward_space(x, with_cp), with_cp)

    def forward_frames(self, x: Tensor, with_cp: bool = False) -> Tensor:
        """Go on from the result of :meth:`forward_space`; see `forward`."""
        if self.temporal is not None:
            x = self.forward_time(x, with_cp)
        return x.mean(dim=1) if self.average_frames else x

    def forward_space(self, x: Tensor, with_cp: bool = False) -> Tensor:
        """Encode as :meth:`forward` does, but for ``temporal``.

        Returns:
            [B, D]; with the pattern 'space' [B, T, D].
        """
        x = x + self.pos_embed
        if self.cls_token is None:
            x = run_blocks(self.blocks, self.pre_norm(x), with_cp)
            axes = (2, 3) if self.frame_wise else (1, 2, 3)
            return self.norm(x.mean(axes)) if self.norm_of_mean else self.norm(
                x).mean(axes)
        x = x.flatten(2, 3) if self.frame_wise else x.flatten(
            1, 3).unsqueeze(1)
        cls_token = self.cls_token[0].expand(*x.shape[:2], -1, -1)
        x = torch.cat([cls_token, x], dim=2).unsqueeze(3)
        x = run_blocks(self.blocks, self.pre_norm(x), with_cp)
        x = self.norm(x[:, :, 0, 0])
        return x if self.frame_wise else x.squeeze(1)

    def forward_time(self, x: Tensor, with_cp: bool = False) -> Tensor:
        """Encode the results of the frames, [B, T, D], to [B, D]."""
        return self.temporal(x[:, :, None, None], with_cp)


def _attentions(pattern: str, grid_shape: tuple[int, int, int], *,
                embed_dims: int, num_heads: int, attention: dict,
                fixation: dict | None, qkv_bias: bool,
                drop_rate: float) -> dict[str, nn.Module]:
    """Build the attentions of a block, by name and in the order of use."""
    if pattern == 'dot':
        return dict(
            attn=FactorizedDotAttention(
                embed_dims,
                num_heads,
                qkv_bias=qkv_bias,
                attn_drop_rate=attention.get('dropout', 0.),
                drop_rate=drop_rate))
    patterns = dict(attn=pattern)
    if pattern in get_args(Order):
        patterns = dict(temporal_attn='time', attn='space')
    attentions = {
        name: VideoSelfAttention(
            embed_dims,
            num_heads,
            attention,
            grid_shape,
            pattern=which,
            fixation=fixation,
            qkv_bias=qkv_bias,
            dropout=drop_rate)
        for name, which in patterns.items()
    }
    return dict(reversed(attentions.items())) if pattern == 'space_time' \
        else attentions


@MODELS.register_module()
@check_arguments
class ViViT(BaseBackbone):
    """A transformer of tubelets, with attention factorized in four ways.

    A PyTorch implementation of `ViViT: A Video Vision Transformer
    <https://arxiv.org/abs/2103.15691>`_ (Sec. 3).

    Differs from the paper: Model 3 attends in time first, as in the released
    code; ``order='space_time'`` is the paper's. Differs from the released
    code: the class token has its position within it; stochastic depth acts in
    Model 3 too; linear layers start from a truncated normal distribution of
    ``init_std``; position tables are resized with bicubic interpolation, each
    frame by itself; and of the temporal attention of Model 3 only the output
    projection starts at zero (Sec. 3.4). The released option sets the
    projections to Q, K and V to zero as well, and then none of the four has
    a gradient, ever.

    Args:
        num_frames: Frames of a clip.
        img_size: Height and width of a frame, or one number for both.
        in_channels: Channels of a frame.
        patch_size: Side of a tubelet.
        tubelet_frames: Frames of a tubelet.
        sampled_frames: In place of tubelets, patches of so many frames of the
            clip (uniform frame sampling); needs ``tubelet_frames=1``.
        model: 'joint' (Model 1, spatio-temporal attention), 'fact_encoder'
            (2, factorized encoder), 'fact_attention' (3, factorized
            self-attention) or 'fact_dot' (4, factorized dot-product
            attention).
        arch: 'tiny', 'S', 'B', 'L', 'H', or a dict of ``embed_dims``,
            ``num_layers`` and ``num_heads``.
        embed_dims: Channels D of a token; that of ``arch`` by default.
        num_layers: Blocks; in Model 2 those of the spatial encoder. Likewise.
        num_heads: Heads of each attention. Likewise; even in Model 4.
        num_temporal_layers: Blocks of the temporal encoder of Model 2 only.
            Defaults to 4. With 0 there is no such encoder, and the frames'
            results are averaged (Table 2, average pooling baseline).
        mlp_ratio: Hidden channels of the MLP, in embed_dims.
        attention: Config of the attention itself, without its projections:
            ``type='SoftmaxAttention'``, ``'LinearAttention'``, ... Model 4
            has softmax attention, of which it takes ``dropout``. With a class
            token the tokens are one column, (1 + N, 1), that token first.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`; None
            for no fixation, as in the paper. Model 4 has none.
        order: Of Model 3 only: 'time_space' (the default) or 'space_time'.
        pool: What is classified: the class token, 'cls', the mean of the
            normalized tokens, 'mean', or their normalized mean, 'mean_norm',
            as in VideoMAE. Defaults to 'cls' in models 1 and 2. The others
            have no class token, and 'mean'.
        zero_init_temporal: In Model 3 only, start as a model of separate
            frames: the output projection of temporal attention is zero.
            Defaults to True.
        patch_init: How the patches of an image model start a tubelet:
            'central' or 'average', see :func:`inflate_kernel`. Without such a
            checkpoint tubelets start from random patches in the same way.
            'random' has tubelets start at random in every case.
        qkv_bias: Bias of the projection to Q, K and V.
        norm_eps: Added to the variance in LayerNorm.
        gelu_approximate: GELU's formula: 'tanh', as released, 'none', the
            exact one of most image ViTs, or 'sigmoid', as in OpenAI's CLIP.
        pre_norm: LayerNorm before the blocks as well, as in CLIP. Model 2
            has it before those of the frames.
        drop_rate: Dropout after the projections and in the MLP.
        drop_path_rate: Stochastic depth of the last block of an encoder; the
            others' increases linearly.
        drop_path_scale: Divide a branch that is kept by the probability of
            that. The released code does not.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialization.
        embed_init_std: Likewise of class tokens and position tables.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` starts from
            the tensors of FILE that match in name and shape, such as a 2D
            ImageNet ViT through ``tools/convert.py vivit_image``, and prints
            which did.
    """
    arch_zoo = dict(
        tiny=dict(embed_dims=192, num_layers=12, num_heads=3),
        S=dict(embed_dims=384, num_layers=12, num_heads=6),
        B=dict(embed_dims=768, num_layers=12, num_heads=12),
        L=dict(embed_dims=1024, num_layers=24, num_heads=16),
        H=dict(embed_dims=1280, num_layers=32, num_heads=16))

    def __init__(self,
                 num_frames: Count = 32,
                 img_size: Count | tuple[Count, Count] = 224,
                 in_channels: Count = 3,
                 patch_size: Count = 16,
                 tubelet_frames: Count = 2,
                 sampled_frames: Count | None = None,
                 model: Model = 'joint',
                 arch: str | dict = 'B',
                 embed_dims: Count | None = None,
                 num_layers: Count | None = None,
                 num_heads: Count | None = None,
                 num_temporal_layers: Natural | None = None,
                 mlp_ratio: Positive = 4,
                 attention: dict = dict(type='SoftmaxAttention'),
                 order: Order | None = None,
                 pool: Pool | None = None,
                 zero_init_temporal: bool | None = None,
                 patch_init: PatchInit = 'central',
                 qkv_bias: bool = True,
                 drop_rate: Fraction = 0.,
                 drop_path_rate: Fraction = 0.,
                 drop_path_scale: bool = False,
                 with_cp: bool = False,
                 init_std: NotNegative = 0.02,
                 embed_init_std: NotNegative = 0.02,
                 init_cfg: dict | None = None,
                 norm_eps: Positive = 1e-6,
                 gelu_approximate: Approximation = 'tanh',
                 pre_norm: bool = False,
                 fixation: dict | None = None) -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(arch, embed_dims=embed_dims,
                                num_layers=num_layers, num_heads=num_heads)
        sides = to_pair(img_size)
        check_divides(patch_size=patch_size, img_size=sides)
        for name, value, owner in (
            ('num_temporal_layers', num_temporal_layers, 'fact_encoder'),
            ('order', order, 'fact_attention'),
            ('zero_init_temporal', zero_init_temporal, 'fact_attention')):
            if value is not None and model != owner:
                raise ValueError(f'{name} belongs to model={owner!r}, got '
                                 f'{value!r} with {model!r}')
        has_token = model in ('joint', 'fact_encoder')
        if pool == 'cls' and not has_token:
            raise ValueError(f'model={model!r} has no class token: pool must '
                             "be 'mean', 'mean_norm' or None, got 'cls'")
        if model == 'fact_dot' and (
                attention.get('type') != 'SoftmaxAttention'
                or set(attention) - {'type', 'dropout'}):
            raise ValueError("model='fact_dot' has softmax attention: "
                             'attention must have type='
                             "'SoftmaxAttention' and may have dropout, got "
                             f'{attention}')
        if model == 'fact_dot' and fixation is not None:
            raise ValueError("model='fact_dot' has no feature fixation: "
                             f'fixation must be None, got {fixation}')
        embed_dims = arch['embed_dims']
        self.patch_init = patch_init
        self.embed_init_std = embed_init_std
        self.zero_init_temporal = (
            model == 'fact_attention' and zero_init_temporal is not False)
        self.patch_embed = TubeletEmbed(in_channels, embed_dims,
                                        tubelet_frames, patch_size,
                                        sampled_frames)
        grid_shape = self.patch_embed.grid_of(num_frames, sides)
        if model == 'fact_encoder' and num_temporal_layers is None:
            num_temporal_layers = 4
        pattern = dict(
            joint='joint',
            fact_encoder='space',
            fact_attention=order or 'time_space',
            fact_dot='dot')[model]
        self.encoder = Encoder(
            grid_shape,
            pattern,
            arch['num_layers'],
            num_temporal_layers,
            embed_dims=embed_dims,
            num_heads=arch['num_heads'],
            mlp_ratio=mlp_ratio,
            attention=attention,
            fixation=fixation,
            pool=pool or ('cls' if has_token else 'mean'),
            qkv_bias=qkv_bias,
            drop_rate=drop_rate,
            drop_path_rate=drop_path_rate,
            drop_path_scale=drop_path_scale,
            norm_eps=norm_eps,
            gelu_approximate=gelu_approximate,
            pre_norm=pre_norm)
        for name, module in self.named_modules():
            if isinstance(module, Encoder):
                self.position_grids[f'{name}.pos_embed'] = tuple(
                    module.pos_embed.shape[1:4])

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Tubelets, or single frames with ``sampled_frames``."""
        self.check_length(num_frames)
        return self.patch_embed.frame_groups(num_frames)

    def encode_frames(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to embedded tubelets, [B, T', H', W', D].

        In Model 2, whose spatial encoder sees the tubelets of one time only
        and has no positions in time, to its results, [B, T', D].
        """
        x = self.patch_embed(x)
        self.check_grid(x.shape[2:4], 'encoder.pos_embed')
        if self.encoder.frame_wise:
            x = self.encoder.forward_space(x, self.with_cp)
        return x

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Results of :meth:`encode_frames` to features [B, D]."""
        forward = self.encoder.forward_frames if self.encoder.frame_wise \
            else self.encoder
        return forward(x, self.with_cp)

    @property
    def temporal_encoder(self) -> nn.Module | None:
        """The encoder of the frames' results, of Model 2 alone."""
        return self.encoder.temporal

    def forward_spatial(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to what the temporal encoder takes.

        That is a feature of each frame of tubelets, [B, T, D].
        """
        self.check_clips(x)
        return self.encode_frames(x)

    def forward_temporal(self, x: Tensor) -> Tensor:
        """Results of :meth:`forward_spatial` to features [B, D]."""
        return self.encoder.forward_time(x, self.with_cp)

    def layer_groups(self) -> list[list[str]]:
        """See :class:`BaseBackbone`; two encoders are one after the other."""
        groups = [['patch_embed', 'encoder.pos_embed', 'encoder.cls_token',
                   'encoder.pre_norm'],
                  *block_names('encoder.blocks', self.encoder.blocks),
                  ['encoder.norm']]
        if self.encoder.temporal is not None:
            # The first norm joins the block before it, tables that behind.
            groups[-2:] = [groups[-2] + groups[-1]]
            blocks = block_names('encoder.temporal.blocks',
                                 self.encoder.temporal.blocks)
            blocks[0] += ['encoder.temporal.pos_embed',
                          'encoder.temporal.cls_token']
            groups += [*blocks, ['encoder.temporal.norm']]
        return groups

    def _init_parameters(self) -> None:
        super()._init_parameters()
        projection = self.patch_embed.projection
        if self.patch_init != 'random':
            with torch.no_grad():
                projection.weight.copy_(
                    inflate_kernel(projection.weight[:, :, 0],
                                   projection.kernel_size[0],
                                   self.patch_init))
        if self.zero_init_temporal:
            for block in self.encoder.blocks:
                nn.init.zeros_(block.temporal_attn.proj.weight)

    def _init_tables(self) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith(('pos_embed', 'cls_token')):
                nn.init.normal_(parameter, std=self.embed_init_std)

    def _fit_checkpoint(self, state_dict: dict, prefix: str, *args) -> None:
        """Fit a checkpoint to this model's clip length, grid and tubelets."""
        key = f'{prefix}patch_embed.projection.weight'
        kernel = state_dict.get(key)
        if kernel is not None and kernel.dim() == 4 and \
                self.patch_init != 'random':
            state_dict[key] = inflate_kernel(
                kernel, self.patch_embed.projection.kernel_size[0],
                self.patch_init)
        for name, grid_shape in self.position_grids.items():
            table = state_dict.get(prefix + name)
            if table is not None and table.dim() == 3:
                state_dict[prefix + name] = table.unflatten(
                    1, _grid_of_row(prefix + name, table.shape[1],
                                    grid_shape))
        super()._fit_checkpoint(state_dict, prefix, *args)


def _grid_of_row(name: str, numel: int,
                 grid_shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Find the axes of a released table, which has them all in one."""
    T, H, W = grid_shape
    side = math.isqrt(numel)
    if numel == T * H * W:
        return T, H, W
    if H == W == 1:
        return numel, 1, 1
    if T == 1 and side**2 == numel:
        return 1, side, side
    raise ValueError(
        f'{name} has {numel} positions in one row, which may be frames of '
        f'several sizes, and the model has {T} x {H} x {W}: load it into a '
        'model of its own num_frames and img_size, and save that, whose '
        'checkpoints are resized on load')
