# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import torch
from torch import Tensor, nn

from ..ops import softmax_attention, temporal_smoothing_attention
from .few_rows_linear import FewRowsLinear


class ProjectedAttention(nn.Module):
    """Attention whose projections can be had apart from the attention.

    A stream projects a frame once and attends to it in many windows, and the
    queries of a memory are the same in all of them. So :meth:`queries` and
    :meth:`keys_values` project, and calling the module attends.

    Args:
        embed_dims: Channels C.
        num_heads: Heads G; they divide the channels.
        drop_rate: Dropout of the attention weights.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 drop_rate: float = 0.) -> None:
        super().__init__()
        if embed_dims % num_heads:
            raise ValueError('num_heads must divide embed_dims, got '
                             f'{num_heads} and {embed_dims}')
        self.num_heads = num_heads
        self.drop_rate = drop_rate
        self.q = FewRowsLinear(embed_dims, embed_dims)
        self.kv = FewRowsLinear(embed_dims, 2 * embed_dims)
        self.proj = FewRowsLinear(embed_dims, embed_dims)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As ``nn.MultiheadAttention``, whose q, k and v are one matrix."""
        bound = math.sqrt(6 / (4 * self.q.in_features))
        for layer in (self.q, self.kv):
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.zeros_(layer.bias)
        self.proj.reset_parameters()
        nn.init.zeros_(self.proj.bias)

    def queries(self, x: Tensor) -> Tensor:
        """[*, N, C] to [*, N, G, D]."""
        return self.q(x).unflatten(-1, (self.num_heads, -1))

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[*, M, C] to keys and values, each [*, M, G, D]."""
        k, v = self.kv(x).chunk(2, dim=-1)
        return (k.unflatten(-1, (self.num_heads, -1)),
                v.unflatten(-1, (self.num_heads, -1)))

    def forward(self,
                q: Tensor,
                k: Tensor,
                v: Tensor,
                *,
                bias: Tensor | None = None,
                key_mask: Tensor | None = None,
                decay: float = 1.) -> Tensor:
        """Attend, and project the result.

        Args:
            q: [B, N, G, D]; [1, N, G, D] are the queries of all B.
            k: [B, M, G, D]; likewise.
            v: As ``k``.
            bias: Added to the scores, of a shape that broadcasts to
                [B, G, N, M]; not with a decay.
            key_mask: Bool, [B, M], True where a key counts.
            decay: Of :func:`mmvidattn.ops.temporal_smoothing_attention`.

        Returns:
            [B, N, C].
        """
        batch = max(len(q), len(k))
        q, k, v = (x.expand(batch, -1, -1, -1) for x in (q, k, v))
        kwargs = dict(
            key_mask=key_mask,
            dropout_p=self.drop_rate if self.training else 0.)
        if bias is not None:
            y = softmax_attention(q, k, v, bias=bias, **kwargs)
        else:
            y = temporal_smoothing_attention(q, k, v, decay=decay, **kwargs)
        return self.proj(y.flatten(-2))


def causal_bias(length: int,
                num_free: int = 0,
                device: torch.device | None = None,
                num_padded: Tensor | None = None) -> Tensor:
    """0 where a token may look, -inf where that lies in its future.

    Args:
        length: Tokens N.
        num_free: Keys in front of theirs that every token may look at.
        device: Where to make it.
        num_padded: Of each of a batch, how many of the first tokens are none:
            only they look at themselves. int64, [B].

    Returns:
        float32, [N, num_free + N], or with ``num_padded``
        [B, 1, N, num_free + N].
    """
    step = torch.arange(length, device=device)
    hidden = step > step[:, None]
    if num_padded is not None:
        padded = step < num_padded[:, None, None, None]
        hidden = hidden | (padded & (step != step[:, None]))
    bias = torch.zeros(
        hidden.shape, device=device).masked_fill(hidden, -torch.inf)
    return nn.functional.pad(bias, (num_free, 0))
