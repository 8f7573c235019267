# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from .attention import causal_bias
from .block import OnlineTransformer


class OnlineDecoder(nn.Module):
    """Scores the work memory: each token from its past and the long memory.

    Tokens attend to themselves and those before them, and to a memory: the
    compressed long one, the tokens as they came in, or both.

    Args:
        num_layers: Blocks.
        embed_dims: Channels C.
        with_long_memory: Attend to the compressed long memory.
        with_work_memory: Attend, in the same softmax, to the tokens as they
            came in ("@ comp. mem." of the paper's Table 6b).
        **kwargs: Of :class:`~mmvidattn.online.block.OnlineBlock`.
    """

    def __init__(self,
                 num_layers: int,
                 embed_dims: int,
                 with_long_memory: bool = True,
                 with_work_memory: bool = True,
                 **kwargs) -> None:
        super().__init__()
        self.with_memory = with_long_memory
        self.with_work_memory = with_long_memory and with_work_memory
        self.transformer = OnlineTransformer(
            num_layers, embed_dims, with_memory=self.with_memory, **kwargs)

    def forward(self,
                x: Tensor,
                memory: Tensor | None = None,
                *,
                num_outputs: int | None = None,
                num_padded: Tensor | None = None,
                qkv: tuple[Tensor, Tensor, Tensor] | None = None,
                work_keys_values: list | None = None) -> Tensor:
        """Decode.

        Args:
            x: Tokens of the work memory, and of anticipation, [B, S, C].
            memory: The compressed long memory, [1 or B, M, C].
            num_outputs: Compute the last of the tokens only.
            num_padded: Of each stream, how many of the first tokens are none;
                int64, [B].
            qkv: What the first block's ``project`` makes of ``x``, if known.
            work_keys_values: What the blocks' ``keys_values`` make of ``x``,
                if known.

        Returns:
            [B, S or num_outputs, C].
        """
        length = x.shape[1]
        kwargs = dict(
            qkv=qkv,
            self_bias=causal_bias(
                length, device=x.device, num_padded=num_padded),
            num_outputs=num_outputs)
        if not self.with_memory:
            return self.transformer(x, **kwargs)
        keys_values = self.transformer.keys_values(memory)
        bias = None
        if self.with_work_memory:
            bias = causal_bias(length, memory.shape[1], x.device, num_padded)
            if work_keys_values is None:
                work_keys_values = self.transformer.keys_values(x)
            keys_values = [
                tuple(
                    torch.cat([m.expand(len(x), -1, -1, -1), w], dim=1)
                    for m, w in zip(*pair))
                for pair in zip(keys_values, work_keys_values)
            ]
        return self.transformer(x, keys_values, bias=bias, **kwargs)
