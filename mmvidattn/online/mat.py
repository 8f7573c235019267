# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping
from typing import NamedTuple

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..ops.ring_buffers import read_rows
from ..utils.arguments import (
    Count,
    Fraction,
    Natural,
    Share,
    check_arguments,
    check_divides,
)
from .block import Activation, OnlineTransformer, causal_bias
from .feature_inputs import (
    FeatureProjection,
    check_features,
    check_padding_mask,
    gather_rows,
    sinusoidal_positions,
)
from .memory_encoder import MemoryEncoder
from .testra_step import WindowStep


class MATStages(NamedTuple):
    """Features of windows in each round of :class:`MAT`.

    Attributes:
        work: Features of the work memory and the anticipation tokens after
            each round, [B, L + A, C]; the last ones are the result.
        future: Features of the future before each round: [B, Q, C] first, and
            then [B, F, C].
    """
    work: list[Tensor]
    future: list[Tensor]


class Keys(NamedTuple):
    """Tokens to attend to, [B, M, C].

    ``bias`` of the scores, [*, M], is -inf for hidden tokens; ``number`` is
    that of the tokens that are not padding, int64, [B].
    """
    x: Tensor
    bias: Tensor
    number: Tensor


class ModalityProjection(nn.Module):
    """Linear layer for each modality, and a linear layer for all together.

    Args:
        in_channels: Channels of each modality, in order.
        embed_dims: Channels C of a token.
    """

    def __init__(self, in_channels: Mapping[str, int],
                 embed_dims: int) -> None:
        super().__init__()
        self.each = nn.ModuleDict({
            name: FeatureProjection({name: channels}, embed_dims,
                                    with_norm=True)
            for name, channels in in_channels.items()
        })
        self.joined = None
        if len(in_channels) > 1:
            self.joined = FeatureProjection(
                dict.fromkeys(in_channels, embed_dims), embed_dims,
                with_norm=True)

    def forward(self, features: Mapping[str, Tensor]) -> Tensor:
        """Map modalities [*, channels] to tokens [*, C]."""
        tokens = {name: layer(features) for name, layer in self.each.items()}
        if self.joined is None:
            return next(iter(tokens.values()))
        return self.joined(tokens)


