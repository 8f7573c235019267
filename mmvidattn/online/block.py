# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention on projected tokens, and transformer blocks of online networks."""
import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from ..ops import (
    softmax_attention,
    temporal_smoothing_attention,
    top_share_attention,
)
from ..ops.sizes import is_known
from ..ops.unprojected_attention import few_queries, unprojected_attention
from ..utils.arguments import Count, check_arguments, check_divides

ACTIVATIONS = dict(relu=nn.ReLU, gelu=nn.GELU)
Activation = Literal['relu', 'gelu']
# Function that attends to a memory in block i with queries [1 or B, N, C].
Reader = Callable[[int, Tensor], Tensor]
# Number of tokens of all streams from which `unprojected_attention` is faster.
MANY_TOKENS = 128


class ProjectedAttention(nn.Module):
    """Attention on tokens that are already projected.

    The caller applies the layers ``q``, ``kv`` (keys and values, concatenated)
    and ``proj``, because a stream projects a frame only once.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G, a divisor of C.
        drop_rate: Dropout rate of the attention weights. Defaults to 0.
        share: Share of keys that a query attends to, see
            :func:`mmvidattn.ops.top_share_attention`. Defaults to 1.
    """

    def __init__(self, embed_dims: int, num_heads: int, drop_rate: float = 0.,
                 share: float = 1.) -> None:
        super().__init__()
        check_divides(num_heads=num_heads, embed_dims=embed_dims)
        self.num_heads = num_heads
        self.drop_rate = drop_rate
        self.share = share
        self.q = nn.Linear(embed_dims, embed_dims)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize like ``nn.MultiheadAttention``, with one q, k, v matrix.
        """
        bound = math.sqrt(6 / (4 * self.q.in_features))
        for layer in (self.q, self.kv):
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.zeros_(layer.bias)
        self.proj.reset_parameters()
        nn.init.zeros_(self.proj.bias)

    def heads(self, x: Tensor) -> Tensor:
        """Split channels into heads: [*, C] to [*, G, D]."""
        return x.unflatten(-1, (self.num_heads, -1))

    def forward(self,
                q: Tensor,
                kv: Tensor,
                *,
                bias: Tensor | None = None,
                key_mask: Tensor | None = None,
                num_keys: Tensor | None = None,
                decay: float = 1.) -> Tensor:
        """Attend to keys and values.

        Args:
            q: Queries, [B, N, C], or [1, N, C] for the entire batch.
            kv: Keys and values, [B, M, 2C], or [1, M, 2C].
            bias: Bias of the scores for the last N tokens of a window, in a
                shape [*, at least N, M] that broadcasts. Not with a decay.
            key_mask: Bool, [B, M], False for keys to ignore.
            num_keys: Number of keys, int64 [B], for a share below 1.
            decay: Decay of
                :func:`mmvidattn.ops.temporal_smoothing_attention`. Defaults
                to 1.

        Returns:
            Attended values, [B, N, C], before the output projection.
        """
        # Only a constant batch size is 1 in an exported program.
        batch = (kv if is_known(q.shape[0] == 1) else q).shape[0]
        q, k, v = (
            self.heads(x.expand(batch, -1, -1))
            for x in (q, *kv.chunk(2, dim=-1)))
        kwargs = dict(
            key_mask=key_mask,
            dropout_p=self.drop_rate if self.training else 0.)
        if bias is not None:
            bias = bias[..., -q.shape[1]:, :]
        if self.share < 1:
            y = top_share_attention(
                q, k, v, share=self.share, num_keys=num_keys, bias=bias,
                **kwargs)
        elif bias is not None:
            y = softmax_attention(q, k, v, bias=bias, **kwargs)
        else:
            y = temporal_smoothing_attention(q, k, v, decay=decay, **kwargs)
        return y.flatten(-2)

    def attend_tokens(self,
                      q: Tensor,
                      x: Tensor,
                      kv: Tensor | None = None,
                      *,
                      bias: Tensor | None = None,
                      num_keys: Tensor | None = None) -> Tensor:
        """Attend to tokens whose keys and values are used only once.

        Args:
            q: Queries, [B, N, C].
            x: Tokens, [B, M, C].
            kv: Keys and values of L later tokens, [B, L, 2C].
            bias, num_keys: See :meth:`forward`; for M + L keys.

        Returns:
            Result of :meth:`forward`, [B, N, C].
        """
        # The weight of a quantized layer cannot be split. With few tokens,
        # reading the weights takes longer than the matrix products.
        if (self.share == 1 and not self.training
                and isinstance(self.kv, nn.Linear)
                and is_known(x.shape[0] * x.shape[1] >= MANY_TOKENS)
                and few_queries(
                    q.shape[1], x.shape[1], self.num_heads, x.shape[2])):
            if kv is None:
                kv = x.new_empty(len(x), 0, 2 * x.shape[-1])
            if bias is not None:
                bias = bias[..., -q.shape[1]:, :]
            q, k, v = map(self.heads, (q, *kv.chunk(2, dim=-1)))
            return unprojected_attention(
                q, x, self.kv.weight, self.kv.bias, k, v, bias).flatten(-2)
        rows = self.kv(x)
        if kv is not None:
            rows = torch.cat([rows, kv], dim=1)
        return self(q, rows, bias=bias, num_keys=num_keys)


def causal_bias(length: int, device: torch.device | None = None,
                num_padded: Tensor | None = None) -> Tensor:
    """Return the bias of causal attention, 0 or -inf for future tokens.

    Args:
        length: Number of tokens N.
        device: Device of the result.
        num_padded: Number of padded tokens at the start of each sample, int64,
            [B]. Only a padded token itself attends to it.

    Returns:
        Bias, float32, [N, N], or [B, 1, N, N] with ``num_padded``.
    """
    step = torch.arange(length, device=device)
    hidden = step > step[:, None]
    if num_padded is not None:
        padded = step < num_padded[:, None, None, None]
        hidden = hidden | (padded & (step != step[:, None]))
    return torch.zeros(
        hidden.shape, device=device).masked_fill(hidden, -torch.inf)


class OnlineBlock(nn.Module):
    """Transformer block with post-norm.

    :meth:`add_attended` finishes self-attention. Calling the block runs the
    optional attention to a memory, and the two feed-forward layers.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G.
        ffn_dims: Hidden channels of the feed-forward layers.
        drop_rate: Dropout rate of attention weights, of each branch, and
            between the feed-forward layers. Defaults to 0.
        act: 'relu' or 'gelu'. Defaults to 'relu'.
        with_memory: Add attention to a memory. Defaults to True.
        share: Share of keys in
            :class:`ProjectedAttention`. Defaults to 1.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 ffn_dims: int,
                 drop_rate: float = 0.,
                 act: Activation = 'relu',
                 with_memory: bool = True,
                 share: float = 1.) -> None:
        super().__init__()
        self.self_attn = ProjectedAttention(embed_dims, num_heads, drop_rate,
                                            share)
        self.self_norm = nn.LayerNorm(embed_dims)
        self.memory_attn = None
        if with_memory:
            self.memory_attn = ProjectedAttention(embed_dims, num_heads,
                                                  drop_rate, share)
            self.memory_norm = nn.LayerNorm(embed_dims)
        self.ffn = nn.Sequential(
            nn.Linear(embed_dims, ffn_dims), ACTIVATIONS[act](),
            nn.Dropout(drop_rate), nn.Linear(ffn_dims, embed_dims))
        self.ffn_norm = nn.LayerNorm(embed_dims)
        self.drop = nn.Dropout(drop_rate)

    def add_attended(self, x: Tensor,
                     y: Tensor) -> tuple[Tensor, Tensor | None]:
        """Finish self-attention: add its result y [B, N, C] to the tokens x.

        Returns:
            Tokens, [B, N, C], and their queries of the memory, [B, N, C], or
            None without a memory.
        """
        x = self.self_norm(x + self.drop(self.self_attn.proj(y)))
        return x, self.memory_attn and self.memory_attn.q(x)

    def forward(self, x: Tensor, attended: Tensor | None = None) -> Tensor:
        """Add the result of attention to the memory, and run the layers.

        Args:
            x: Tokens of :meth:`add_attended`, [1 or B, N, C].
            attended: Result of the attention to the memory, [B, N, C].

        Returns:
            Tokens, [B, N, C].
        """
        if attended is not None:
            y = self.memory_attn.proj(attended)
            x = self.memory_norm(x + self.drop(y))
        return self.ffn_norm(x + self.drop(self.ffn(x)))


