# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from ..layers.linear import Linear
from ..utils.arguments import check_arguments
from .attention import ProjectedAttention

ACTIVATIONS = dict(relu=nn.ReLU, gelu=nn.GELU)
Activation = Literal['relu', 'gelu']
# Queries of a memory in block i, [1 or B, N, C], to what they attend to.
Reader = Callable[[int, Tensor], Tensor]


@check_arguments
class OnlineBlock(nn.Module):
    """A transformer's block with the norms after the sums.

    Self-attention (:meth:`attend`), then attention to a memory if there is
    one, and two layers (calling it).

    Args:
        embed_dims: Channels C.
        num_heads: Heads G.
        ffn_dims: Hidden channels of the two layers.
        drop_rate: Dropout of attention weights, of each branch and between
            the two layers.
        act: 'relu' or 'gelu'.
        with_memory: Attend to a memory.
        share: Of :class:`~mmvidattn.online.attention.ProjectedAttention`.
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
            Linear(embed_dims, ffn_dims), ACTIVATIONS[act](),
            nn.Dropout(drop_rate), Linear(ffn_dims, embed_dims))
        self.ffn_norm = nn.LayerNorm(embed_dims)
        self.drop = nn.Dropout(drop_rate)

    def attend(self,
               x: Tensor,
               q: Tensor,
               kv: Tensor,
               bias: Tensor | None = None,
               num_keys: Tensor | None = None
               ) -> tuple[Tensor, Tensor | None]:
        """Attend to the tokens themselves.

        Args:
            x: Tokens, [B, N, C].
            q: Their queries, likewise.
            kv: Keys and values of the window's tokens, [B, at least N, 2C].
            bias: Of the scores.
            num_keys: Of :class:`~mmvidattn.online.attention.
                ProjectedAttention`.

        Returns:
            The tokens, [B, N, C], and their queries of the memory if there is
            one, likewise.
        """
        return self.add_attended(
            x, self.self_attn(q, kv, bias=bias, num_keys=num_keys))

    def add_attended(self, x: Tensor,
                     y: Tensor) -> tuple[Tensor, Tensor | None]:
        """The rest of :meth:`attend`: add what the attention gives."""
        x = self.self_norm(x + self.drop(self.self_attn.proj(y)))
        return x, self.memory_attn and self.memory_attn.q(x)

    def forward(self, x: Tensor, found: Tensor | None = None) -> Tensor:
        """Add what was found in the memory, and run the two layers.

        Args:
            x: Tokens of :meth:`attend`, [1 or B, N, C].
            found: What their queries attend to in the memory, [B, N, C].

        Returns:
            [B, N, C].
        """
        if found is not None:
            y = self.memory_attn.proj(found)
            x = self.memory_norm(x + self.drop(y))
        return self.ffn_norm(x + self.drop(self.ffn(x)))


class OnlineTransformer(nn.Module):
    """A row of blocks that attend to one memory, and a norm.

    Args:
        num_layers: Blocks.
        embed_dims: Channels C.
        **kwargs: Of :class:`OnlineBlock`.
    """

    def __init__(self, num_layers: int, embed_dims: int, **kwargs) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f'num_layers must be at least 1, got '
                             f'{num_layers}')
        self.blocks = nn.ModuleList(
            OnlineBlock(embed_dims, **kwargs) for _ in range(num_layers))
        self.norm = nn.LayerNorm(embed_dims)

    def project(self, memory: Tensor) -> Tensor:
        """A memory [*, C] to rows [*, num_layers * 2C]: all keys and values.
        """
        return torch.cat(
            [block.memory_attn.kv(memory) for block in self.blocks], dim=-1)

    def reader(self, rows: Tensor, **kwargs) -> Reader:
        """Attention to rows of :meth:`project`, [B, M, num_layers * 2C].

        ``kwargs`` are those of :class:`ProjectedAttention`.
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
        """Run the blocks, from where the first one reads the memory.

        Args:
            x: Tokens and
            q: their queries, both of the first block's ``attend``.
            read: Reads the memory, of :meth:`reader`; None if there is none.
            bias: Of the scores in the self-attentions that follow.
            num_keys: Likewise.
            num_outputs: Compute the last tokens only.

        Returns:
            [B, N or num_outputs, C].
        """
        last = len(self.blocks) - 1
        for i, block in enumerate(self.blocks):
            if i:
                rows = x if num_outputs is None or i < last else (
                    x[:, -num_outputs:])
                attention = block.self_attn
                x, q = block.add_attended(rows, attention.attend_tokens(
                    attention.q(rows), x, bias=bias, num_keys=num_keys))
            x = block(x, read and read(i, q))
        return self.norm(x)
