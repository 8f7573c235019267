# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ViViT, models 1 to 4.

Paper: *ViViT: A Video Vision Transformer*, https://arxiv.org/abs/2103.15691.
Authors' code:
https://github.com/google-research/scenic/tree/main/scenic/projects/vivit.
"""
import math
from collections.abc import Callable
from functools import partial

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..layers import (
    ConvMLP,
    FactorisedDotAttention,
    TubeletEmbed,
    VideoSelfAttention,
    VideoTransformerBlock,
)
from ..layers.stochastic_depth import stochastic_depth_rates
from ..layers.tubelet_embed import INFLATIONS, inflate_kernel
from ..utils.positions import resize_positions
from .base_video_transformer import BaseBackbone, run_blocks

# Channels, blocks and heads of the image models of these names.
ARCHS = dict(
    tiny=(192, 12, 3), S=(384, 12, 6), B=(768, 12, 12), L=(1024, 24, 16))
ORDERS = ('time_space', 'space_time')
POOLS = ('cls', 'mean')
PATCH_INITS = (*INFLATIONS, 'random')


class Encoder(nn.Module):
    """Positions, perhaps a class token, blocks, the last norm, pooling.

    A subclass says which tokens attend to one another.

    Args:
        grid_shape: Tokens along time, rows and columns, (T, H, W).
        embed_dims: Channels D.
        num_layers: Blocks.
        num_heads: Heads of each attention.
        mlp_ratio: Hidden channels of the MLP, in embed_dims.
        attention: Config of the attention itself.
        pool: What is returned: the class token, 'cls', or the tokens' mean,
            'mean'.
        qkv_bias: Bias of the projection to Q, K and V.
        drop_rate: Dropout after the projections and in the MLP.
        drop_path_rate: Stochastic depth of the last block.
        scale_by_keep: See :class:`VideoTransformerBlock`.
        with_cp: Recompute each block in the backward pass.
    """
    # Whether each frame has positions, class token and result of its own.
    frame_wise = False

    def __init__(self, grid_shape: tuple[int, int, int], *, embed_dims: int,
                 num_layers: int, num_heads: int, mlp_ratio: float,
                 attention: dict, pool: str, qkv_bias: bool, drop_rate: float,
                 drop_path_rate: float, scale_by_keep: bool,
                 with_cp: bool) -> None:
        super().__init__()
        self.with_cp = with_cp
        T, H, W = grid_shape
        self.pos_embed = nn.Parameter(
            torch.zeros(1, 1 if self.frame_wise else T, H, W, embed_dims))
        self.cls_token = None
        if pool == 'cls':
            self.cls_token = nn.Parameter(torch.zeros(1, 1, 1, 1, embed_dims))
            grid_shape = (T, 1 + H * W, 1) if self.frame_wise else (
                1, 1 + T * H * W, 1)
        new_attention = partial(
            VideoSelfAttention,
            embed_dims,
            num_heads,
            attention,
            grid_shape,
            qkv_bias=qkv_bias,
            dropout=drop_rate)
        self.blocks = nn.ModuleList(
            VideoTransformerBlock(
                self.attentions(new_attention),
                ConvMLP(
                    embed_dims,
                    int(mlp_ratio * embed_dims),
                    with_conv=False,
                    dropout=drop_rate,
                    approximate='tanh'),
                embed_dims,
                rate,
                scale_by_keep=scale_by_keep)
            for rate in stochastic_depth_rates(drop_path_rate, num_layers))
        self.norm = nn.LayerNorm(embed_dims, eps=1e-6)

    def attentions(self, new: Callable) -> dict[str, nn.Module]:
        """The attentions of a block by name; ``new(pattern=...)`` is one."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, H, W, D] to [B, D], or [B, T, D] if ``frame_wise``."""
        x = x + self.pos_embed
        if self.cls_token is None:
            x = self.norm(run_blocks(self.blocks, x, self.with_cp))
            return x.mean(dim=(2, 3) if self.frame_wise else (1, 2, 3))
        # One column of tokens, of each frame or of all.
        x = x.flatten(2, 3) if self.frame_wise else x.flatten(
            1, 3).unsqueeze(1)
        cls_token = self.cls_token[0].expand(*x.shape[:2], -1, -1)
        x = torch.cat([cls_token, x], dim=2).unsqueeze(3)
        x = run_blocks(self.blocks, x, self.with_cp)
        x = self.norm(x[:, :, 0, 0])
        return x if self.frame_wise else x.squeeze(1)


class JointEncoder(Encoder):
    """Model 1: all tokens of the clip attend to one another."""

    def attentions(self, new: Callable) -> dict[str, nn.Module]:
        # A column of all tokens is that of a single frame.
        return dict(
            attn=new(pattern='joint' if self.cls_token is None else 'space'))


