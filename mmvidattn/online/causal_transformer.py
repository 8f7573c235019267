# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments
from .block import Activation, OnlineBlock
from .causal_network import CausalNetwork


@MODELS.register_module()
@check_arguments
class CausalTransformer(CausalNetwork):
    """Plain causal transformer, a baseline for online action detection.

    It is not from a paper. It consists of the blocks of TeSTra's decoder,
    without the memory. In each block, a frame attends to itself and to the
    ``attention_window - 1`` frames before it. A learned bias for each head and
    distance is added to the scores. Because distances do not change over time,
    a stream computes the keys and values of each frame only once, with the
    same results as for the entire video. A frame depends on up to ``num_layers
    * (attention_window - 1)`` earlier frames, which may be more than a
    training window has.

    Args:
        in_channels: Channels of each modality, which are concatenated in this
            order.
        embed_dims: Channels C. Defaults to 1024.
        num_heads: Number of heads G. Defaults to 16.
        ffn_dims: Hidden channels of the feed-forward layers. Defaults to 1024.
        num_layers: Number of blocks. Defaults to 3.
        attention_window: Frames W that a frame attends to, including itself.
            Defaults to 64.
        work_memory_length: Frames L in a window. Defaults to 128.
        drop_rate: Dropout rate of projected frames and within the blocks.
            Defaults to 0.2.
        act: 'relu' or 'gelu'. Defaults to 'relu'.
        init_cfg: ``init_cfg`` of ``BaseModule``.
    """

    def __init__(self,
                 in_channels: Mapping[str, Count],
                 embed_dims: Count = 1024,
                 num_heads: Count = 16,
                 ffn_dims: Count = 1024,
                 num_layers: Count = 3,
                 attention_window: Count = 64,
                 work_memory_length: Count = 128,
                 drop_rate: Fraction = 0.2,
                 act: Activation = 'relu',
                 init_cfg: dict | None = None) -> None:
        super().__init__(in_channels, embed_dims, embed_dims,
                         work_memory_length, drop_rate, init_cfg)
        self.attention_window = attention_window
        self.blocks = nn.ModuleList(
            OnlineBlock(embed_dims, num_heads, ffn_dims, drop_rate, act,
                        with_memory=False) for _ in range(num_layers))
        # Bias of each block and head, by distance.
        self.distances = nn.Parameter(
            torch.zeros(num_layers, num_heads, attention_window))
        self.norm = nn.LayerNorm(embed_dims)

    def bias(self, ago: Tensor) -> Tensor:
        """Return the bias of attention scores for keys of a given age.

        Args:
            ago: Age of the keys in frames, int64, [*]. The bias is -inf for
                keys in the future or outside of the attention window.

        Returns:
            Bias, [layers, G, *].
        """
        hidden = (ago < 0) | (ago >= self.attention_window)
        bias = self.distances[..., ago.clamp(0, self.attention_window - 1)]
        return bias.masked_fill(hidden, -torch.inf)

    def mix(self, rows: Tensor) -> Tensor:
        # Each piece of W queries attends to the keys of this piece and of the
        # previous piece.
        (B, T, _), W = rows.shape, self.attention_window
        pieces = -(-T // W)
        x = nn.functional.pad(rows, (0, 0, 0, pieces * W - T))
        place = torch.arange(2 * W, device=rows.device)
        ago = place[W:, None] - place
        biases = self.bias(ago)[:, None].repeat(1, pieces, 1, 1, 1)
        # The first piece has no previous piece.
        biases[:, 0, ..., :W] = -torch.inf
        for block, bias in zip(self.blocks, biases):
            attention = block.self_attn
            kv = nn.functional.pad(attention.kv(x), (0, 0, W, 0))
            kv = kv.unfold(1, 2 * W, W).transpose(-1, -2).flatten(0, 1)
            x = x.unflatten(1, (pieces, W)).flatten(0, 1)
            x, _ = block.attend(x, attention.q(x), kv,
                                bias.repeat(B, 1, 1, 1))
            x = block(x).unflatten(0, (B, pieces)).flatten(1, 2)
        return self.norm(x[:, :T])
