# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from torch import Tensor, nn

from .attention import ProjectedAttention
from .few_rows_linear import FewRowsLinear

ACTIVATIONS = dict(relu=nn.ReLU, gelu=nn.GELU)


class OnlineBlock(nn.Module):
    """A transformer's block with the norms after the sums.

    Self-attention, attention to a memory if it has one, and two layers.

    Args:
        embed_dims: Channels C.
        num_heads: Heads G.
        ffn_dims: Hidden channels of the two layers.
        drop_rate: Dropout of attention weights, of each branch and between
            the two layers.
        act: 'relu' or 'gelu'.
        with_memory: Attend to a memory.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 ffn_dims: int,
                 drop_rate: float = 0.,
                 act: str = 'relu',
                 with_memory: bool = True) -> None:
        super().__init__()
        if act not in ACTIVATIONS:
            raise ValueError(f'act must be one of {", ".join(ACTIVATIONS)}, '
                             f'got {act!r}')
        self.self_attn = ProjectedAttention(embed_dims, num_heads, drop_rate)
        self.self_norm = nn.LayerNorm(embed_dims)
        self.memory_attn = None
        if with_memory:
            self.memory_attn = ProjectedAttention(embed_dims, num_heads,
                                                  drop_rate)
            self.memory_norm = nn.LayerNorm(embed_dims)
        self.ffn = nn.Sequential(
            FewRowsLinear(embed_dims, ffn_dims), ACTIVATIONS[act](),
            nn.Dropout(drop_rate), FewRowsLinear(ffn_dims, embed_dims))
        self.ffn_norm = nn.LayerNorm(embed_dims)
        self.drop = nn.Dropout(drop_rate)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[*, N, C] to what the tokens attend to each other with."""
        return (self.self_attn.queries(x), *self.self_attn.keys_values(x))

    def begin(self,
              x: Tensor,
              qkv: tuple[Tensor, Tensor, Tensor] | None = None,
              bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """What comes before the memory.

        Args:
            x: Tokens, [B, N, C].
            qkv: Queries of these, and keys and values of any number of
                tokens. Defaults to what ``project`` makes of ``x``.
            bias: Of the scores.

        Returns:
            The tokens after the self-attention, [B, N, C], and what they ask
            the memory, [B, N, G, D], if there is one.
        """
        y = self.self_attn(*(qkv or self.project(x)), bias=bias)
        x = self.self_norm(x + self.drop(y))
        return x, self.memory_attn and self.memory_attn.queries(x)

    def add_memory(self, x: Tensor, y: Tensor) -> Tensor:
        """[1 or B, N, C] and what they found there, likewise, to [B, N, C].

        ``y`` is what ``memory_attn`` returns.
        """
        return self.memory_norm(x + self.drop(y))

    def feed_forward(self, x: Tensor) -> Tensor:
        """[*, C] to the same shape."""
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

    def keys_values(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """[*, M, C] to each block's keys and values, each [*, M, G, D]."""
        return [
            block.memory_attn.keys_values(memory) for block in self.blocks
        ]

    def forward(self,
                x: Tensor,
                memory: list[tuple[Tensor, Tensor]] | None = None,
                *,
                qkv: tuple[Tensor, Tensor, Tensor] | None = None,
                self_bias: Tensor | None = None,
                num_outputs: int | None = None,
                bias: Tensor | None = None,
                begun: tuple[Tensor, Tensor] | None = None,
                **kwargs) -> Tensor:
        """Run the blocks.

        Args:
            x: Tokens, [1 or B, N, C]; one stands for all until the blocks
                meet a memory of B.
            memory: Of :meth:`keys_values`, if the blocks have one.
            qkv: What the first block's ``project`` makes of ``x``, if that is
                known.
            self_bias: Of the tokens' scores, [*, N, N].
            num_outputs: Compute the last of the N tokens only.
            bias: Of the memory's scores, [*, N, M].
            begun: What the first block's ``begin`` makes of ``x``, if that is
                known; then all tokens are computed.
            **kwargs: Of :class:`ProjectedAttention`, for the memory.

        Returns:
            [B, N or num_outputs, C].
        """
        for i, block in enumerate(self.blocks):
            keep = x.shape[1]
            if num_outputs is not None and i == len(self.blocks) - 1:
                keep = num_outputs
            rows = x[:, -keep:]
            if i == 0 and begun is not None:
                x, asked = begun
            else:
                if i or qkv is None:
                    q = block.self_attn.queries(rows)
                    k, v = block.self_attn.keys_values(x)
                else:
                    q, k, v = qkv
                x, asked = block.begin(rows, (q[:, -keep:], k, v),
                                       _last(self_bias, keep))
            if memory is not None:
                x = block.add_memory(
                    x,
                    block.memory_attn(
                        asked, *memory[i], bias=_last(bias, keep), **kwargs))
            x = block.feed_forward(x)
        return self.norm(x)


def _last(bias: Tensor | None, num_rows: int) -> Tensor | None:
    return None if bias is None else bias[..., -num_rows:, :]
