# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reference implementation of DualFormer, written step by step.

It serves to check :class:`mmvidattn.backbones.DualFormer` and to compare its
speed. It has Eqs. 1 and 4 and Fig. 4 of the paper, with the released code's
additions (see ``DualFormer``), written literally in plain PyTorch. Tokens are
[B, N, C] in attention and MLP, and maps [B, C, T, H, W] in convolutions, with
a copy at each change of layout; windows are permuted copies; the matrix of
scores is computed. It has the parameters of our backbone under the same names,
so that both can use the same weights, and only the default options.

Axes: B batch, T frames, H and W space, N tokens, S priors, G heads, C
channels.
"""
import torch
import torch.nn.functional as F
from torch import Tensor, nn

WINDOW = (8, 7, 7)
# Kernels for 32 x 224 x 224, per stage: fine level, and coarse level.
KERNELS = (((2, 8, 8), (4, 2, 2)), ((2, 4, 4), (4, 1, 1)), ((2, 2, 2), None),
           (None, None))
ARCHS = dict(
    tiny=(64, (2, 2, 10, 4), (2, 4, 8, 16)),
    small=(96, (2, 2, 18, 2), (3, 6, 12, 24)),
    base=(128, (2, 2, 18, 2), (4, 8, 16, 32)))


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend from q [*, N, d] to k, v [*, S, d]; returns [*, N, d]."""
    scores = (q * q.shape[-1]**-0.5) @ k.transpose(-2, -1)
    return scores.softmax(dim=-1) @ v


def _to_map(x: Tensor, grid: tuple[int, int, int]) -> Tensor:
    B, _, C = x.shape
    return x.transpose(1, 2).reshape(B, C, *grid).contiguous()


