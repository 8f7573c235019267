# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""ViViT: models 1 to 4.

Paper: *ViViT: A Video Vision Transformer*, https://arxiv.org/abs/2103.15691.
Authors' code:
https://github.com/google-research/scenic/tree/main/scenic/projects/vivit.
"""
import math
from collections.abc import Callable, Sequence
from functools import partial
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
from ..layers.tubelet_embed import inflate_kernel
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
    check_divides,
    to_pair,
)
from ..utils.modules import State
from .base import BaseBackbone, block_names, run_blocks

# The paper's models 1 to 4.
ENCODERS = ('joint', 'fact_encoder', 'fact_attention', 'fact_dot')
Model = Literal[ENCODERS]
Order = Literal['time_space', 'space_time']
Pool = Literal['cls', 'mean', 'mean_norm']
PatchInit = Literal['central', 'average', 'random']


class Encoder(nn.Module):
    """Transformer encoder: positions, class token, blocks, norm, pooling.

    Args:
        grid_shape: Tokens along time, rows and columns, (T, H, W).
        pattern: Tokens that attend to each other: 'joint' (of the clip),
            'space' (of a frame; each frame has positions, a class token and
            an output), 'causal' (of the same and of earlier frames; without
            positions and class token, each frame has an output),
            'time_space' or 'space_time' (two attentions, within a position and
            within a frame, in this order or reversed) or 'dot' (half of the
            heads within a position, half within a frame).
        num_layers: Number of blocks.
        num_temporal_layers: Number of blocks of a joint encoder over the
            outputs of the frames. With 0, the outputs are averaged; with None,
            they are returned.
        build_block: :func:`_block` with its last options.
        embed_dims, attention, pool, drop_path_rate, norm_eps, pre_norm: See
            :class:`ViViT`.
        causal: Options ``attention`` and ``decay`` of a causal encoder over
            the outputs of the frames. Defaults to None: it is joint.
        decay: Options of :class:`mmvidattn.layers.FrameDecay`, only for the
            pattern 'causal'.
    """

    def __init__(self,
                 grid_shape: tuple[int, int, int],
                 pattern: str,
                 num_layers: int,
                 num_temporal_layers: int | None = None,
                 *,
                 build_block: Callable[..., VideoTransformerBlock],
                 embed_dims: int,
                 attention: dict | Sequence[dict],
                 pool: str,
                 drop_path_rate: float,
                 norm_eps: float,
                 pre_norm: bool = False,
                 causal: dict | None = None,
                 decay: dict | None = None) -> None:
        super().__init__()
        num_behind = 0 if causal else num_temporal_layers or 0
        attentions = attention_of_layers(attention, num_layers + num_behind)
        T, H, W = grid_shape
        self.frame_wise = pattern == 'space'
        self.pos_embed = self.cls_token = None
        is_causal = pattern == 'causal'
        if not is_causal:
            self.pos_embed = nn.Parameter(
                torch.zeros(1, 1 if self.frame_wise else T, H, W, embed_dims))
        if pool == 'cls' and not is_causal:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, 1, 1, embed_dims))
            # Arrange the tokens of a frame, or of the clip, as one column. A
            # column of the clip is treated as a single frame.
            grid_shape = (T, 1 + H * W, 1) if self.frame_wise else (
                1, 1 + T * H * W, 1)
            pattern = 'space'
        self.norm_of_mean = pool == 'mean_norm'
        self.pre_norm = nn.LayerNorm(
            embed_dims, eps=norm_eps) if pre_norm else nn.Identity()
        self.blocks = nn.ModuleList(
            build_block(pattern, grid_shape, layer_attention, decay, rate)
            for rate, layer_attention in zip(
                stochastic_depth_rates(drop_path_rate, num_layers),
                attentions))
        self.norm = nn.LayerNorm(embed_dims, eps=norm_eps)
        self.temporal = None
        self.average_frames = num_temporal_layers == 0
        if num_temporal_layers:
            self.temporal = Encoder(
                (T, 1, 1),
                'joint' if causal is None else 'causal',
                num_temporal_layers,
                build_block=build_block, embed_dims=embed_dims, pool=pool,
                drop_path_rate=drop_path_rate, norm_eps=norm_eps,
                **(causal or dict(attention=attentions[num_layers:])))

    def forward(self, x: Tensor, with_cp: bool) -> Tensor:
        """Encode tokens [B, T, H, W, D] to [B, D].

        The result is [B, T, D] for the pattern 'space' with
        ``num_temporal_layers=None``.
        """
        return self.forward_frames(self.forward_space(x, with_cp), with_cp)

    def forward_frames(self, x: Tensor, with_cp: bool) -> Tensor:
        """Encode or average the outputs of :meth:`forward_space`."""
        if self.temporal is not None:
            x = self.temporal(x[:, :, None, None], with_cp)
        return x.mean(dim=1) if self.average_frames else x

    def forward_space(self, x: Tensor, with_cp: bool) -> Tensor:
        """Encode tokens as :meth:`forward`, without the temporal encoder."""
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


def _block(pattern: str, grid_shape: tuple[int, int, int], attention: dict,
           decay: dict | None, drop_path: float, *, embed_dims: int,
           num_heads: int, mlp_ratio: float, fixation: dict | None,
           qkv_bias: bool, drop_rate: float, drop_path_scale: bool,
           norm_eps: float,
           gelu_approximate: Approximation) -> VideoTransformerBlock:
    """Build a block; for the options, see :class:`Encoder`, :class:`ViViT`."""
    if pattern == 'dot':
        if attention.get('type') != 'SoftmaxAttention' or {*attention} - {
                'type', 'dropout'} or fixation is not None:
            raise ValueError("model='fact_dot' requires fixation=None and "
                             "attention=dict(type='SoftmaxAttention'), "
                             'optionally with dropout, got fixation='
                             f'{fixation} and attention={attention}')
        attentions = dict(
            attn=FactorizedDotAttention(
                embed_dims,
                num_heads,
                qkv_bias=qkv_bias,
                attn_drop_rate=attention.get('dropout', 0.),
                drop_rate=drop_rate))
    else:
        patterns = dict(attn=pattern)
        if pattern in get_args(Order):
            patterns = dict(temporal_attn='time', attn='space')
        attentions = {
            name: VideoSelfAttention(
                embed_dims, num_heads, attention, grid_shape, pattern=part,
                fixation=fixation, qkv_bias=qkv_bias, dropout=drop_rate,
                decay=decay)
            for name, part in patterns.items()
        }
    if pattern == 'space_time':
        attentions = dict(reversed(attentions.items()))
    mlp = MLP(embed_dims, int(mlp_ratio * embed_dims), dropout=drop_rate,
              approximate=gelu_approximate)
    return VideoTransformerBlock(attentions, mlp, embed_dims, drop_path,
                                 norm_eps, scale_by_keep=drop_path_scale)


@MODELS.register_module()
@check_arguments
class ViViT(BaseBackbone):
    """Transformer of tubelets with four factorizations of attention.

    A PyTorch implementation of `ViViT: A Video Vision Transformer
    <https://arxiv.org/abs/2103.15691>`_ (Sec. 3).

    Not in the paper: ``causal``, with which Model 2 runs as a stream
    (:meth:`forward_causal`). A frame attends to earlier frames only, and the
    temporal encoder has neither positions nor a class token. Such a network
    requires ``tubelet_frames=1``, accepts clips of any length, and computes
    features [B, D, T, 1, 1] for the heads of the linear video transformer. It
    loads checkpoints of Model 2.

    Differs from the paper: Model 3 attends in time first, as in the released
    code; ``order='space_time'`` follows the paper.

    Differs from the released code:

    * The class token has its position within it.
    * Stochastic depth also acts in Model 3.
    * Linear layers start from a truncated normal distribution of
      ``init_std``.
    * Position tables are resized by bicubic interpolation of each frame.
    * In the temporal attention of Model 3 only the output projection starts
      at zero (Sec. 3.4). The released option also sets the projections to Q,
      K and V to zero; all of them then have zero gradients forever.

    Args:
        num_frames: Clip length. Defaults to 32.
        img_size: Height and width of a frame, or one number for both.
            Defaults to 224.
        patch_size: Side of a tubelet. Defaults to 16.
        tubelet_frames: Frames of a tubelet. Defaults to 2.
        sampled_frames: Number of sampled frames whose patches replace
            tubelets (uniform frame sampling); requires
            ``tubelet_frames=1``. Defaults to None.
        model: 'joint' (Model 1, spatio-temporal attention), 'fact_encoder'
            (2, factorized encoder), 'fact_attention' (3, factorized
            self-attention) or 'fact_dot' (4, factorized dot-product
            attention). Defaults to 'joint'.
        arch: 'tiny', 'S', 'B', 'L', 'H', or a dict of ``embed_dims``,
            ``num_layers`` (in Model 2 of the spatial encoder) and
            ``num_heads`` (even in Model 4). Defaults to 'B'.
        num_temporal_layers: Number of blocks of the temporal encoder, only
            for Model 2. With 0 the outputs of the frames are averaged
            (Table 2, average pooling baseline). Defaults to 4.
        attention: Config of a :class:`BaseAttention`, for all layers or by
            layer, see :func:`attention_of_layers`; in Model 2, the layers of
            the temporal encoder follow those of the spatial encoder. Model 4
            only accepts 'SoftmaxAttention' and its ``dropout``. With a class
            token the tokens form one column, (1 + N, 1), that token first.
            Defaults to ``dict(type='SoftmaxAttention')``.
        fixation: Options of :class:`mmvidattn.layers.FeatureFixation`, not
            for Model 4. Defaults to None, for no fixation, as in the paper.
        order: 'time_space' or 'space_time', only for Model 3. Defaults to
            'time_space'.
        pool: Input of the classifier: 'cls' (class token), 'mean' (mean of
            the normalized tokens) or 'mean_norm' (normalized mean of the
            tokens, as in VideoMAE). Defaults to 'cls' in models 1 and 2, and
            to 'mean' in models 3 and 4, which have no class token.
        zero_init_temporal: Initialize the output projection of temporal
            attention with zeros, so that Model 3 starts as a model of
            separate frames; only for Model 3. Defaults to True.
        patch_init: Initialization of tubelets from the patches of an image
            checkpoint, or from random patches without one: 'central' or
            'average', see :func:`inflate_kernel`. 'random' initializes whole
            tubelets at random. Defaults to 'central'.
        norm_eps: Added to the variance in LayerNorm. Defaults to 1e-6.
        gelu_approximate: Formula of GELU: 'tanh' (as released), 'none'
            (exact, as in most image ViTs) or 'sigmoid' (as in OpenAI's
            CLIP). Defaults to 'tanh'.
        pre_norm: Add a LayerNorm before the blocks, in Model 2 before the
            blocks of the spatial encoder, as in CLIP. Defaults to False.
        drop_path_rate: Stochastic depth of the last block of an encoder; it
            rises linearly from 0. Defaults to 0.
        drop_path_scale: Divide a branch that is kept by the probability of
            keeping it; the released code does not. Defaults to False.
        embed_init_std: Standard deviation of the initial class tokens and
            position tables. Defaults to 0.02.
        causal: Make the temporal encoder causal, only for Model 2, with these
            options: ``attention``, ``dict(type='LinearAttention')``,
            ``dict(type='GatedDeltaAttention')`` or ``dict(
            type='SoftmaxAttention', window_frames=W)``, by default
            LinearAttention with ReLU and ``offset='auto'``; and ``decay``,
            see :class:`mmvidattn.layers.FrameDecay`, by default None.
            Defaults to None: the temporal encoder is bidirectional.
        embed_dims, num_layers, num_heads, in_channels, mlp_ratio: See
            :class:`BaseBackbone`.
        qkv_bias, drop_rate, with_cp, init_std, init_cfg: See
            :class:`BaseBackbone`. ``tools/convert.py vivit_image`` converts
            image models.
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
                 attention: dict | Sequence[dict] = dict(
                     type='SoftmaxAttention'),
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
                 fixation: dict | None = None,
                 causal: dict | None = None) -> None:
        super().__init__(num_frames, with_cp, init_std, init_cfg)
        arch = self.choose_arch(arch, embed_dims=embed_dims,
                                num_layers=num_layers, num_heads=num_heads)
        sides = to_pair(img_size)
        check_divides(patch_size=patch_size, img_size=sides)
        for name, value, owner in (
            ('num_temporal_layers', num_temporal_layers, 'fact_encoder'),
            ('causal', causal, 'fact_encoder'),
            ('order', order, 'fact_attention'),
            ('zero_init_temporal', zero_init_temporal, 'fact_attention')):
            if value is not None and model != owner:
                raise ValueError(f'{name} requires model={owner!r}, got '
                                 f'{value!r} with {model!r}')
        if causal is not None:
            _check_causal(causal, num_temporal_layers, tubelet_frames,
                         sampled_frames)
            causal = dict(dict(attention=dict(
                type='LinearAttention', kernel='relu', offset='auto')),
                **causal)
        self.is_causal = self.any_length = causal is not None
        embed_dims = arch['embed_dims']
        self.frame_shape, self.embed_dims = sides, embed_dims
        has_token = model in ('joint', 'fact_encoder')
        if pool == 'cls' and not has_token:
            raise ValueError(f'model={model!r} has no class token: pool must '
                             "be 'mean', 'mean_norm' or None, got 'cls'")
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
            grid_shape, pattern, arch['num_layers'], num_temporal_layers,
            build_block=partial(
                _block,
                embed_dims=embed_dims, num_heads=arch['num_heads'],
                mlp_ratio=mlp_ratio, fixation=fixation, qkv_bias=qkv_bias,
                drop_rate=drop_rate, drop_path_scale=drop_path_scale,
                norm_eps=norm_eps, gelu_approximate=gelu_approximate),
            embed_dims=embed_dims,
            attention=attention,
            pool=pool or ('cls' if has_token else 'mean'),
            drop_path_rate=drop_path_rate, norm_eps=norm_eps,
            pre_norm=pre_norm, causal=causal)
        for name, module in self.named_modules():
            if isinstance(module, Encoder) and module.pos_embed is not None:
                self.position_grids[f'{name}.pos_embed'] = tuple(
                    module.pos_embed.shape[1:4])

    def frame_groups(self, num_frames: int) -> list[tuple[int, ...]]:
        """Return the frames of each tubelet, or single sampled frames."""
        self.check_length(num_frames)
        return self.patch_embed.frame_groups(num_frames)

    def encode_frames(self, x: Tensor) -> Tensor:
        """Embed clips [B, C, T, H, W] as tubelets, [B, T', H', W', D].

        Model 2 also runs the spatial encoder, which neither mixes tubelets
        of different times nor has positions in time, and returns [B, T', D].
        """
        x = self.patch_embed(x)
        self.check_grid(x.shape[2:4], 'encoder.pos_embed')
        if self.encoder.frame_wise:
            x = self.encoder.forward_space(x, self.with_cp)
        return x

    def forward_encoded(self, x: Tensor) -> Tensor:
        """Compute features [B, D] from the encodings.

        They are [B, D, T, 1, 1] if the network is causal.
        """
        if self.is_causal:
            return self._encode_causally(x)[0]
        if self.encoder.frame_wise:
            return self.encoder.forward_frames(x, self.with_cp)
        return self.encoder(x, self.with_cp)

    def _forward_causal(self, x: Tensor, state: State,
                        elapsed: Tensor | None) -> tuple[Tensor, State]:
        """Compute features [B, D, T, 1, 1] of the next frames."""
        return self._encode_causally(self.encode_frames(x), state, elapsed)

    def _initial_state(self, batch_size: int,
                       frame_shape: tuple[int, int] | None) -> State:
        weight = self.temporal_encoder.norm.weight
        return self.initial_block_states(
            weight.new_empty(batch_size, 0, 1, 1, len(weight)))

    def _encode_causally(self, x: Tensor, state: State | None = None,
                         elapsed: Tensor | None = None
                         ) -> tuple[Tensor, State]:
        """Encode the outputs of frames [B, T, D] to [B, D, T, 1, 1]."""
        x, state = self.run_causal_blocks(x[:, :, None, None], state, elapsed)
        return self.temporal_encoder.norm(x).permute(0, 4, 1, 2, 3), state

    @property
    def causal_blocks(self) -> nn.ModuleList:
        """Blocks of the temporal encoder."""
        return self.temporal_encoder.blocks

    @property
    def temporal_encoder(self) -> nn.Module | None:
        """Return the temporal encoder of Model 2, else None."""
        return self.encoder.temporal

    def layer_groups(self) -> list[list[str]]:
        """List depths; the temporal encoder follows the spatial one."""
        groups = [['patch_embed', 'encoder.pos_embed', 'encoder.cls_token',
                   'encoder.pre_norm'],
                  *block_names('encoder.blocks', self.encoder.blocks),
                  ['encoder.norm']]
        if self.temporal_encoder is not None:
            # The first norm belongs to the last spatial block, the tables to
            # the first temporal block.
            groups[-2:] = [groups[-2] + groups[-1]]
            blocks = block_names('encoder.temporal.blocks', self.causal_blocks)
            if not self.is_causal:
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
        """Adapt a checkpoint to the clip length, grid and tubelets."""
        if self.is_causal:
            for name in 'pos_embed', 'cls_token':
                state_dict.pop(f'{prefix}encoder.temporal.{name}', None)
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


