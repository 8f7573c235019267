# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, Natural, Share, check_arguments
from .block import Activation, OnlineTransformer, Reader, causal_bias
from .feature_inputs import (
    FeatureProjection,
    check_features,
    check_padding_mask,
    gather_rows,
    sinusoidal_positions,
)
from .memory_encoder import MemoryEncoder


class OnlineDecoder(nn.Module):
    """Causal decoder of the work memory.

    Tokens attend to themselves and earlier tokens, and to a memory: the
    compressed long memory, the input tokens of the decoder, or both.

    Args:
        num_layers: Number of blocks.
        embed_dims: Channels C.
        with_long_memory: Attend to the compressed long memory.
        with_work_memory: Also attend, in the same softmax, to the decoder's
            input tokens ("@ comp. mem." in the paper's Table 6b).
        **kwargs: Arguments of
            :class:`~mmvidattn.online.block.OnlineBlock`.
    """

    def __init__(self,
                 num_layers: int,
                 embed_dims: int,
                 with_long_memory: bool = True,
                 with_work_memory: bool = True,
                 **kwargs) -> None:
        super().__init__()
        self.embed_dims = embed_dims
        self.with_work_memory = with_long_memory and with_work_memory
        self.transformer = OnlineTransformer(
            num_layers, embed_dims, with_memory=with_long_memory, **kwargs)

    def project(self, x: Tensor) -> Tensor:
        """Project each token [*, C] separately to [*, R].

        A projection contains the token, its query, key and value in the first
        self-attention, and those in the attentions to the work memory.
        """
        attention = self.transformer.blocks[0].self_attn
        rows = [x, attention.q(x), attention.kv(x)]
        if self.with_work_memory:
            rows.append(self.transformer.project(x))
        return torch.cat(rows, dim=-1)

    def forward(self,
                rows: Tensor,
                memory: Tensor | None = None,
                *,
                num_outputs: int | None = None,
                num_padded: Tensor | None = None) -> Tensor:
        """Decode the tokens.

        Args:
            rows: Projections of the work memory's tokens and the anticipation
                tokens, [B, S, R].
            memory: Compressed long memory, [B, M, C].
            num_outputs: Number of last tokens to compute. Defaults to all.
            num_padded: Number of padded tokens at the start of each stream,
                int64, [B].

        Returns:
            Features, [B, S or num_outputs, C].
        """
        C, transformer = self.embed_dims, self.transformer
        x, q, kv, work = rows.split(
            [C, C, 2 * C, rows.shape[-1] - 4 * C], dim=-1)
        if len(transformer.blocks) == 1 and num_outputs is not None:
            x, q = x[:, -num_outputs:], q[:, -num_outputs:]
        bias = causal_bias(rows.shape[1], rows.device, num_padded)
        block = transformer.blocks[0]
        x, q = block.add_attended(x, block.self_attn(q, kv, bias=bias))
        read = None
        if memory is not None:
            pairs, memory_bias = [None] * len(transformer.blocks), None
            if self.with_work_memory:
                pairs = work.chunk(len(pairs), dim=-1)
                memory_bias = nn.functional.pad(bias, (memory.shape[1], 0))

            def read(block: int, q: Tensor) -> Tensor:
                attention = transformer.blocks[block].memory_attn
                return attention.attend_tokens(
                    q, memory, pairs[block], bias=memory_bias)

        return transformer(x, q, read, bias=bias, num_outputs=num_outputs)


