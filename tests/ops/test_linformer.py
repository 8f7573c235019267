# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
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


@pytest.mark.parametrize('E, F', [((6, 3), (6, 3)), ((5, 3), (5, 4)),
                                  ((5, ), (5, ))])
def test_rejects_projections_of_wrong_shape(E, F):
    q, k, v = _qkv(2, 5, 2, 4)
    with pytest.raises(ValueError, match='M=5 from k'):
        linformer_attention(q, k, v, torch.zeros(E), torch.zeros(F))


@pytest.mark.parametrize('dtype, tolerance', [(torch.float64, 1e-10),
                                              (torch.float32, 1e-5)])
def test_golden_attention(golden, dtype, tolerance):
    case = golden('linear/golden_attn.pt')['linformer_share0']
    x = case['x'].unflatten(-1, (3, 16)).to(dtype)
    y = linformer_attention(x, x, x, case['E'].to(dtype),
                            case['Fm'].to(dtype))
    want = case['out'].transpose(1, 2)
    assert (y - want).norm() < tolerance * want.norm()