def _check_causal(causal: dict, num_temporal_layers: int | None,
                 tubelet_frames: int, sampled_frames: int | None) -> None:
    """Raise a ``ValueError`` if options do not fit a causal Model 2."""
    if unknown := sorted({*causal} - {'attention', 'decay'}):
        raise ValueError("causal must have the keys 'attention' and 'decay' "
                         f'only, got {unknown}')
    if num_temporal_layers == 0:
        raise ValueError('causal requires num_temporal_layers of at least 1, '
                         'got 0')
    if tubelet_frames != 1 or sampled_frames is not None:
        raise ValueError(
            'causal requires tubelet_frames=1 and sampled_frames=None, got '
            f'{tubelet_frames} and {sampled_frames}')


def _grid_of_row(name: str, numel: int,
                 grid_shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Infer the grid of a released table, which is flat."""
    T, H, W = grid_shape
    side = math.isqrt(numel)
    if numel == T * H * W:
        return T, H, W
    if H == W == 1:
        return numel, 1, 1
    if T == 1 and side**2 == numel:
        return 1, side, side
    raise ValueError(
        f'{name} has {numel} positions in one row, whose grid is ambiguous, '
        f'but the model has {T} x {H} x {W}. Load the file into a model with '
        'its original num_frames and img_size, and save that model; its '
        'checkpoint can be resized on load')
