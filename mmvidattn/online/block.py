# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from ..utils.arguments import Count, check_arguments
from .attention import ProjectedAttention

ACTIVATIONS = dict(relu=nn.ReLU, gelu=nn.GELU)
Activation = Literal['relu', 'gelu']
# Function that attends to a memory in block i with queries [1 or B, N, C].
Reader = Callable[[int, Tensor], Tensor]


class OnlineBlock(nn.Module):
    """Transformer block with post-norm.

    :meth:`attend` runs self-attention. Calling the block runs the optional
    attention to a memory, and the two feed-forward layers.

    Args:
        embed_dims: Channels C.
        num_heads: Number of heads G.
        ffn_dims: Hidden channels of the feed-forward layers.
        drop_rate: Dropout rate of attention weights, of each branch, and
            between the feed-forward layers. Defaults to 0.
        act: 'relu' or 'gelu'. Defaults to 'relu'.
        with_memory: Add attention to a memory. Defaults to True.
        share: Share of keys in
            :class:`~mmvidattn.online.attention.ProjectedAttention`. Defaults
            to 1.
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

    def attend(self,
               x: Tensor,
               q: Tensor,
               kv: Tensor,
               bias: Tensor | None = None,
               num_keys: Tensor | None = None
               ) -> tuple[Tensor, Tensor | None]:
        """Run self-attention.

        Args:
            x: Tokens, [B, N, C].
            q: Queries of the tokens, [B, N, C].
            kv: Keys and values of the window's tokens, [B, at least N, 2C].
            bias: Bias of the scores, see :meth:`ProjectedAttention.forward`.
            num_keys: Number of keys, see :meth:`ProjectedAttention.forward`.

        Returns:
            Tokens, [B, N, C], and their queries of the memory, [B, N, C], or
            None without a memory.
        """
        return self.add_attended(
            x, self.self_attn(q, kv, bias=bias, num_keys=num_keys))

    def add_attended(self, x: Tensor,
                     y: Tensor) -> tuple[Tensor, Tensor | None]:
        """Finish :meth:`attend`: add the result y of the attention to x."""
        x = self.self_norm(x + self.drop(self.self_attn.proj(y)))
        return x, self.memory_attn and self.memory_attn.q(x)

    def forward(self, x: Tensor, attended: Tensor | None = None) -> Tensor:
        """Add the result of attention to the memory, and run the layers.

        Args:
            x: Tokens of :meth:`attend`, [1 or B, N, C].
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
            x: Tokens from the first block's ``attend``.
            q: Their queries of the memory, from ``attend``.
            read: Reader of the memory (:meth:`reader`), or None.
            bias: Bias of the scores in the later self-attentions.
            num_keys: Number of keys in the later self-attentions.
            num_outputs: Number of last tokens to compute. Defaults to all.

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
