# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The stream step of TeSTra's released code, written from its description.

It computes what that computes in each step: the features of all frames of the
work memory, twice; the learned queries of all stages but the first anew; all
rows of the decoder. And it carries along features, keys and values of the long
memory, which exponential smoothing does not use.
"""
from collections import deque
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class TranscribedStream:
    """One stream of a TeSTra with our weights.

    The exponentials are relative to the largest score of the first frame, the
    values of the long memory have no bias, and frame 0 counts twice: all as
    released.

    Args:
        model: ``OnlineActionDetector`` in eval mode, with
            ``fusion='compressed'`` and work memory of rate 1.
        rate: Every how many frames the long memory takes one.
    """

    @torch.no_grad()
    def __init__(self, model: nn.Module, rate: int = 4) -> None:
        self.model, self.backbone, self.rate = model, model.backbone, rate
        length = self.backbone.work_memory_length
        self.frames: deque[Mapping[str, Tensor]] = deque(maxlen=length + rate)
        self.step = -length
        block = self.backbone.encoder.stages[0].blocks[0]
        x = self.backbone.encoder.queries[0][None]
        self.x = block.self_norm(x + _attend(block.self_attn, x, x))
        self.q = _heads(block.memory_attn.q(self.x), block.memory_attn)

    @torch.no_grad()
    def push(self, features: Mapping[str, Tensor]) -> Tensor | None:
        """A frame, [channels] of each modality, to logits [1 + A, K].

        None until the work memory is full.
        """
        self.frames.append(features)
        self.step += 1
        if self.step < 0:
            return None
        # While the stream is younger than that, frame 0.
        memory = self._compress(self.frames[0])
        length = self.backbone.work_memory_length
        window = {
            name: torch.stack([frame[name] for frame in self.frames])[-length:]
            for name in self.backbone.in_channels
        }
        self.backbone.work_projection(window)
        x = self.backbone.work_projection(window)[None]
        return self._decode(self.backbone.work_tokens(x), memory)

    def _compress(self, frame: Mapping[str, Tensor]) -> Tensor:
        encoder = self.backbone.encoder
        stage, *rest = encoder.stages
        block, = stage.blocks
        attention = block.memory_attn
        x = self.backbone.long_projection(
            {name: y[None] for name, y in frame.items()})[None]
        k, v = attention.kv(x).chunk(2, dim=-1)
        v = v - attention.kv.bias.chunk(2)[1]
        if self.step == 0:
            self._begin(x, k, v)
        cache = self.caches[self.step % self.rate]
        for i, new in enumerate((x, k, v)):
            cache[i] = torch.cat([cache[i][:, 1:], new], dim=1)
        phase = self.phases[self.step % self.rate]
        if self.step:
            weight, value = self._weigh(k, v)
            phase[0] = encoder.decay * phase[0] + weight * value
            phase[1] = encoder.decay * phase[1] + weight
        y = (phase[0] / phase[1]).transpose(1, 2).flatten(-2)
        x = block.memory_norm(self.x + attention.proj(y))
        x = stage.norm(block.ffn_norm(x + block.ffn(x)))
        for queries, stage in zip(encoder.queries[1:], rest):
            x = _transform(stage, queries[None], x)
        return x

    def _begin(self, x: Tensor, k: Tensor, v: Tensor) -> None:
        """All phases with the first frame, and caches full of it."""
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

    def _decode(self, x: Tensor, memory: Tensor) -> Tensor:
        decoder, num_free = self.backbone.decoder, memory.shape[1]
        length = x.shape[1]
        causal = torch.full((length, length), -torch.inf, dtype=x.dtype,
                            device=x.device).triu(1)
        mask = torch.cat([causal.new_zeros(length, num_free), causal], dim=1)
        y = _transform(decoder.transformer, x, torch.cat([memory, x], dim=1),
                       causal, mask)
        tokens = 1 + self.backbone.num_anticipation_tokens
        return self.model.cls_head(y)['action'][0, -tokens:]


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
    """[B, N, C] to [B, G, N, D]."""
    return x.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