@MODELS.register_module()
@check_arguments
class MAT(BaseModule):
    """Memory-and-anticipation transformer for online action detection.

    `Memory-and-Anticipation Transformer for Online Action Understanding
    <https://arxiv.org/abs/2308.07893>`_, as released. Learned queries compress
    a long memory in segments. A causal decoder processes the work memory,
    tokens that anticipate the next steps, and the compressed memory. In each
    round, a future is predicted from all of these tokens, and the work memory
    attends to the future. In each attention, a query attends to the ``share``
    of the keys with the highest scores.

    Tokens of the future depend on the entire work memory. Therefore, only the
    outputs for the last and the anticipated steps are causal. At the start of
    a stream, the work memory is shorter.

    Differs from the released code: a long memory with much padding is
    compressed as one segment. The released code decides this for an entire
    batch, and so does this code in training. In testing, it is decided for
    each window. If keys have equal scores, all of them are kept.

    Args:
        in_channels: Channels of each modality, in order.
        embed_dims: Channels C. Defaults to 1024.
        num_heads: Number of heads G. Defaults to 4.
        ffn_dims: Hidden channels of the feed-forward layers. Defaults to 1024.
        long_memory_length: Samples N of the long memory. Defaults to 256.
        work_memory_length: Samples L of the work memory. Defaults to 32.
        num_anticipation_tokens: Number of anticipated steps A. Defaults to 8.
        anticipation_rate: Tokens of the future per anticipation token.
            Defaults to 1.
        num_groups: Number of segments of the long memory. A long memory with
            at least this many padded samples is compressed as one segment, as
            with 0. Defaults to 8.
        num_queries: Number of queries that compress a segment. Defaults to 16.
        num_encoder_layers: Number of blocks that mix the compressed segments.
            Defaults to 2.
        num_layers: Number of decoder blocks. Defaults to 2.
        num_future_queries: Tokens Q of the first round's future. Defaults to
            32.
        num_future_layers: Number of blocks for the first round's future.
            Defaults to 2.
        num_future_tokens: Tokens F of the later rounds' future. Defaults to
            48.
        num_rounds: Number of rounds. Defaults to 2.
        share: Share of keys that a query attends to, in (0, 1]. Defaults to
            0.75.
        drop_rate: Dropout rate within the blocks, and after adding positions.
            Defaults to 0.
        act: 'relu' or 'gelu'. Defaults to 'gelu'.
        init_cfg: ``init_cfg`` of ``BaseModule``.
    """

    def __init__(self,
                 in_channels: Mapping[str, Count],
                 embed_dims: Count = 1024,
                 num_heads: Count = 4,
                 ffn_dims: Count = 1024,
                 long_memory_length: Count = 256,
                 work_memory_length: Count = 32,
                 num_anticipation_tokens: Natural = 8,
                 anticipation_rate: Count = 1,
                 num_groups: Natural = 8,
                 num_queries: Count = 16,
                 num_encoder_layers: Count = 2,
                 num_layers: Count = 2,
                 num_future_queries: Count = 32,
                 num_future_layers: Count = 2,
                 num_future_tokens: Count = 48,
                 num_rounds: Count = 2,
                 share: Share = 0.75,
                 drop_rate: Fraction = 0.,
                 act: Activation = 'gelu',
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg=init_cfg)
        if num_groups:
            check_divides(num_groups=num_groups,
                          long_memory_length=long_memory_length)
        if long_memory_length < num_groups ** 2:
            # Otherwise padding could fill a segment, which has no average.
            raise ValueError(
                'long_memory_length must be at least num_groups ** 2 = '
                f'{num_groups ** 2}, got {long_memory_length}')
        if num_anticipation_tokens * anticipation_rate > num_future_tokens:
            raise ValueError(
                'num_future_tokens must be at least num_anticipation_tokens '
                f'* anticipation_rate = {num_anticipation_tokens} * '
                f'{anticipation_rate}, got {num_future_tokens}')
        self.in_channels = dict(in_channels)
        self.embed_dims = embed_dims
        self.long_memory_length = long_memory_length
        self.work_memory_length = work_memory_length
        self.num_anticipation_tokens = num_anticipation_tokens
        self.anticipation_rate = anticipation_rate
        self.num_groups = num_groups
        kwargs = dict(num_heads=num_heads, ffn_dims=ffn_dims,
                      drop_rate=drop_rate, act=act, share=share)

        self.long_projection = ModalityProjection(in_channels, embed_dims)
        self.work_projection = ModalityProjection(in_channels, embed_dims)
        self.encoder = MemoryEncoder([
            dict(num_queries=num_queries, num_layers=1),
            dict(num_queries=None, num_layers=num_encoder_layers)
        ], embed_dims, **kwargs)
        self.decoder = OnlineTransformer(num_layers, embed_dims, **kwargs)
        self.first_future = OnlineTransformer(num_future_layers, embed_dims,
                                              **kwargs)
        self.work_rounds = nn.ModuleList(
            OnlineTransformer(1, embed_dims, **kwargs)
            for _ in range(num_rounds))
        self.future_rounds = nn.ModuleList(
            OnlineTransformer(1, embed_dims, **kwargs)
            for _ in range(num_rounds - 1))
        self.future_queries = nn.Parameter(
            torch.randn(num_future_queries, embed_dims))
        self.future_tokens = nn.Parameter(
            torch.randn(num_future_tokens, embed_dims))
        self.pos_drop = nn.Dropout(drop_rate)
        # Positions are computed instead of learned, so checkpoints do not need
        # them.
        self.register_buffer(
            'positions',
            sinusoidal_positions(work_memory_length + num_anticipation_tokens,
                                 embed_dims),
            persistent=False)

    def project(self,
                features: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Project each frame separately, without positions.

        Args:
            features: Features of each modality, [*, channels].

        Returns:
            Keys and values for the long memory, [*, 2C], and the token for the
            work memory, [*, C].
        """
        return (self.encoder.project(self.long_projection(features)),
                self.work_projection(features))

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Compute the features of windows.

        Args:
            inputs: ``{modality: features}``, each [B, N + L, channels]: the
                long memory, oldest first, then the work memory, which may be
                shorter. Optionally ``padding_mask``: bool, [B, N], True where
                the long memory is padded.

        Returns:
            Features of the work memory's and the anticipated steps,
            [B, L + A, C].

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        return self.stages(inputs).work[-1]

    def stages(self, inputs: Mapping[str, Tensor]) -> MATStages:
        """Compute the features of all rounds, for the loss; see forward."""
        N = self.long_memory_length
        features = check_features(
            inputs, self.in_channels, N + 1, N + self.work_memory_length)
        mask = check_padding_mask(inputs, features, N)
        long = self.long_projection(
            {name: x[:, :N] for name, x in features.items()})
        work = self.work_projection(
            {name: x[:, N:] for name, x in features.items()})
        return self.read(self.encoder.project(long), work, mask)

    def read(self,
             long: Tensor,
             work: Tensor,
             padding_mask: Tensor | None = None,
             num_padded: Tensor | None = None,
             num_outputs: int | None = None) -> MATStages:
        """Process windows of projected frames.

        Args:
            long: Keys and values of the long memories, [B, N, 2C].
            work: Tokens of the work memories, [B, L, C].
            padding_mask: Bool, [B, N], True where the long memory is padded.
            num_padded: Number of padded tokens at the start of each work
                memory, int64, [B]. Positions start at 0 after the padding.
            num_outputs: Number of last tokens to compute in the last round.
                Defaults to all.
        """
        B = len(work)
        x = self._work_tokens(work, num_padded)
        S = x.shape[1]
        slots = torch.arange(S, device=x.device)
        count = torch.full((B, ), S, device=x.device)
        bias = causal_bias(S, x.device, num_padded)
        seen = x.new_zeros(1, 1, 1, S)
        if num_padded is not None:
            count = count - num_padded
            seen = seen.masked_fill(
                (slots < num_padded[:, None])[:, None, None], -torch.inf)
        memory = self._compress(long, padding_mask)
        x = _decode(self.decoder, Keys(x, bias, count), memory)
        works, futures = [x], []

        def everything(work_bias: Tensor, *futures: Keys) -> Keys:
            return _concatenate(memory, Keys(x, work_bias, count), *futures)

        # In training, dropout differs between samples.
        copies = B if self.training else 1
        future = _decode(
            self.first_future,
            _all_seen(self.future_queries.expand(copies, -1, -1)),
            everything(seen))
        for i, fusion in enumerate(self.work_rounds):
            futures.append(future)
            keys = _all_seen(future)
            last = i == len(self.future_rounds)
            x = _decode(fusion, Keys(x, bias, count), everything(bias, keys),
                        num_outputs if last else None)
            works.append(x)
            if last:
                break
            if i == 0:
                ahead = _all_seen(self.future_tokens.expand(copies, -1, -1))
            else:
                F = future.shape[1]
                keys = ahead = Keys(future, causal_bias(F, x.device),
                                    keys.number)
            future = _decode(self.future_rounds[i], ahead,
                             everything(seen, keys))
        return MATStages(works, futures)

    def dense(self, features: Mapping[str, Tensor], long_indices: Tensor,
              work_indices: Tensor, padding_mask: Tensor | None,
              batch_size: int) -> Tensor:
        """Compute :func:`mmvidattn.online.dense_features`."""
        outputs = []
        long, work = self.project(features)
        for first in range(0, len(work_indices), batch_size):
            batch = slice(first, first + batch_size)
            outputs.append(self.read(
                gather_rows(long, long_indices[batch]),
                gather_rows(work, work_indices[batch]),
                None if padding_mask is None else padding_mask[batch],
                num_outputs=1 + self.num_anticipation_tokens).work[-1])
        return torch.cat(outputs)

    def _work_tokens(self, x: Tensor, num_padded: Tensor | None) -> Tensor:
        """Convert projected frames [B, L, C] to tokens [B, L + A, C]."""
        A, rate = self.num_anticipation_tokens, self.anticipation_rate
        ahead = self.future_tokens[:A * rate:rate]
        x = torch.cat([x, ahead.expand(len(x), -1, -1)], dim=1)
        places = torch.arange(x.shape[1], device=x.device)
        if num_padded is not None:
            places = (places - num_padded[:, None]).clamp(min=0)
        return self.pos_drop(x + self.positions[places])

    def _compress(self, long: Tensor, padding_mask: Tensor | None) -> Keys:
        """Compress long memories, [B, N, 2C], to tokens."""
        B, N, _ = long.shape
        encoder, groups = self.encoder, self.num_groups
        stage, refine = encoder.stages
        x, q = next(iter(encoder.prefix(B if self.training else 1)))
        # 1. Compress the entire long memory.
        y = stage(x, q, encoder.reader(long, padding_mask))
        count = torch.full((B, ), y.shape[1], device=y.device)
        if groups:
            # 2. Compress each segment, and use the segments of windows that
            # have little padding.
            if padding_mask is None:
                padding_mask = torch.zeros(
                    B, N, dtype=torch.bool, device=y.device)
            num_masked = padding_mask.sum(dim=1)
            if self.training:
                num_masked = num_masked.sum().expand(B)
            grouped = num_masked < groups
            # Do not mask ungrouped windows, where a segment could be all
            # padding.
            mask = (padding_mask & grouped[:, None]).unflatten(1, (groups, -1))
            if self.training:
                x, q = (t.repeat_interleave(groups, dim=0) for t in (x, q))
            z = stage(x, q, encoder.reader(
                long.unflatten(1, (groups, -1)).flatten(0, 1),
                mask.flatten(0, 1)))
            z = z.mean(dim=1).unflatten(0, (B, groups))
            length = max(groups, y.shape[1])
            y, z = (nn.functional.pad(t, (0, 0, 0, length - t.shape[1]))
                    for t in (y, z))
            y = z.where(grouped[:, None, None], y)
            count = count.where(~grouped, groups)
        # 3. Mix the compressed tokens.
        slots = torch.arange(y.shape[1], device=y.device)
        bias = y.new_zeros(B, 1, 1, y.shape[1]).masked_fill(
            (slots >= count[:, None])[:, None, None], -torch.inf)
        return Keys(_decode(refine, Keys(y, bias, count)), bias, count)


def _all_seen(x: Tensor) -> Keys:
    """Return tokens [1 or B, Q, C] without a mask."""
    number = torch.full((len(x), ), x.shape[1], device=x.device)
    return Keys(x, x.new_zeros(1, 1, 1, x.shape[1]), number)


def _concatenate(*parts: Keys) -> Keys:
    lead = torch.broadcast_shapes(*(part.bias.shape[:-1] for part in parts))
    return Keys(
        torch.cat([part.x for part in parts], dim=1),
        torch.cat([part.bias.expand(*lead, -1) for part in parts], dim=-1),
        sum(part.number for part in parts))


def _decode(transformer: OnlineTransformer, tokens: Keys,
            memory: Keys | None = None,
            num_outputs: int | None = None) -> Tensor:
    """Run a transformer on tokens, with an optional memory."""
    x, bias, number = tokens
    options, read = dict(
        bias=bias, num_keys=number, num_outputs=num_outputs), None
    if memory is not None:
        read = transformer.reader(transformer.project(memory.x),
                                  bias=memory.bias, num_keys=memory.number)
    return transformer(*transformer.attend(x, **options), read, **options)


class MATStep(WindowStep):
    """Step for streams of :class:`mmvidattn.online.MAT`.

    A stream's memory is the projections of its frames: ring buffers ``long``,
    [B, ., 2C], and ``work``, [B, ., C]. Everything that mixes frames is
    computed anew in each step, because the segments of the long memory move
    with each frame, and every token of the work memory attends to a future
    that depends on all of them.
    """

    # As in the released code.
    stretches_by_default = True

    def project(self, features: Mapping[str, Tensor]) -> dict[str, Tensor]:
        long, work = self.model.backbone.project(features)
        return dict(long=long, work=work)

    def initial_memory(self, batch_size: int) -> dict[str, Tensor]:
        backbone, work = self.model.backbone, self.work_reach + 1
        long = work + backbone.long_memory_length * self.long_rate
        C, zeros = backbone.embed_dims, self.example.new_zeros
        return dict(long=zeros(batch_size, long, 2 * C),
                    work=zeros(batch_size, work, C))

    def scored(self, state: Mapping[str, Tensor]) -> Tensor:
        backbone = self.model.backbone
        start, num_padded = self.start(state['count'] - 1)
        frames, mask = self.long_frames(start)
        return backbone.read(
            read_rows(state['long'], frames), self.read_work(state), ~mask,
            num_padded, 1 + backbone.num_anticipation_tokens).work[-1]
