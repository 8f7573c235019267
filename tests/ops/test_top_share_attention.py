# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative

from mmvidattn.ops import softmax_attention, top_share_attention


def naive(q, k, v, kept, hidden):
    """Attend query by query."""
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for b in range(len(q)):
        for g in range(q.shape[2]):
            for n in range(q.shape[1]):
                scores = k[b, :, g] @ q[b, n, g] / q.shape[-1]**0.5
                best = sorted(
                    (m for m in range(len(scores)) if not hidden[b][m]),
                    key=lambda m: -scores[m])[:kept[b]]
                out[b, n, g] = scores[best].softmax(0) @ v[b, best, g]
    return out


@pytest.fixture
def tokens():
    torch.manual_seed(0)
    return [torch.randn(2, n, 3, 4, dtype=torch.float64, requires_grad=True)
            for n in (5, 11, 11)]


@pytest.mark.parametrize('share, kept', [(0.75, 8), (0.5, 5), (0.2, 2)])
def test_matches_naive(tokens, share, kept):
    hidden = torch.zeros(2, 11, dtype=torch.bool)
    hidden[1, 2:9] = True
    got = top_share_attention(*tokens, share=share, key_mask=~hidden)
    want = naive(*tokens, [kept] * 2, hidden)
    assert relative(got, want) < 1e-12
    grads = [torch.autograd.grad(y.square().sum(), tokens)
             for y in (got, want)]
    assert all(relative(*pair) < 1e-12 for pair in zip(*grads))


def test_padded_keys_change_nothing(tokens):
    q, k, v = tokens
    bias = torch.zeros(2, 1, 1, 11, dtype=torch.float64)
    bias[1, ..., 7:] = -torch.inf
    got = top_share_attention(q, k, v, share=0.75, bias=bias,
                              num_keys=torch.tensor([11, 7]))
    for b, number in enumerate((11, 7)):
        want = top_share_attention(
            q[b:b + 1], k[b:b + 1, :number], v[b:b + 1, :number], share=0.75)
        assert relative(got[b:b + 1], want) < 1e-12


def test_share_one_is_softmax_attention_and_equal_keys_are_all_kept(tokens):
    q, k, v = tokens
    assert relative(top_share_attention(q, k, v, share=1.),
                    softmax_attention(q, k, v)) < 1e-12
    same = k[:, :1].expand(-1, 11, -1, -1)
    got = top_share_attention(q, same, v, share=0.25)
    assert relative(got, v.mean(1, keepdim=True).expand_as(got)) < 1e-12


@pytest.mark.parametrize('num_keys', [None, torch.tensor([4])])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_only_equal_scores_tie(dtype, num_keys):
    """The next float below the lowest selected score is not selected."""
    least = torch.tensor(1., dtype=dtype)
    near = least.nextafter(least - 1)
    k = torch.stack([least + 1, least, near, least]).reshape(1, 4, 1, 1)
    q = torch.ones(1, 1, 1, 1, dtype=dtype)
    v = torch.eye(4, dtype=dtype).reshape(1, 4, 1, 4)
    weights = top_share_attention(
        q, k, v, share=.5, num_keys=num_keys).flatten()
    assert (weights > 0).tolist() == [True, True, False, True]