@check_arguments
class OnlineTransformer(nn.Module):
    """Blocks that attend to the same memory, followed by a norm.

    Args:
        num_layers: Number of blocks.
        embed_dims: Channels C.
        **kwargs: Arguments of :class:`OnlineBlock`.
    """

    def __init__(self, num_layers: Count, embed_dims: int, **kwargs) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            OnlineBlock(embed_dims, **kwargs) for _ in range(num_layers))
        self.norm = nn.LayerNorm(embed_dims)

    def project(self, memory: Tensor) -> Tensor:
        """Project a memory [*, C] to all blocks' keys and values.

        Returns:
            Keys and values, [*, num_layers * 2C].
        """
        return torch.cat(
            [block.memory_attn.kv(memory) for block in self.blocks], dim=-1)

    def reader(self, rows: Tensor, **kwargs) -> Reader:
        """Return a reader of a projected memory.

        Args:
            rows: Result of :meth:`project`, [B, M, num_layers * 2C].
            **kwargs: Arguments of :meth:`ProjectedAttention.forward`.
        """
        pairs = rows.chunk(len(self.blocks), dim=-1)
        return lambda i, q: self.blocks[i].memory_attn(q, pairs[i], **kwargs)

    def attend(self,
               x: Tensor,
               *,
               bias: Tensor | None = None,
               num_keys: Tensor | None = None,
               num_outputs: int | None = None
               ) -> tuple[Tensor, Tensor | None]:
        """Run the first block's self-attention.

        Args:
            x: Tokens, [B, N, C].
            bias, num_keys: See :meth:`ProjectedAttention.forward`.
            num_outputs: Number of last tokens that :meth:`forward` computes.
                Defaults to all.

        Returns:
            Tokens and queries for :meth:`forward`.
        """
        block, rows = self.blocks[0], x
        if len(self.blocks) == 1 and num_outputs is not None:
            rows = x[:, -num_outputs:]
        attention = block.self_attn
        return block.add_attended(rows, attention(
            attention.q(rows), attention.kv(x), bias=bias, num_keys=num_keys))

    def forward(self,
                x: Tensor,
                q: Tensor | None,
                read: Reader | None,
                *,
                bias: Tensor | None = None,
                num_keys: Tensor | None = None,
                num_outputs: int | None = None) -> Tensor:
        """Run the blocks after the first block's self-attention.

        Args:
            x: Tokens after the first block's self-attention.
            q: Their queries of the memory, or None without a memory.
            read: Reader of the memory (:meth:`reader`), or None.
            bias, num_keys, num_outputs: See :meth:`attend`.

        Returns:
            Features, [B, N or num_outputs, C].
        """
        last = len(self.blocks) - 1
        for i, block in enumerate(self.blocks):
            if i:
                rows = x if num_outputs is None or i < last else (
                    x[:, -num_outputs:])
                attention = block.self_attn
                x, q = block.add_attended(rows, attention.attend_tokens(
                    attention.q(rows), x, bias=bias, num_keys=num_keys))
            x = block(x, read(i, q) if read is not None else None)
        return self.norm(x)
