# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch

from mmvidattn.ops import linformer_attention
from mmvidattn.ops.linformer import naive_linformer_attention


def _qkv(*shape):
    gen = torch.Generator().manual_seed(0)
    return torch.randn(3, *shape, generator=gen, dtype=torch.float64)


def test_gradients_of_the_projections():
    q, k, v = _qkv(2, 5, 2, 4)
    E, F = (
        torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
        for _ in range(2))
    assert torch.autograd.gradcheck(
        lambda *p: linformer_attention(q, k, v, *p), (E, F))


def test_scale_replaces_the_default():
    q, k, v = _qkv(2, 5, 2, 4)
    E, F = torch.randn(2, 5, 3, dtype=torch.float64)
    y = linformer_attention(q, k, v, E, F, scale=1.5)
    want = naive_linformer_attention(q, k, v, E, F, scale=1.5)
    assert torch.allclose(y, want, atol=1e-13)
    assert not torch.allclose(y, linformer_attention(q, k, v, E, F))
