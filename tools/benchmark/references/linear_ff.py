# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reference implementation of the linear video transformer.

It serves to check :class:`mmvidattn.backbones.LinearVideoTransformer` and to
compare its speed. It has Eqs. 3 and 5 and the shifts of Sec. 4.3 of the paper,
written literally in plain PyTorch. The fixation ratio is evaluated once for Q
and once for K, ``K^T V`` always comes first, and a shift fills a buffer with
slice copies. The parameters have the names of our backbone's, so
that both can use the same weights. The only options are the default options of
``configs/linear_ff_ssv2.py``.

Axes: B batch, T frames, S tokens of a frame, N tokens of a sequence, G heads,
D head width, C channels.
"""
import torch
import torch.nn.functional as F
from torch import Tensor, nn

_NEIGHBORS = ((1, 0), (-1, 0), (0, 1), (0, -1), (-1, -1), (1, 1), (-1, 1),
               (1, -1))


class _Gate(nn.Module):

    def __init__(self, head_dims: int) -> None:
        super().__init__()
        self.gate = nn.Linear(3 * head_dims, head_dims)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.sigmoid(self.gate(torch.cat((q, k, v), dim=-1)))


class _Attention(nn.Module):

    def __init__(self, embed_dims: int, num_heads: int, shift: str) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.fixation = _Gate(embed_dims // num_heads)
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.shift = shift

    def _shift_time(self, x: Tensor, num_frames: int) -> Tensor:
        """Sequences are frames: [B*T, G, S, D]."""
        BT, G, S, D = x.shape
        x = x.permute(0, 2, 1, 3).reshape(-1, num_frames, S, G * D)
        fold = G * D // 4
        out = torch.zeros_like(x)
        out[:, :-1, :, :fold] = x[:, 1:, :, :fold]
        out[:, 1:, :, fold:2 * fold] = x[:, :-1, :, fold:2 * fold]
        out[..., 2 * fold:] = x[..., 2 * fold:]
        return out.reshape(BT, S, G, D).permute(0, 2, 1, 3)

    def _shift_space(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        """Sequences are positions: [B*S, G, T, D]."""
        H, W = grid
        BS, G, T, D = x.shape
        x = x.permute(0, 2, 1, 3).reshape(-1, H, W, T, G * D)
        fold = G * D // 16
        out = x.clone()
        for i, (dy, dx) in enumerate(_NEIGHBORS):
            ch = slice(i * fold, (i + 1) * fold)
            if i < 4:
                out[..., ch] = 0
            to = (slice(max(-dy, 0), H - max(dy, 0)),
                  slice(max(-dx, 0), W - max(dx, 0)))
            source = (slice(max(dy, 0), H - max(-dy, 0)),
                      slice(max(dx, 0), W - max(-dx, 0)))
            out[:, to[0], to[1], :, ch] = x[:, source[0], source[1], :, ch]
        return out.reshape(BS, T, G, D).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, num_frames: int,
                grid: tuple[int, int]) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if self.shift == 'time':
            k = self._shift_time(k, num_frames)
            v = self._shift_time(v, num_frames)
        else:
            k = self._shift_space(k, grid)
            v = self._shift_space(v, grid)
        y = self.attend(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(B, N, C))

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        offset = q.shape[-1]**-0.5
        q = F.relu(q) + offset
        k = F.relu(k) + offset
        fixed_q = self.fixation(q, k, v) * q
        fixed_k = self.fixation(q, k, v) * k
        numerator = fixed_q @ (fixed_k.transpose(-2, -1) @ v)
        denominator = fixed_q @ fixed_k.sum(dim=-2).unsqueeze(-1)
        return numerator / (denominator + 1e-6)


class _SoftmaxAttention(_Attention):
    """Module with explicit softmax attention and no fixation."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        del self.fixation

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.transpose(-2, -1) * q.shape[-1]**-0.5
        return scores.softmax(dim=-1) @ v


class _MLP(nn.Module):

    def __init__(self, embed_dims: int, hidden_dims: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dims, hidden_dims)
        self.dwconv = nn.Conv2d(
            hidden_dims, hidden_dims, 3, padding=1, groups=hidden_dims)
        self.fc2 = nn.Linear(hidden_dims, embed_dims)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        x = self.fc1(x)
        B, S, C = x.shape
        x = x.transpose(1, 2).reshape(B, C, *grid)
        x = self.dwconv(x).flatten(2).transpose(1, 2)
        return self.fc2(F.gelu(x))


class _Block(nn.Module):

    def __init__(self, embed_dims: int, num_heads: int,
                 attention: type) -> None:
        super().__init__()
        self.temporal_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.temporal_attn = attention(embed_dims, num_heads, 'space')
        self.spatial_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.spatial_attn = attention(embed_dims, num_heads, 'time')
        self.mlp_norm = nn.LayerNorm(embed_dims, eps=1e-6)
        self.mlp = _MLP(embed_dims, 4 * embed_dims)

    def forward(self, x: Tensor, grid: tuple[int, int]) -> Tensor:
        B, T, S, C = x.shape
        x = x.transpose(1, 2).reshape(B * S, T, C)
        x = x + self.temporal_attn(self.temporal_norm(x), T, grid)
        x = x.reshape(B, S, T, C).transpose(1, 2).reshape(B * T, S, C)
        x = x + self.spatial_attn(self.spatial_norm(x), T, grid)
        x = x + self.mlp(self.mlp_norm(x), grid)
        return x.reshape(B, T, S, C)


class _PatchEmbed(nn.Module):

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, embed_dims, 16, stride=14, padding=8)
        self.norm = nn.LayerNorm(embed_dims)


class TranscribedLinearVideoTransformer(nn.Module):
    """Map clips [B, 3, T, H, W] to token features [B, C, T, h, w].

    Args:
        softmax: Use explicit softmax attention instead of linear attention
            with feature fixation. Defaults to False.
    """

    def __init__(self, num_frames: int = 16, embed_dims: int = 512,
                 num_layers: int = 12, num_heads: int = 8,
                 softmax: bool = False) -> None:
        super().__init__()
        attention = _SoftmaxAttention if softmax else _Attention
        self.patch_embed = _PatchEmbed(embed_dims)
        self.temporal_embed = nn.Parameter(
            torch.zeros(1, num_frames, 1, embed_dims))
        self.blocks = nn.ModuleList(
            _Block(embed_dims, num_heads, attention)
            for _ in range(num_layers))
        self.norm = nn.LayerNorm(embed_dims, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        B, _, T, _, _ = x.shape
        x = x.transpose(1, 2).flatten(0, 1)
        x = self.patch_embed.projection(x)
        grid = x.shape[2:]
        x = self.patch_embed.norm(x.flatten(2).transpose(1, 2))
        x = x.reshape(B, T, *x.shape[1:]) + self.temporal_embed
        for block in self.blocks:
            x = block(x, grid)
        x = self.norm(x)
        return x.reshape(B, T, *grid, -1).permute(0, 4, 1, 2, 3)


def transcribe(model: nn.Module, **kwargs) -> nn.Module:
    """Build the transcription with the weights of our backbone."""
    reference = TranscribedLinearVideoTransformer(**kwargs)
    state = {name.replace('_attn_norm.', '_norm.'): value
             for name, value in model.state_dict().items()}
    state['temporal_embed'] = state['temporal_embed'].squeeze(2)
    reference.load_state_dict(state)
    return reference.to(next(model.parameters()).device)