class _LocalAttention(nn.Module):

    def __init__(self, embed_dims: int, num_heads: int,
                 window: tuple[int, int, int]) -> None:
        super().__init__()
        self.num_heads, self.window = num_heads, window
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, grid: tuple[int, int, int]) -> Tensor:
        B, N, C = x.shape
        T, H, W = grid
        t, h, w = map(min, self.window, grid)
        x = x.reshape(B, T // t, t, H // h, h, W // w, w, C)
        x = x.permute(0, 1, 3, 5, 2, 4, 6, 7).contiguous()
        x = x.reshape(-1, t * h * w, C)
        qkv = self.qkv(x).reshape(len(x), t * h * w, 3, self.num_heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        x = _attend(q, k, v).transpose(1, 2).reshape(x.shape)
        x = self.proj(x)
        x = x.reshape(B, T // t, H // h, W // w, t, h, w, C)
        x = x.permute(0, 1, 4, 2, 5, 3, 6, 7).contiguous()
        return x.reshape(B, N, C)


class _Coarse(nn.Module):

    def __init__(self, embed_dims: int, kernel: tuple[int, int, int]) -> None:
        super().__init__()
        self.conv1, self.conv2 = (
            nn.Conv3d(embed_dims, embed_dims, size, size, groups=embed_dims)
            for size in ((1, 7, 7), kernel))
        self.norm = nn.BatchNorm3d(embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(F.relu(self.norm(self.conv1(x))))


class _Pyramid(nn.Module):

    def __init__(self, embed_dims: int, fine: tuple | None,
                 coarse: tuple | None) -> None:
        super().__init__()
        self.levels = nn.ModuleList()
        if fine is not None:
            self.levels.append(
                nn.Conv3d(
                    embed_dims, embed_dims, fine, fine, groups=embed_dims))
        if coarse is not None:
            self.levels.append(_Coarse(embed_dims, coarse))
        self.norm = nn.LayerNorm(embed_dims) if fine is not None else None

    def forward(self, x: Tensor, grid: tuple[int, int, int]) -> Tensor:
        if self.norm is None:
            return x
        x = _to_map(x, grid)
        priors = [level(x).flatten(2).transpose(1, 2) for level in self.levels]
        return self.norm(torch.cat(priors, dim=1))


class _GlobalAttention(nn.Module):

    def __init__(self, embed_dims: int, num_heads: int,
                 kernels: tuple) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.pyramid = _Pyramid(embed_dims, *kernels)
        self.q = nn.Linear(embed_dims, embed_dims)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims)
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, grid: tuple[int, int, int]) -> Tensor:
        B, N, C = x.shape
        q = self.q(x).reshape(B, N, self.num_heads, -1).permute(0, 2, 1, 3)
        kv = self.kv(self.pyramid(x, grid))
        kv = kv.reshape(B, kv.shape[1], 2, self.num_heads, -1)
        k, v = kv.permute(2, 0, 3, 1, 4)
        return self.proj(_attend(q, k, v).transpose(1, 2).reshape(B, N, C))


class _MLP(nn.Module):

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dims, 4 * embed_dims)
        self.fc2 = nn.Linear(4 * embed_dims, embed_dims)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class _Block(nn.Module):

    def __init__(self, attn: nn.Module, embed_dims: int) -> None:
        super().__init__()
        self.attn_norm = nn.LayerNorm(embed_dims)
        self.attn = attn
        self.mlp_norm = nn.LayerNorm(embed_dims)
        self.mlp = _MLP(embed_dims)

    def forward(self, x: Tensor, grid: tuple[int, int, int]) -> Tensor:
        x = x + self.attn(self.attn_norm(x), grid)
        return x + self.mlp(self.mlp_norm(x))


class _PatchEmbed(nn.Module):

    def __init__(self, in_channels: int, embed_dims: int,
                 patch: tuple[int, int, int]) -> None:
        super().__init__()
        self.projection = nn.Conv3d(in_channels, embed_dims, patch, patch)
        self.norm = nn.LayerNorm(embed_dims)


class _PositionEncoding(nn.Module):

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv3d(
            embed_dims, embed_dims, 3, padding=1, groups=embed_dims)

    def forward(self, x: Tensor, grid: tuple[int, int, int]) -> Tensor:
        x = _to_map(x, grid)
        return (x + self.dwconv(x)).flatten(2).transpose(1, 2).contiguous()


class TranscribedDualFormer(nn.Module):
    """Map clips [B, 3, T, H, W] to token features [B, C, T', H', W'].

    Args:
        arch: Key of ``ARCHS``, or channels of the first stage, and layers and
            heads of each stage. Defaults to 'tiny'.
        window: Frames, rows and columns of a window, which must divide the
            tokens of each stage. Defaults to ``WINDOW``, for which T / 2 must
            be a multiple of 8, and H and W multiples of 224, as in the
            released code.
        kernels: Kernels of each stage. Defaults to ``KERNELS``.
    """

    def __init__(self, arch: str | tuple = 'tiny',
                 window: tuple[int, int, int] = WINDOW,
                 kernels: tuple = KERNELS) -> None:
        super().__init__()
        embed_dims, num_layers, num_heads = ARCHS.get(arch, arch)
        self.patch_embeds, self.blocks, self.pegs = (
            nn.ModuleList() for _ in range(3))
        channels = 3
        for i in range(4):
            dims = embed_dims * 2**i
            self.patch_embeds.append(
                _PatchEmbed(channels, dims, (1, 2, 2) if i else (2, 4, 4)))
            self.blocks.append(
                nn.ModuleList(
                    _Block(
                        _GlobalAttention(dims, num_heads[i], kernels[i])
                        if j % 2 else _LocalAttention(dims, num_heads[i],
                                                      window),
                        dims) for j in range(num_layers[i])))
            self.pegs.append(_PositionEncoding(dims))
            channels = dims
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        for embed, blocks, peg in zip(self.patch_embeds, self.blocks,
                                      self.pegs):
            x = embed.projection(x)
            grid = x.shape[2:]
            x = embed.norm(x.flatten(2).transpose(1, 2))
            for j, block in enumerate(blocks):
                x = block(x, grid)
                if j == 0:
                    x = peg(x, grid)
            x = _to_map(x, grid)
        x = self.norm(x.flatten(2).transpose(1, 2))
        return _to_map(x, grid)
