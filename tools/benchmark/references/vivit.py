# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reference implementation of ViViT, Model 1.

It serves to check :class:`mmvidattn.backbones.ViViT` and to compare its speed.
Tubelets become tokens of one pre-norm encoder (Sec. 3.1 to 3.3 of the paper),
whose attention computes the matrix of scores, as the released code does. The
parameters have the names of our backbone's.

Axes: B batch, N tokens, G heads, C channels.
"""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _Attention(nn.Module):

    def __init__(self, embed_dims: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(
            B, N, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        y = (q * q.shape[-1]**-0.5 @ k.mT).softmax(dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, N, C))


class _Block(nn.Module):

    def __init__(self, embed_dims: int, num_heads: int) -> None:
        super().__init__()
        self.attn_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.attn = _Attention(embed_dims, num_heads)
        self.mlp_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.mlp = nn.ModuleDict(dict(
            fc1=nn.Linear(embed_dims, 4 * embed_dims),
            fc2=nn.Linear(4 * embed_dims, embed_dims)))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.attn_norm(x))
        # The released code approximates GELU.
        y = F.gelu(self.mlp['fc1'](self.mlp_norm(x)), approximate='tanh')
        return x + self.mlp['fc2'](y)


class TranscribedViViT(nn.Module):
    """Map clips [B, 3, T, H, W] to the features [B, C] of the class token."""

    def __init__(self, num_frames: int, img_size: int, num_layers: int,
                 embed_dims: int = 768, num_heads: int = 12) -> None:
        super().__init__()
        self.patch_embed = nn.ModuleDict(dict(projection=nn.Conv3d(
            3, embed_dims, (2, 16, 16), (2, 16, 16))))
        self.encoder = nn.Module()
        side = img_size // 16
        self.encoder.pos_embed = nn.Parameter(torch.zeros(
            1, num_frames // 2, side, side, embed_dims))
        self.encoder.cls_token = nn.Parameter(
            torch.zeros(1, 1, 1, 1, embed_dims))
        self.encoder.blocks = nn.ModuleList(
            _Block(embed_dims, num_heads) for _ in range(num_layers))
        self.encoder.norm = nn.LayerNorm(embed_dims, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed['projection'](x).flatten(2).transpose(1, 2)
        x = x + self.encoder.pos_embed.flatten(1, 3)
        token = self.encoder.cls_token.flatten(1, 3).expand(len(x), -1, -1)
        x = torch.cat([token, x], dim=1)
        for block in self.encoder.blocks:
            x = block(x)
        return self.encoder.norm(x)[:, 0]
