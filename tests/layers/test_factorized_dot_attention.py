# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.layers import FactorizedDotAttention


def _attention(**kwargs):
    torch.manual_seed(0)
    return FactorizedDotAttention(12, 4, **kwargs).double()


def _by_hand(attn, x):
    """Attend in a clip [T, H, W, C], token by token."""
    T, H, W, C = x.shape
    q, k, v = (z.unflatten(-1, (4, -1)) for z in (
        x @ attn.qkv.weight.T + attn.qkv.bias).chunk(3, -1))
    out = torch.empty(T, H, W, 4, C // 4, dtype=x.dtype)
    for t in range(T):
        for i in range(H):
            for j in range(W):
                for g in range(4):
                    keys, values = ((z[:, i, j, g] if g < 2 else
                                     z[t, :, :, g].flatten(0, 1))
                                    for z in (k, v))
                    scores = keys @ q[t, i, j, g] / (C // 4)**0.5
                    out[t, i, j, g] = scores.softmax(0) @ values
    return out.flatten(-2) @ attn.proj.weight.T + attn.proj.bias


@pytest.mark.parametrize('shape', [(3, 2, 5), (1, 3, 3), (4, 1, 1)])
def test_first_half_of_heads_attends_in_time_second_half_in_space(shape):
    attn = _attention()
    x = torch.randn(2, *shape, 12, dtype=torch.float64)
    want = torch.stack([_by_hand(attn, clip) for clip in x])
    assert (attn(x) - want).norm() < 1e-12 * want.norm()


def test_dropout_acts_in_training_only():
    x = torch.randn(1, 3, 2, 2, 12, dtype=torch.float64)
    for option in 'attn_drop_rate', 'drop_rate':
        attn = _attention(**{option: 0.5})
        assert not torch.equal(attn(x), attn(x))
        attn.eval()
        assert torch.equal(attn(x), attn(x))