@MODELS.register_module()
@check_arguments
class TeSTra(BaseModule):
    """Temporal smoothing transformer for online action detection.

    `Real-time Online Video Detection with Temporal Smoothing Transformers
    <https://arxiv.org/abs/2209.09236>`_. Learned queries compress a long
    memory, in which older samples weigh less. A causal decoder processes the
    latest frames, the work memory, together with the compressed memory, and
    tokens that anticipate the next steps. ``forward`` processes windows: it
    maps long and work memory to features of all steps of the work memory.

    The network has two parts: :meth:`project` processes each frame separately,
    and :meth:`read` processes windows of projected frames. Frames that several
    windows of a video or stream share are therefore projected only once.

    `LSTR <https://arxiv.org/abs/2107.03377>`_ is this model with
    ``decay=1, fusion='none', long_memory_pos_embed=True``.

    Differs from the paper: the decay is in samples and is not scaled
    (:func:`mmvidattn.ops.temporal_smoothing_attention`), as in the released
    code.

    Args:
        in_channels: Channels of each modality, which are concatenated in this
            order.
        embed_dims: Channels C. Defaults to 1024.
        num_heads: Number of heads G. Defaults to 16.
        ffn_dims: Hidden channels of the feed-forward layers. Defaults to 1024.
        long_memory_length: Samples N of the long memory; 0 for no long memory.
            Defaults to 512.
        work_memory_length: Samples L of the work memory. Defaults to 32.
        num_anticipation_tokens: Number of anticipated steps A. Defaults to 0.
        encoder: Stages of :class:`MemoryEncoder`,
            ``dict(num_queries=..., num_layers=...)`` each.
        num_layers: Number of decoder blocks. Defaults to 2.
        decay: Weight of a long-memory sample relative to the next newer one:
            1 for the paper's box kernel, less for its Laplace kernel. Defaults
            to 1.
        fusion: Place where the work memory joins the long memory, as in the
            paper's Table 6b: 'compressed', next to the encoder's output (the
            paper's choice), 'long', after the encoder's input, or 'none'.
            Defaults to 'compressed'.
        long_memory_pos_embed: Add positions to the long memory, as in LSTR.
            Defaults to False.
        work_memory_pos_embed: Add positions to the work memory. Anticipation
            tokens always have positions. Defaults to True.
        drop_rate: Dropout rate within the blocks, and after adding positions.
            Defaults to 0.2.
        act: 'relu' or 'gelu'. Defaults to 'relu'.
        init_cfg: ``init_cfg`` of ``BaseModule``.
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
                 fusion: Literal['compressed', 'long', 'none'] = 'compressed',
                 long_memory_pos_embed: bool = False,
                 work_memory_pos_embed: bool = True,
                 drop_rate: Fraction = 0.2,
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
            num_heads=num_heads, ffn_dims=ffn_dims, drop_rate=drop_rate,
            act=act)

        self.work_projection = FeatureProjection(in_channels, embed_dims)
        self.encoder = None
        if long_memory_length:
            self.long_projection = FeatureProjection(in_channels, embed_dims)
            self.encoder = MemoryEncoder(encoder, embed_dims, decay, **kwargs)
        self.decoder = OnlineDecoder(
            num_layers, embed_dims,
            with_long_memory=bool(long_memory_length),
            with_work_memory=fusion == 'compressed',
            **kwargs)
        self.anticipation_tokens = None
        if num_anticipation_tokens:
            self.anticipation_tokens = nn.Parameter(
                torch.randn(num_anticipation_tokens, embed_dims))
        self.pos_drop = nn.Dropout(drop_rate)
        # Positions are computed instead of learned, so checkpoints do not need
        # them.
        self.register_buffer(
            'positions',
            sinusoidal_positions(
                long_memory_length + work_memory_length +
                num_anticipation_tokens, embed_dims),
            persistent=False)

    def long_positions(self) -> Tensor | None:
        """Return the positions of the long memory, [N (+ L), C], or None."""
        if not self.long_memory_pos_embed:
            return None
        length = self.long_memory_length
        if self.fusion == 'long':
            length += self.work_memory_length
        return self.positions[:length]

    def work_positions(self) -> Tensor:
        """Return positions of work memory and anticipation, [L + A, C]."""
        start = self.long_memory_length if self.long_memory_pos_embed else 0
        length = self.work_memory_length + self.num_anticipation_tokens
        return self.positions[start:start + length]

    def project(self, features: Mapping[str, Tensor]
                ) -> tuple[Tensor | None, Tensor]:
        """Project each frame separately, without positions.

        Args:
            features: Features of each modality, [*, channels].

        Returns:
            Projections for the long memory, [*, R], or None without a long
            memory; and for the work memory, [*, R'].
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
        """Process windows of projected frames.

        Args:
            read_long: Reader of the long memories, such as the encoder's
                ``reader``. None without a long memory.
            work: Projections of the work memories and the anticipation tokens,
                with positions, [B, L + A, R'].
            prefix: Prefix of the encoder, if it is already computed.
            **kwargs: Arguments of :meth:`OnlineDecoder.forward`.

        Returns:
            Features, [B, L + A or num_outputs, C].
        """
        memory = None
        if self.encoder is not None:
            if prefix is None:
                prefix = self.encoder.prefix(
                    work.shape[0] if self.training else 1)
            memory = self.encoder(read_long, prefix)
        return self.decoder(work, memory, **kwargs)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Compute the features of windows.

        Args:
            inputs: ``{modality: features}``, each [B, N + L, channels]: the
                long memory, oldest first, then the work memory. Optionally
                ``padding_mask``: bool, [B, N], True where the long memory is
                padded.

        Returns:
            Features of the work memory's and the anticipated steps,
            [B, L + A, C].

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        N, read = self.long_memory_length, None
        length = N + self.work_memory_length
        features = check_features(inputs, self.in_channels, length, length)
        padding_mask = check_padding_mask(inputs, features, N)
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

    def dense(self, features: Mapping[str, Tensor], long_indices: Tensor,
              work_indices: Tensor, padding_mask: Tensor | None,
              batch_size: int) -> Tensor:
        """Compute :func:`mmvidattn.online.dense_features`."""
        if self.fusion == 'long':
            long_indices = torch.cat([long_indices, work_indices], dim=1)
        reader, outputs = WindowReader(self), []
        all_long, all_work = self.project(features)
        for first in range(0, len(work_indices), batch_size):
            batch, read_long = slice(first, first + batch_size), None
            if self.encoder is not None:
                long = gather_rows(all_long, long_indices[batch])
                if reader.long_positions is not None:
                    long = long + reader.long_positions
                mask = None if padding_mask is None else padding_mask[batch]
                # Drop an empty mask, because masking copies keys and values.
                if mask is not None and not mask.any():
                    mask = None
                read_long = self.encoder.reader(long, mask)
            work = gather_rows(all_work, work_indices[batch])
            outputs.append(reader.read(read_long, work))
        return torch.cat(outputs)

    def _work_tokens(self, x: Tensor) -> Tensor:
        """Convert projected frames [B, L, C] to tokens [B, L + A, C]."""
        positions = self.work_positions()
        here, ahead = positions.split(
            [self.work_memory_length, self.num_anticipation_tokens])
        if self.work_memory_pos_embed:
            x = self.pos_drop(x + here)
        if self.anticipation_tokens is None:
            return x
        tokens = (self.anticipation_tokens + ahead).expand(x.shape[0], -1, -1)
        return torch.cat([x, self.pos_drop(tokens)], dim=1)


class WindowReader(nn.Module):
    """Inference part of TeSTra: windows of projected frames to features.

    The projection of a frame (:meth:`TeSTra.project`) contains no position,
    because the position differs from window to window. This module adds the
    positions. It uses that a projection f is affine:
    ``f(x + p) = f(x) + f(p) - f(0)``. The last two terms, the anticipation
    tokens and the encoder's queries depend only on the weights. The
    constructor computes them once, so the weights must not change later.

    Args:
        model: Model in eval mode.
    """

    @torch.no_grad()
    def __init__(self, model: TeSTra) -> None:
        super().__init__()
        self.model = model
        project = model.decoder.project
        positions = model.work_positions()
        zero = torch.zeros_like(positions[:1])
        tokens = model.anticipation_tokens
        tokens = zero[:0] if tokens is None else tokens
        self.register_buffer('positions', project(positions) - project(zero))
        self.register_buffer('tokens', project(tokens))
        self.register_buffer('long_positions', None)
        if model.encoder is None:
            return
        for i, (x, q) in enumerate(model.encoder.prefix()):
            self.register_buffer(f'prefix_{i}', x)
            self.register_buffer(f'queries_{i}', q)
        positions, project = model.long_positions(), model.encoder.project
        if positions is not None:
            self.long_positions = project(positions) - project(zero)

    def read(self, read_long: Reader | None, work: Tensor,
             num_padded: Tensor | None = None) -> Tensor:
        """Compute features of the last step and of the anticipated steps.

        Args:
            read_long: Reader of the long memories; see :meth:`TeSTra.read`.
            work: Projections of the work memory's frames, [B, L, R].
            num_padded: Number of padded frames at the start of each window,
                int64, [B]. Positions start at 0 after the padding.

        Returns:
            Features, [B, 1 + A, C].
        """
        model, (batch_size, length, _) = self.model, work.shape
        if model.num_anticipation_tokens:
            work = torch.cat(
                [work, self.tokens.expand(batch_size, -1, -1)], dim=1)
        positions = self.positions
        slots = torch.arange(len(positions), device=work.device)
        if num_padded is not None:
            positions = gather_rows(
                positions, (slots - num_padded[:, None]).clamp(min=0))
        if not model.work_memory_pos_embed:
            positions = positions.where((slots >= length)[:, None], 0)
        prefix = None
        if model.encoder is not None:
            prefix = [(getattr(self, f'prefix_{i}'),
                       getattr(self, f'queries_{i}'))
                      for i in range(len(model.encoder.stages))]
        return model.read(
            read_long, work + positions, prefix,
            num_outputs=1 + model.num_anticipation_tokens,
            num_padded=num_padded)
