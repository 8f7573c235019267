# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from .attention import causal_bias
from .block import OnlineTransformer


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

        A projection contains everything that is computed before tokens mix:
        the token, its query, key and value in the first self-attention, and
        its keys and values in the attentions to the work memory.
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
        x, q = transformer.blocks[0].attend(x, q, kv, bias)
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