class FactorisedEncoder(Encoder):
    """Model 2: an encoder of each frame, then one of the frames' results.

    Args:
        num_temporal_layers: Blocks of the second encoder.
        **kwargs: See :class:`Encoder`.
    """
    frame_wise = True

    def __init__(self, grid_shape: tuple[int, int, int], *,
                 num_temporal_layers: int, **kwargs) -> None:
        super().__init__(grid_shape, **kwargs)
        kwargs['num_layers'] = num_temporal_layers
        self.temporal = JointEncoder((grid_shape[0], 1, 1), **kwargs)

    def attentions(self, new: Callable) -> dict[str, nn.Module]:
        return dict(attn=new(pattern='space'))

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, H, W, D] to [B, D]."""
        return self.temporal(super().forward(x)[:, :, None, None])


class FactorisedAttentionEncoder(Encoder):
    """Model 3: each block attends in time and in space, one after the other.

    Args:
        order: 'time_space' or 'space_time'.
        **kwargs: See :class:`Encoder`.
    """

    def __init__(self, grid_shape: tuple[int, int, int], *, order: str,
                 **kwargs) -> None:
        self.order = order
        super().__init__(grid_shape, **kwargs)

    def attentions(self, new: Callable) -> dict[str, nn.Module]:
        both = dict(
            temporal_attn=new(pattern='time'), attn=new(pattern='space'))
        return both if self.order == 'time_space' else dict(
            reversed(both.items()))


class FactorisedDotEncoder(Encoder):
    """Model 4: half of the heads attend in time, the others in space."""

    def attentions(self, new: Callable) -> dict[str, nn.Module]:
        embed_dims, num_heads, attention, _ = new.args
        return dict(
            attn=FactorisedDotAttention(
                embed_dims,
                num_heads,
                qkv_bias=new.keywords['qkv_bias'],
                attn_drop_rate=attention.get('dropout', 0.),
                drop_rate=new.keywords['dropout']))


ENCODERS = dict(
    joint=JointEncoder,
    fact_encoder=FactorisedEncoder,
    fact_attention=FactorisedAttentionEncoder,
    fact_dot=FactorisedDotEncoder)


@MODELS.register_module()
class ViViT(BaseBackbone):
    """A transformer of tubelets, with attention factorised in four ways.

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
            (2, factorised encoder), 'fact_attention' (3, factorised
            self-attention) or 'fact_dot' (4, factorised dot-product
            attention).
        arch: 'tiny', 'S', 'B' or 'L': channels, blocks and heads.
        embed_dims: Channels D of a token; that of ``arch`` by default.
        num_layers: Blocks; in Model 2 those of the spatial encoder. Likewise.
        num_heads: Heads of each attention. Likewise; even in Model 4.
        num_temporal_layers: Blocks of the temporal encoder of Model 2 only.
            Defaults to 4.
        mlp_ratio: Hidden channels of the MLP, in embed_dims.
        attention: Config of the attention itself, without its projections:
            ``type='SoftmaxAttention'``, ``'LinearAttention'``, ... Model 4
            has softmax attention, of which it takes ``dropout``. With a class
            token the tokens are one column, (1 + N, 1), that token first.
        order: Of Model 3 only: 'time_space' (the default) or 'space_time'.
        pool: What is classified: the class token, 'cls', or the tokens' mean,
            'mean'. Defaults to 'cls' in models 1 and 2. The others have no
            class token.
        zero_init_temporal: In Model 3 only, start as a model of separate
            frames: the output projection of temporal attention is zero.
            Defaults to True.
        patch_init: How the patches of an image model start a tubelet:
            'central' or 'average', see :func:`inflate_kernel`. Without such a
            checkpoint tubelets start from random patches in the same way.
            'random' has tubelets start at random in every case.
        qkv_bias: Bias of the projection to Q, K and V.
        drop_rate: Dropout after the projections and in the MLP.
        drop_path_rate: Stochastic depth of the last block of an encoder; the
            others' increases linearly.
        drop_path_scale: Divide a branch that is kept by the probability of
            that. The released code does not.
        with_cp: Recompute each block in the backward pass, to save memory.
        init_std: Standard deviation of the linear layers' initialisation.
        embed_init_std: Likewise of class tokens and position tables.
        init_cfg: ``dict(type='Pretrained', checkpoint=FILE)`` starts from
            the tensors of FILE that match in name and shape, such as a 2D
            ImageNet ViT through ``tools/convert.py vivit_image``, and prints
            which did.
    """

    def __init__(self,
                 num_frames: int = 32,
                 img_size: int | tuple[int, int] = 224,
                 in_channels: int = 3,
                 patch_size: int = 16,
                 tubelet_frames: int = 2,
                 sampled_frames: int | None = None,
                 model: str = 'joint',
                 arch: str = 'B',
                 embed_dims: int | None = None,
                 num_layers: int | None = None,
                 num_heads: int | None = None,
                 num_temporal_layers: int | None = None,
                 mlp_ratio: float = 4,
                 attention: dict = dict(type='SoftmaxAttention'),
                 order: str | None = None,
                 pool: str | None = None,
                 zero_init_temporal: bool | None = None,
                 patch_init: str = 'central',
                 qkv_bias: bool = True,
                 drop_rate: float = 0.,
                 drop_path_rate: float = 0.,
                 drop_path_scale: bool = False,
                 with_cp: bool = False,
                 init_std: float = 0.02,
                 embed_init_std: float = 0.02,
                 init_cfg: dict | None = None) -> None:
        for name, value, allowed in (('model', model, tuple(ENCODERS)),
                                     ('arch', arch, tuple(ARCHS)),
                                     ('order', order, (*ORDERS, None)),
                                     ('pool', pool, (*POOLS, None)),
                                     ('patch_init', patch_init, PATCH_INITS)):
            if value not in allowed:
                raise ValueError(
                    f'{name} must be one of {allowed}, got {value!r}')
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
                             "be 'mean' or None, got 'cls'")
        if model == 'fact_dot' and (
                attention.get('type') != 'SoftmaxAttention'
                or set(attention) - {'type', 'dropout'}):
            raise ValueError("model='fact_dot' has softmax attention: "
                             'attention must have type='
                             "'SoftmaxAttention' and may have dropout, got "
                             f'{attention}')
        for name, value in (('embed_dims', embed_dims),
                            ('num_layers', num_layers),
                            ('num_heads', num_heads),
                            ('num_temporal_layers', num_temporal_layers)):
            if value is not None and value < 1:
                raise ValueError(f'{name} must be 1 at least, got {value}')
        super().__init__(init_std, init_cfg)
        self.num_frames = num_frames
        self.patch_init = patch_init
        self.embed_init_std = embed_init_std
        self.zero_init_temporal = zero_init_temporal in (None, True)
        default_dims, default_layers, default_heads = ARCHS[arch]
        embed_dims = embed_dims or default_dims
        self.patch_embed = TubeletEmbed(in_channels, embed_dims,
                                        tubelet_frames, patch_size,
                                        sampled_frames)
        self.grid_shape = self.patch_embed.grid_of(num_frames, img_size)
        own = dict(
            fact_encoder=dict(
                num_temporal_layers=4
                if num_temporal_layers is None else num_temporal_layers),
            fact_attention=dict(order=order or 'time_space'))
        self.encoder = ENCODERS[model](
            self.grid_shape,
            embed_dims=embed_dims,
            num_layers=num_layers or default_layers,
            num_heads=num_heads or default_heads,
            mlp_ratio=mlp_ratio,
            attention=attention,
            pool=pool or ('cls' if has_token else 'mean'),
            qkv_bias=qkv_bias,
            drop_rate=drop_rate,
            drop_path_rate=drop_path_rate,
            scale_by_keep=drop_path_scale,
            with_cp=with_cp,
            **own.get(model, {}))

    def forward(self, x: Tensor) -> Tensor:
        """Clips [B, C, T, H, W] to features [B, D].

        Raises:
            ValueError: If the clips have not ``num_frames`` frames, or the
                grid of tubelets is not that of the position table.
        """
        if x.shape[2] != self.num_frames:
            raise ValueError(
                f'ViViT was built for num_frames={self.num_frames}, got clips '
                f'of {x.shape[2]} frames {tuple(x.shape)}; set clip_len in '
                'the pipeline or num_frames in the config (a checkpoint is '
                'resized on load)')
        x = self.patch_embed(x)
        if x.shape[2:4] != self.grid_shape[1:]:
            raise ValueError(
                f'the frames give {tuple(x.shape[2:4])} patches, but the '
                f'position table has {self.grid_shape[1:]}; set img_size (a '
                'checkpoint is resized on load)')
        return self.encoder(x)

    def get_layer_depth(self, name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of depths, for layer-wise rates."""
        name = name.removeprefix(prefix)
        first = 1
        last = num_layers = len(self.encoder.blocks)
        if isinstance(self.encoder, FactorisedEncoder):
            num_layers += len(self.encoder.temporal.blocks)
            if name.startswith('encoder.temporal.'):
                first, last = last + 1, num_layers + 1
        else:
            last += 1
        num_depths = num_layers + 2
        part = name.removeprefix('encoder.').removeprefix('temporal.')
        if part.startswith('blocks.'):
            depth = first + int(part.split('.')[1])
        elif part.startswith('norm.'):
            depth = last
        else:
            # What comes before the blocks.
            depth = 0 if first == 1 else first
        return depth, num_depths

    def _init_parameters(self) -> None:
        super()._init_parameters()
        projection = self.patch_embed.projection
        if self.patch_init != 'random':
            with torch.no_grad():
                projection.weight.copy_(
                    inflate_kernel(projection.weight[:, :, 0],
                                   projection.kernel_size[0],
                                   self.patch_init))
        if isinstance(self.encoder, FactorisedAttentionEncoder) and \
                self.zero_init_temporal:
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
        for name, module in self.named_modules():
            key = f'{prefix}{name}.pos_embed'
            table = state_dict.get(key)
            if table is None or not isinstance(module, Encoder):
                continue
            grid_shape = module.pos_embed.shape[1:4]
            if table.dim() == 3:
                table = table.unflatten(
                    1, _grid_of_table(key, table.shape[1], grid_shape))
            if table.shape[-1] == module.pos_embed.shape[-1]:
                table = resize_positions(table, grid_shape)
            state_dict[key] = table


def _grid_of_table(name: str, numel: int,
                   grid_shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """The axes of a released table, which has them all in one."""
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
