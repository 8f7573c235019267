# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments
from .block import OnlineBlock
from .causal_network import CausalNetwork


@MODELS.register_module()
@check_arguments
class CausalTransformer(CausalNetwork):
    """A plain causal transformer: features of a stream to features.

    A baseline of ours, of no paper: the blocks of TeSTra's decoder without
    its memory. In each block a frame attends to itself and the latest
    ``attention_window - 1`` frames before it, and a learned number for each
    head and distance is added to the scores. A distance does not change as
    time goes on, so a stream computes each frame's keys and values once, and
    has the numbers of the whole video. What a frame is told of reaches back
    ``num_layers * (attention_window - 1)`` frames, which may be more than a
    window of training has.

    Args:
        in_channels: Channels of each modality; they are put side by side in
            this order.
        embed_dims: Channels C.
        num_heads: Heads G.
        ffn_dims: Hidden channels of the blocks' two layers.
        num_layers: Blocks.
        attention_window: Frames W that a frame attends to, itself included.
        work_memory_length: Frames L of a window.
        drop_rate: Dropout of the rows and within the blocks.
        act: 'relu' or 'gelu'.
        init_cfg: Of ``BaseModule``.
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
                 act: str = 'relu',
                 init_cfg: dict | None = None) -> None:
        super().__init__(in_channels, embed_dims, embed_dims,
                         work_memory_length, drop_rate, init_cfg)
        self.attention_window = attention_window
        self.blocks = nn.ModuleList(
            OnlineBlock(embed_dims, num_heads, ffn_dims, drop_rate, act,
                        with_memory=False) for _ in range(num_layers))
        # Of each block, by distance.
        self.distances = nn.Parameter(
            torch.zeros(num_layers, num_heads, attention_window))
        self.norm = nn.LayerNorm(embed_dims)

    def bias(self, ago: Tensor) -> Tensor:
        """What is added to the scores of keys that are so many frames old.

        Args:
            ago: int64, [*]. Keys that lie ahead, or beyond the window, are
                hidden.

        Returns:
            [layers, G, *].
        """
        hidden = (ago < 0) | (ago >= self.attention_window)
        bias = self.distances[..., ago.clamp(0, self.attention_window - 1)]
        return bias.masked_fill(hidden, -torch.inf)

    def mix(self, rows: Tensor) -> Tensor:
        """Rows of streams [B, T, C] to features [B, T, C], causally."""
        # Pieces of W queries attend to their own keys and the piece before.
        (B, T, _), W = rows.shape, self.attention_window
        pieces = -(-T // W)
        x = nn.functional.pad(rows, (0, 0, 0, pieces * W - T))
        place = torch.arange(2 * W, device=rows.device)
        ago = place[W:, None] - place
        biases = self.bias(ago)[:, None].repeat(1, pieces, 1, 1, 1)
        # There is nothing before the first piece.
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
