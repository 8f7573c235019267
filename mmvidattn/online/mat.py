# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping
from typing import NamedTuple

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, Natural, Share, check_arguments
from .attention import causal_bias
from .block import Activation, OnlineTransformer
from .encoder import MemoryEncoder
from .feature_projection import FeatureProjection
from .frame_rows import gather_rows
from .position import sinusoidal_positions


class MATStages(NamedTuple):
    """What :class:`MAT` makes of windows, round by round.

    Attributes:
        work: After each round the features of the work memory and of the
            tokens of anticipation, [B, L + A, C]. The last counts.
        future: After each round but the last those of the future: [B, Q, C]
            of the first, [B, F, C] of the others.
    """
    work: list[Tensor]
    future: list[Tensor]


class Keys(NamedTuple):
    """Tokens that others attend to.

    Attributes:
        x: [B, M, C].
        bias: Added to the scores, -inf where a token is hidden; [*, M].
        number: How many of each of the batch are there, int64 [B].
    """
    x: Tensor
    bias: Tensor
    number: Tensor


class ModalityProjection(nn.Module):
    """Each modality through a layer, and all of them through another.

    Args:
        in_channels: Channels of each modality, in their order.
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
        """Modalities [*, channels] to tokens [*, C]."""
        tokens = {name: layer(features) for name, layer in self.each.items()}
        if self.joined is None:
            return next(iter(tokens.values()))
        return self.joined(tokens)


@MODELS.register_module()
@check_arguments
class MAT(BaseModule):
    """Memory-and-anticipation transformer: windows to features.

    `Memory-and-Anticipation Transformer for Online Action Understanding
    <https://arxiv.org/abs/2308.07893>`_, as released. Learned queries compress
    a long memory in segments; a causal decoder reads the work memory with it,
    and tokens that stand for what is about to happen. Then, in rounds, the
    future is made from all of this, and the work memory reads it. In each
    attention a query attends to the ``share`` of the keys that fit it best.

    A token of the future has seen the whole work memory, so a row of the
    output tells of its step only if it is the last, or anticipated. While a
    stream is younger than the work memory, it has a shorter one.

    Differs from the released code: where the long memory is so young that it
    is not compressed in segments, but as a whole, depends on each window; in
    testing as in training it did on the batch (as it does here in training).
    Keys that fit a query equally well are all kept.

    Args:
        in_channels: Channels of each modality, in their order.
        embed_dims: Channels C.
        num_heads: Heads G.
        ffn_dims: Hidden channels of the blocks' two layers.
        long_memory_length: Samples N of the long memory.
        work_memory_length: Samples L of the work memory.
        num_anticipation_tokens: Steps A that are anticipated.
        anticipation_rate: Every how many tokens of the future there is one of
            anticipation.
        num_groups: Segments of the long memory; 0 compresses it as a whole. A
            long memory with as many padded samples or more is as well.
        num_queries: Queries that compress a segment, or the whole.
        num_encoder_layers: Blocks that mix what was compressed.
        num_layers: Blocks of the decoder.
        num_future_queries: Tokens Q of the first round's future.
        num_future_layers: Blocks that make these.
        num_future_tokens: Tokens F of the future that follows.
        num_rounds: Rounds.
        share: Of the keys, in (0, 1].
        drop_rate: Dropout within the blocks and of what positions were added
            to.
        act: 'relu' or 'gelu'.
        init_cfg: Of ``BaseModule``.
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
        if num_groups and long_memory_length % num_groups:
            raise ValueError(
                'num_groups must divide long_memory_length, got '
                f'{num_groups} and {long_memory_length}')
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
        # Computed, not learned: no checkpoint needs to have them.
        self.register_buffer(
            'positions',
            sinusoidal_positions(work_memory_length + num_anticipation_tokens,
                                 embed_dims),
            persistent=False)

    def project(self, features: Mapping[str, Tensor]) -> Tensor:
        """Frames to rows: all that is made of a frame by itself.

        Args:
            features: Of each modality, [*, channels].

        Returns:
            [*, 3C]: keys and values in the long memory, and the token in the
            work memory, without its position.
        """
        return torch.cat([
            self.encoder.project(self.long_projection(features)),
            self.work_projection(features)
        ], dim=-1)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Windows of a stream to features of its steps.

        Args:
            inputs: ``{modality: features}``, each [B, N+L, channels]: the long
                memory, oldest first, then the work memory, which may be
                shorter. And optionally ``padding_mask``: bool, [B, N], True
                where the long memory is padded.

        Returns:
            [B, L + A, C]: of the steps of the work memory, then of those that
            are anticipated.

        Raises:
            ValueError: If a modality is missing or has another shape.
        """
        return self.stages(inputs).work[-1]

    def stages(self, inputs: Mapping[str, Tensor]) -> MATStages:
        """All rounds of windows, as the loss takes them; see forward."""
        features, mask = self._check(inputs)
        N = self.long_memory_length
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
        """Compute all that mixes frames.

        Args:
            long: Keys and values of the long memories, [B, N, 2C].
            work: Tokens of the work memories, [B, L, C].
            padding_mask: Bool, [B, N], True where the long memory is padded.
            num_padded: How many of the first tokens of a work memory are
                padding; int64, [B]. The others have the positions from 0 on.
            num_outputs: Compute the last tokens of the last round only.
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

        def everything(rows: Tensor, *futures: Keys) -> Keys:
            return _beside(memory, Keys(x, rows, count), *futures)

        future = _decode(
            self.first_future, _all_seen(self.future_queries, B,
                                         self.training),
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
                ahead = _all_seen(self.future_tokens, B, self.training)
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
        """See :func:`mmvidattn.online.dense_features`."""
        C, outputs = self.embed_dims, []
        long, work = self.project(features).split([2 * C, C], dim=-1)
        for first in range(0, len(work_indices), batch_size):
            some = slice(first, first + batch_size)
            outputs.append(self.read(
                gather_rows(long, long_indices[some]),
                gather_rows(work, work_indices[some]),
                None if padding_mask is None else padding_mask[some],
                num_outputs=1 + self.num_anticipation_tokens).work[-1])
        return torch.cat(outputs)

    def _work_tokens(self, x: Tensor, num_padded: Tensor | None) -> Tensor:
        """Frames of the work memory [B, L, C] to tokens [B, L + A, C]."""
        A, rate = self.num_anticipation_tokens, self.anticipation_rate
        ahead = self.future_tokens[:A * rate:rate]
        x = torch.cat([x, ahead.expand(len(x), -1, -1)], dim=1)
        places = torch.arange(x.shape[1], device=x.device)
        if num_padded is not None:
            places = (places - num_padded[:, None]).clamp(min=0)
        return self.pos_drop(x + self.positions[places])

    def _compress(self, rows: Tensor, padding_mask: Tensor | None) -> Keys:
        """Compress long memories: rows [B, N, 2C] to tokens."""
        B, N, _ = rows.shape
        encoder, groups = self.encoder, self.num_groups
        stage, refine = encoder.stages
        x, q = next(iter(encoder.prefix(B if self.training else 1)))
        y = stage(x, q, encoder.reader(rows, padding_mask))
        count = torch.full((B, ), y.shape[1], device=y.device)
        if groups:
            if padding_mask is None:
                padding_mask = torch.zeros(
                    B, N, dtype=torch.bool, device=y.device)
            num_masked = padding_mask.sum(dim=1)
            if self.training:
                num_masked = num_masked.sum().expand(B)
            grouped = num_masked < groups
            # Else a segment may have nothing but padding.
            mask = (padding_mask & grouped[:, None]).unflatten(1, (groups, -1))
            if self.training:
                x, q = (t.repeat_interleave(groups, dim=0) for t in (x, q))
            z = stage(x, q, encoder.reader(
                rows.unflatten(1, (groups, -1)).flatten(0, 1),
                mask.flatten(0, 1)))
            z = z.mean(dim=1).unflatten(0, (B, groups))
            length = max(groups, y.shape[1])
            y, z = (nn.functional.pad(t, (0, 0, 0, length - t.shape[1]))
                    for t in (y, z))
            y = z.where(grouped[:, None, None], y)
            count = count.where(~grouped, groups)
        slots = torch.arange(y.shape[1], device=y.device)
        bias = y.new_zeros(B, 1, 1, y.shape[1]).masked_fill(
            (slots >= count[:, None])[:, None, None], -torch.inf)
        return Keys(_decode(refine, Keys(y, bias, count)), bias, count)

    def _check(
        self, inputs: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor | None]:
        N, L, lead = self.long_memory_length, self.work_memory_length, None
        for name, channels in self.in_channels.items():
            x = inputs.get(name)
            got = 'nothing' if x is None else tuple(x.shape)
            if lead is None and x is not None:
                lead = got[:2]
            if lead is None or got != (*lead, channels) or not (
                    N < lead[1] <= N + L):
                raise ValueError(
                    f'inputs[{name!r}] must be [B, N+L, channels] = '
                    f'[{lead[0] if lead else "B"}, {N}+{L}, {channels}], or '
                    f'of a shorter work memory, got {got}')
        mask = inputs.get('padding_mask')
        if mask is not None and (mask.dtype != torch.bool
                                 or tuple(mask.shape) != (lead[0], N)):
            raise ValueError(
                f"inputs['padding_mask'] must be bool, [B, N] = {lead[0], N}, "
                f'got {mask.dtype} {tuple(mask.shape)}')
        return {name: inputs[name] for name in self.in_channels}, mask


def _all_seen(x: Tensor, batch_size: int | None = None,
              each: bool = False) -> Keys:
    """Tokens that nothing hides; [Q, C] are those of the whole batch.

    In training each of the batch has a dropout of its own.
    """
    if x.dim() == 2:
        x = x.expand(batch_size if each else 1, -1, -1)
    number = torch.full((len(x), ), x.shape[1], device=x.device)
    return Keys(x, x.new_zeros(1, 1, 1, x.shape[1]), number)


def _beside(*parts: Keys) -> Keys:
    """Tokens side by side."""
    lead = torch.broadcast_shapes(*(part.bias.shape[:-1] for part in parts))
    return Keys(
        torch.cat([part.x for part in parts], dim=1),
        torch.cat([part.bias.expand(*lead, -1) for part in parts], dim=-1),
        sum(part.number for part in parts))


def _decode(transformer: OnlineTransformer, tokens: Keys,
            memory: Keys | None = None,
            num_outputs: int | None = None) -> Tensor:
    """Run all of a transformer: tokens that read a memory, or none."""
    x, bias, number = tokens
    block, rows = transformer.blocks[0], x
    if len(transformer.blocks) == 1 and num_outputs is not None:
        rows = x[:, -num_outputs:]
    attention, read = block.self_attn, None
    y, q = block.attend(rows, attention.q(rows), attention.kv(x), bias,
                        number)
    if memory is not None:
        read = transformer.reader(transformer.project(memory.x),
                                  bias=memory.bias, num_keys=memory.number)
    return transformer(y, q, read, bias=bias, num_keys=number,
                       num_outputs=num_outputs)
