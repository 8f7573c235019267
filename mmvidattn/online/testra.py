# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, Natural, Share, check_arguments
from .block import Activation, Reader
from .decoder import OnlineDecoder
from .encoder import MemoryEncoder
from .feature_projection import FeatureProjection
from .position import sinusoidal_positions

# Where the work memory joins the long one, by its name and the paper's in
# Table 6b.
FUSIONS = dict(
    compressed='@ comp. mem.', long='@ long mem.', none='no fuse')


@MODELS.register_module()
@check_arguments
class TeSTra(BaseModule):
    """Temporal smoothing transformer: features of a stream to features.

    `Real-time Online Video Detection with Temporal Smoothing Transformers
    <https://arxiv.org/abs/2209.09236>`_. Learned queries compress a long
    memory, in which a sample counts less as it ages; a causal decoder reads
    the latest frames, the work memory, with the compressed one, and tokens
    that stand for what has not happened yet. Calling the module is the
    windowed computation: long and work memory in, all steps of the work
    memory out.

    The network is cut where frames are independent: :meth:`project` makes a
    row of each frame, :meth:`read` reads the rows of windows. Where windows
    share frames a row is made once: :func:`mmvidattn.online.dense_features`
    gathers rows of a video, :class:`~mmvidattn.online.testra_step.TeSTraStep`
    those of a stream's latest frames.

    `LSTR <https://arxiv.org/abs/2107.03377>`_ is this model with
    ``decay=1, fusion='none', long_memory_pos_embed=True``.

    Differs from the paper: the decay is in samples and is not scaled
    (:func:`mmvidattn.ops.temporal_smoothing_attention`), as released.

    Args:
        in_channels: Channels of each modality; they are put side by side in
            this order.
        embed_dims: Channels C.
        num_heads: Heads G.
        ffn_dims: Hidden channels of the blocks' two layers.
        long_memory_length: Samples N of the long memory; 0 for none.
        work_memory_length: Samples L of the work memory.
        num_anticipation_tokens: Steps A that are anticipated.
        encoder: Of each stage ``dict(num_queries=..., num_layers=...)``; see
            :class:`MemoryEncoder`.
        num_layers: Blocks of the decoder.
        decay: Weight of a long memory's sample relative to the next newer
            one: 1 for the box kernel, less for the Laplace kernel.
        fusion: Where the work memory joins the long one: 'compressed', beside
            what the encoder makes (the paper's choice), 'long', behind what
            it reads, or 'none'.
        long_memory_pos_embed: Add positions to the long memory, as LSTR does.
        work_memory_pos_embed: Add positions to the work memory. The tokens of
            anticipation always have theirs.
        drop_rate: Dropout within the blocks and of what positions were
            added to.
        feature_drop_rate: Dropout of the features.
        act: 'relu' or 'gelu'.
        init_cfg: Of ``BaseModule``.
    """

    def __init__(self,
                 in_channels: Mapping[str, Count],
                 embed_dims: Count = 1024,
                 num_heads: Count = 16,
                 ffn_dims: Count = 1024,
                 long_memory_length: Natural = 512,
                 work_memory_length: Count = 32,
                 num_anticipation_tokens: Natural = 0,
                 encoder: Sequence[dict[str, int | None]] = (
                     dict(num_queries=16, num_layers=1),
                     dict(num_queries=32, num_layers=2)),
                 num_layers: Count = 2,
                 decay: Share = 1.,
                 fusion: Literal[tuple(FUSIONS)] = 'compressed',
                 long_memory_pos_embed: bool = False,
                 work_memory_pos_embed: bool = True,
                 drop_rate: Fraction = 0.2,
                 feature_drop_rate: Fraction = 0.,
                 act: Activation = 'relu',
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.in_channels = dict(in_channels)
        self.embed_dims = embed_dims
        self.long_memory_length = long_memory_length
        self.work_memory_length = work_memory_length
        self.num_anticipation_tokens = num_anticipation_tokens
        self.fusion = fusion
        self.long_memory_pos_embed = long_memory_pos_embed
        self.work_memory_pos_embed = work_memory_pos_embed
        kwargs = dict(
            num_heads=num_heads,
            ffn_dims=ffn_dims,
            drop_rate=drop_rate,
            act=act)

        self.work_projection = FeatureProjection(in_channels, embed_dims,
                                                 feature_drop_rate)
        self.encoder = None
        if long_memory_length:
            self.long_projection = FeatureProjection(in_channels, embed_dims,
                                                     feature_drop_rate)
            self.encoder = MemoryEncoder(encoder, embed_dims, decay, **kwargs)
        self.decoder = OnlineDecoder(
            num_layers,
            embed_dims,
            with_long_memory=bool(long_memory_length),
            with_work_memory=fusion == 'compressed',
            **kwargs)
        self.anticipation_tokens = None
        if num_anticipation_tokens:
            self.anticipation_tokens = nn.Parameter(
                torch.randn(num_anticipation_tokens, embed_dims))
        self.pos_drop = nn.Dropout(drop_rate)
        # Computed, not learned: no checkpoint needs to have them.
        self.register_buffer(
            'positions',
            sinusoidal_positions(
                long_memory_length + work_memory_length +
                num_anticipation_tokens, embed_dims),
            persistent=False)

    def long_positions(self) -> Tensor | None:
        """Positions of the long memory, [N (+ L), C], or None."""
        if not self.long_memory_pos_embed:
            return None
        length = self.long_memory_length
        if self.fusion == 'long':
            length += self.work_memory_length
        return self.positions[:length]

    def work_positions(self) -> Tensor:
        """Positions of the work memory and the tokens behind it, [L+A, C]."""
        start = self.long_memory_length if self.long_memory_pos_embed else 0
        length = self.work_memory_length + self.num_anticipation_tokens
        return self.positions[start:start + length]

    def project(
            self,
            features: Mapping[str, Tensor]) -> tuple[Tensor | None, Tensor]:
        """Frames to rows: all that is made of a frame by itself.

        Rows have no positions yet. Projections are affine: what positions add
        to rows can be added later (:class:`FrameRows`).

        Args:
            features: Of each modality, [*, channels].

        Returns:
            Of the long memory if there is one, [*, R], and of the work memory,
            [*, R'].
        """
        long = None
        if self.encoder is not None:
            long = self.encoder.project(self.long_projection(features))
        return long, self.decoder.project(self.work_projection(features))

    def read(self,
             read_long: Reader | None,
             work: Tensor,
             prefix: Iterable[tuple[Tensor, Tensor]] | None = None,
             **kwargs) -> Tensor:
        """Compute all that mixes frames.

        Args:
            read_long: Reads the windows' long memories: of the encoder's
                ``reader``, for one. None without a long memory.
            work: Rows of the windows' work memories and of the tokens of
                anticipation, with positions, [B, L + A, R'].
            prefix: Of the encoder, if it is computed already.
            **kwargs: Of the decoder.

        Returns:
            [B, L + A, C], or fewer as ``kwargs`` say.
        """
        memory = None
        if self.encoder is not None:
            if prefix is None:
                prefix = self.encoder.prefix(
                    work.shape[0] if self.training else 1)
            memory = self.encoder(read_long, prefix)
        return self.decoder(work, memory, **kwargs)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Windows of a stream to features of its steps.

        Args:
            inputs: ``{modality: features}``, each [B, N+L, channels]: the long
                memory, oldest first, then the work memory. And optionally
                ``padding_mask``: bool, [B, N], True where the long memory is
                padded.

        Returns:
            [B, L + A, C]: of the steps of the work memory, then of those that
            are anticipated.

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        features, padding_mask = self._check(inputs)
        N, read = self.long_memory_length, None
        if self.encoder is not None:
            length = None if self.fusion == 'long' else N
            x = self.long_projection(
                {name: x[:, :length] for name, x in features.items()})
            positions = self.long_positions()
            if positions is not None:
                x = self.pos_drop(x + positions)
            read = self.encoder.reader(self.encoder.project(x), padding_mask)
        x = self.work_projection(
            {name: x[:, N:] for name, x in features.items()})
        return self.read(read, self.decoder.project(self._work_tokens(x)))

    def _work_tokens(self, x: Tensor) -> Tensor:
        """Frames of the work memory [B, L, C] to tokens [B, L + A, C]."""
        positions = self.work_positions()
        here, ahead = positions.split(
            [self.work_memory_length, self.num_anticipation_tokens])
        if self.work_memory_pos_embed:
            x = self.pos_drop(x + here)
        if self.anticipation_tokens is None:
            return x
        tokens = (self.anticipation_tokens + ahead).expand(x.shape[0], -1, -1)
        return torch.cat([x, self.pos_drop(tokens)], dim=1)

    def _check(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor | None]:
        length = self.long_memory_length + self.work_memory_length
        batch = None
        for name, channels in self.in_channels.items():
            x = inputs.get(name)
            got = 'nothing' if x is None else tuple(x.shape)
            batch = x.shape[0] if batch is None and x is not None else batch
            if got != (batch, length, channels):
                raise ValueError(
                    f'inputs[{name!r}] must be [B, N+L, channels] = [{batch}, '
                    f'{self.long_memory_length}+{self.work_memory_length}, '
                    f'{channels}], got {got}')
        mask = inputs.get('padding_mask')
        wanted = batch, self.long_memory_length
        if mask is not None and (mask.dtype != torch.bool
                                 or tuple(mask.shape) != wanted):
            raise ValueError(
                f"inputs['padding_mask'] must be bool, [B, N] = {wanted}, got "
                f'{mask.dtype} {tuple(mask.shape)}')
        if not self.long_memory_length:
            mask = None
        return {name: inputs[name] for name in self.in_channels}, mask
