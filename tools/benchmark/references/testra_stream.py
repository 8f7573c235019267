# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Stream step of TeSTra's and LSTR's released code, from its description.

Like the released code, each step computes the features of all frames of the
work memory twice, the learned queries of all stages except the first, and all
rows of the decoder. It also keeps features, keys and values of the long
memory, which exponential smoothing does not use.
"""
from collections import deque
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class TranscribedStream:
    """Stream of a TeSTra or LSTR with our weights.

    Args:
        model: ``OnlineActionDetector`` in eval mode, with fusion 'compressed'
            or 'none'.
        rate: Sampling stride of the long memory in frames. Defaults to 4.
        work_rate: Sampling stride of the work memory in frames. Defaults to 1.
        as_released: Count frame 0 of a TeSTra twice, leave out the bias of the
            values of the long memory, and always add positions to the work
            memory. False gives the stream of the paper's Eq. 6. Defaults to
            True. In both cases, exponentials are relative to the largest score
            of the first frame, and overflow if scores drift by 88.
    """

    @torch.no_grad()
    def __init__(self, model: nn.Module, rate: int = 4, work_rate: int = 1,
                 as_released: bool = True) -> None:
        self.model, self.backbone, self.rate = model, model.backbone, rate
        self.work_rate, self.as_released = work_rate, as_released
        self.with_positions = self.backbone.long_memory_pos_embed
        # Frames from the first to the last frame of the work memory.
        self.span = (self.backbone.work_memory_length - 1) * work_rate + 1
        self.frames: deque[Mapping[str, Tensor]] = deque(
            maxlen=self.span + rate)
        self.step = -self.span
        block = self.backbone.encoder.stages[0].blocks[0]
        x = self.backbone.encoder.queries[0][None]
        self.x = block.self_norm(x + _attend(block.self_attn, x, x))
        self.q = _heads(block.memory_attn.q(self.x), block.memory_attn)
        # LSTR keeps the samples, because their positions change.
        self.samples: deque[Tensor] = deque(
            maxlen=self.backbone.long_memory_length)

    @torch.no_grad()
    def push(self, features: Mapping[str, Tensor]) -> Tensor | None:
        """Map a frame, [channels] per modality, to logits [L + A, K].

        Returns None until the work memory is full.
        """
        self.frames.append(features)
        self.step += 1
        if self.step < 0:
            return None
        # In a young stream, the oldest frame is frame 0.
        memory = self._attend_positioned() if self.with_positions else \
            self._smooth(self.frames[0])
        memory = self._compress(memory)
        frames = list(self.frames)[-self.span::self.work_rate]
        window = {
            name: torch.stack([frame[name] for frame in frames])
            for name in self.backbone.in_channels
        }
        self.backbone.work_projection(window)
        x = self.backbone.work_projection(window)[None]
        return self._decode(self._with_tokens(x), memory)

    def _attend_positioned(self) -> Tensor:
        """Attend, for LSTR, to each `rate`-th frame before the window."""
        frame = (self.step - 1) // self.rate * self.rate
        if self.step == 0 or frame == self.step - 1 > 0:
            # The first frame of the window is at -span.
            frame = self.frames[-self.span - (self.step > 0)]
            self.samples.append(self.backbone.long_projection(
                {name: y[None] for name, y in frame.items()}))
        length = self.backbone.long_memory_length
        attention = self.backbone.encoder.stages[0].blocks[0].memory_attn
        x = torch.cat(list(self.samples))
        x = (x + self.backbone.positions[length - len(x):length])[None]
        k, v = (_heads(y, attention) for y in attention.kv(x).chunk(2, dim=-1))
        scores = self.q * self.q.shape[-1]**-0.5 @ k.transpose(-1, -2)
        return scores.softmax(dim=-1) @ v

    def _smooth(self, frame: Mapping[str, Tensor]) -> Tensor:
        encoder = self.backbone.encoder
        attention = encoder.stages[0].blocks[0].memory_attn
        x = self.backbone.long_projection(
            {name: y[None] for name, y in frame.items()})[None]
        k, v = attention.kv(x).chunk(2, dim=-1)
        if self.as_released:
            v = v - attention.kv.bias.chunk(2)[1]
        if self.step == 0:
            self._start(x, k, v)
        cache = self.caches[self.step % self.rate]
        for i, new in enumerate((x, k, v)):
            cache[i] = torch.cat([cache[i][:, 1:], new], dim=1)
        phase = self.phases[self.step % self.rate]
        if self.step > (0 if self.as_released else self.rate):
            weight, value = self._weigh(k, v)
            phase[0] = encoder.decay * phase[0] + weight * value
            phase[1] = encoder.decay * phase[1] + weight
        return phase[0] / phase[1]

    def _compress(self, y: Tensor) -> Tensor:
        """Map the result of the first attention [1, G, Q, D] to [1, M, C]."""
        encoder = self.backbone.encoder
        stage, *rest = encoder.stages
        block, = stage.blocks
        y = block.memory_attn.proj(y.transpose(1, 2).flatten(-2))
        x = block.memory_norm(self.x + y)
        x = stage.norm(block.ffn_norm(x + block.ffn(x)))
        for queries, stage in zip(encoder.queries[1:], rest):
            x = _transform(stage, queries[None], x)
        return x

    def _start(self, x: Tensor, k: Tensor, v: Tensor) -> None:
        """Initialize phases and caches with the first frame."""
        attention = self.backbone.encoder.stages[0].blocks[0].memory_attn
        scores = self.q @ _heads(k, attention).transpose(-1, -2)
        self.maximum = scores * self.q.shape[-1]**-0.5
        weight, value = self._weigh(k, v)
        length = self.backbone.long_memory_length
        self.phases = [[weight * value, weight] for _ in range(self.rate)]
        self.caches = [[y.repeat(1, length, 1) for y in (x, k, v)]
                       for _ in range(self.rate)]

    def _weigh(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        attention = self.backbone.encoder.stages[0].blocks[0].memory_attn
        scores = self.q @ _heads(k, attention).transpose(-1, -2)
        scores = scores * self.q.shape[-1]**-0.5
        return (scores - self.maximum).exp(), _heads(v, attention)

    def _with_tokens(self, x: Tensor) -> Tensor:
        """Add positions and tokens: [1, L, C] to [1, L + A, C]."""
        backbone, length = self.backbone, x.shape[1]
        first = backbone.long_memory_length if self.with_positions else 0
        positions = backbone.positions[first:]
        if self.as_released or backbone.work_memory_pos_embed:
            x = x + positions[:length]
        tokens = backbone.anticipation_tokens
        if tokens is None:
            return x
        tokens = tokens + positions[length:length + len(tokens)]
        return torch.cat([x, tokens[None]], dim=1)

    def _decode(self, x: Tensor, memory: Tensor) -> Tensor:
        decoder, length = self.backbone.decoder, x.shape[1]
        mask = causal = torch.full((length, length), -torch.inf, dtype=x.dtype,
                                   device=x.device).triu(1)
        if self.backbone.fusion == 'compressed':
            mask = torch.cat(
                [causal.new_zeros(length, memory.shape[1]), causal], dim=1)
            memory = torch.cat([memory, x], dim=1)
        else:
            mask = None
        y = _transform(decoder.transformer, x, memory, causal, mask)
        return self.model.cls_head(y)['action'][0]


def _transform(transformer: nn.Module, x: Tensor, memory: Tensor,
               self_mask: Tensor | None = None,
               mask: Tensor | None = None) -> Tensor:
    for block in transformer.blocks:
        x = block.self_norm(x + _attend(block.self_attn, x, x, self_mask))
        x = block.memory_norm(x + _attend(block.memory_attn, x, memory, mask))
        x = block.ffn_norm(x + block.ffn(x))
    return transformer.norm(x)


def _attend(attention: nn.Module, x: Tensor, memory: Tensor,
            mask: Tensor | None = None) -> Tensor:
    q = _heads(attention.q(x), attention)
    k, v = (_heads(y, attention)
            for y in attention.kv(memory).chunk(2, dim=-1))
    scores = q * q.shape[-1]**-0.5 @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores + mask
    y = scores.softmax(dim=-1) @ v
    return attention.proj(y.transpose(1, 2).flatten(-2))


def _heads(x: Tensor, attention: nn.Module) -> Tensor:
    """Split heads: [B, N, C] to [B, G, N, D]."""
    return x.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
