# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from mmvidattn.layers import BaseAttention, VideoSelfAttention
from mmvidattn.layers.linear_attention import LinearAttention
from mmvidattn.layers.softmax_attention import SoftmaxAttention
from mmvidattn.visualization.attention_rows import (
    capture_attention,
    iter_attention_rows,
    row_entropy,
)

GRID = (4, 3, 5)


def attention_rows(*args):
    return torch.cat(list(iter_attention_rows(*args)), -3)


N, M, G, D = 7, 23, 3, 4
# Tests and tools may define other subclasses.
ATTENTIONS = [
    x for x in BaseAttention.__subclasses__()
    if x.__module__.startswith('mmvidattn.')]


def _qkv(num_queries=N, num_keys=M, dtype=torch.float64):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, G, D, dtype=dtype)
               for n in (num_queries, num_keys, num_keys))
    return q, k, v


def _naive_matrix(kind, q, k):
    """Compute [*, N, G, M] from q [*, N, G, D] and k [*, M, G, D]."""
    scores = torch.einsum('...ngd,...mgd->...ngm', q, k)
    if kind == 'linear':
        return scores / (scores.sum(-1, keepdim=True) + 1e-6)
    return (scores / math.sqrt(q.shape[-1])).softmax(-1)


@pytest.mark.parametrize('queries', [[0, 6, 2], [5], [1, 2, 3, 4, 5, 6, 6]],
                         ids=['some', 'one', 'more than channels'])
@pytest.mark.parametrize('kind, order', [('linear', 'left'),
                                         ('linear', 'right'),
                                         ('softmax', None)])
def test_rows_match_naive_matrix(kind, order, queries):
    q, k, v = _qkv()
    if kind == 'linear':
        q, k = q.relu() + 0.1, k.relu() + 0.1
        attention = LinearAttention(D, G, (M, ), order=order)
    else:
        attention = SoftmaxAttention(D, G, (M, ))
    rows = attention_rows(attention, q, k, v, torch.tensor(queries))
    want = _naive_matrix(kind, q, k)[:, queries]
    assert rows.shape == (2, len(queries), G, M)
    assert torch.allclose(rows, want, atol=1e-12)


@pytest.mark.parametrize('attention', ATTENTIONS,
                         ids=lambda attention: attention.__name__)
def test_rows_match_probing_with_single_keys(attention):
    """If only one key has a value, the output is the weight of that key.

    This also holds if an attention's queries depend on each other.
    """
    num = 15
    attention = attention(D, G, (3, 5)).double().eval()
    q, k, v = _qkv(num, num)
    q, k = attention.feature_map(q), attention.feature_map(k)

    shapes = ((3, 5), (3, 5)) if attention.takes_shapes else ()

    def seeded(*args):
        torch.manual_seed(1)
        return attention(*args)

    rows = attention_rows(seeded, q, k, v, torch.tensor([3, 14]), *shapes)
    want = []
    for j in range(num):
        one = torch.zeros_like(v)
        one[:, j] = 1
        with torch.no_grad():
            want.append(seeded(q, k, one, *shapes)[:, [3, 14], :, 0])
    assert torch.allclose(rows, torch.stack(want, -1), atol=1e-10)


def test_rejects_attention_that_is_not_a_matrix():
    def squared(q, k, v):
        return v.square()

    q, k, v = _qkv(N, N)
    with pytest.raises(ValueError, match='function .*attention matrix'):
        attention_rows(squared, q, k, v, torch.tensor([0]))


class _Largest(TorchDispatchMode):

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in tree_iter(out):
            if isinstance(x, Tensor) and not func.is_view:
                self.numel = max(self.numel, x.numel())
        return out


@pytest.mark.parametrize('kind, num_queries', [('linear', 6272),
                                               ('softmax', 4)])
def test_memory_does_not_exceed_the_values(kind, num_queries):
    """Use the 6,272 tokens of a clip of 32 x 224 x 224."""
    num_keys = 6272
    torch.manual_seed(0)
    q = torch.rand(1, num_queries, 1, 8)
    k, v = torch.rand(2, 1, num_keys, 1, 8)
    attention = dict(linear=LinearAttention, softmax=SoftmaxAttention)[kind](
        8, 1, (num_keys, ))
    queries = torch.linspace(0, num_queries - 1, 4).long()
    with _Largest() as largest:
        rows = attention_rows(attention, q, k, v, queries)
    want = _naive_matrix(kind, q.double()[:, queries], k.double())
    assert rows.shape == (1, 4, 1, num_keys)
    assert torch.allclose(rows.double(), want, rtol=1e-4, atol=1e-9)
    assert largest.numel <= v.numel()


@pytest.mark.parametrize('share, nats, normalised', [
    ([1, 1, 1, 1], math.log(4), 1),
    ([0, 3, 0, 0], 0, 0),
    ([1, -1, 0, 0], math.log(2), 0.5),
    ([8, 4, 2, 2], 1.75 * math.log(2), 0.875),
], ids=['uniform', 'one key', 'signs', 'halves'])
def test_entropy_matches_closed_forms(share, nats, normalised):
    got = row_entropy(torch.tensor([share], dtype=torch.float64))
    assert got[0].tolist() == pytest.approx([nats], abs=1e-6)
    assert got[1].tolist() == pytest.approx([normalised], abs=1e-6)


def test_entropy_of_zero_row_is_nan():
    assert all(x.isnan().all() for x in row_entropy(torch.zeros(2, 5)))
    assert row_entropy(torch.ones(2, 1))[1].tolist() == [0, 0]


class _Model(nn.Module):

    def __init__(self, **kwargs):
        super().__init__()
        torch.manual_seed(0)
        self.attn = VideoSelfAttention(12, 3, grid_shape=GRID, **kwargs)

    def forward(self, x):
        return self.attn(x)


def _attends(token, pattern, window):
    """Return the mask [T, H, W] of a token's keys."""
    mask = torch.zeros(GRID, dtype=torch.bool)
    t, y, x = token
    if pattern == 'time':
        mask[:, y, x] = True
    elif pattern == 'space':
        mask[t] = True
    elif pattern == 'joint':
        mask[:] = True
    else:
        first = min(max(t - window // 2, 0), GRID[0] - window)
        mask[first:first + window] = True
    return mask


@pytest.mark.parametrize('token', [(0, 0, 0), (2, 1, 4)])
@pytest.mark.parametrize('pattern, window', [('time', None), ('space', None),
                                             ('joint', None), ('window', 3)])
@pytest.mark.parametrize('kind', ['linear', 'softmax'])
def test_captured_rows_match_naive_matrix(kind, pattern, window, token):
    options = dict(
        linear=dict(attention=dict(type='LinearAttention', offset='auto'),
                    fixation={}),
        softmax=dict(attention=dict(type='SoftmaxAttention')))[kind]
    model = _Model(
        pattern=pattern, window_frames=window,
        shifts=[dict(mode='tsm', divisor=4)], **options).double()
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    captured = capture_attention(model, model.attn, x)
    sequence, query = captured.locate(token)
    rows, = captured.iter_rows(sequence, torch.tensor([query]))
    module = model.attn
    with torch.no_grad():
        q, k, v = (y.unflatten(-1, (3, 4))
                   for y in module.qkv(x[:1]).chunk(3, -1))
        k, v = (module.shifts(y.flatten(-2)).unflatten(-1, (3, 4))
                for y in (k, v))
        if kind == 'linear':
            q, k = (y.relu() + 4**-0.5 for y in (q, k))
            q, k = module.fixation(q, k, v)
        q, k = q[0][token][None], k[0][_attends(token, pattern, window)]
        want = _naive_matrix(kind, q, k)[0]
    for head in range(3):
        volume = captured.volume(sequence, rows[0, head])
        inside = _attends(token, pattern, window)
        assert torch.allclose(volume[inside], want[head], atol=1e-12)
        assert volume[~inside].isnan().all()


def test_capture_does_not_change_the_model():
    model = _Model(attention=dict(type='LinearAttention'), pattern='space')
    x = torch.randn(2, *GRID, 12)
    before = model(x)
    capture_attention(model, model.attn, x)
    assert not any(m._forward_hooks or m._forward_pre_hooks
                   for m in model.modules())
    assert torch.equal(model(x), before)
    with pytest.raises(ValueError, match=r'token .*\(4, 3, 5\), got '
                       r'\(4, 0, 0\)'):
        capture_attention(model, model.attn, x).locate((4, 0, 0))


def test_rejects_attention_of_another_model():
    model, other = (
        _Model(attention=dict(type='LinearAttention')) for _ in range(2))
    with pytest.raises(RuntimeError, match='did not call'):
        capture_attention(model, other.attn, torch.randn(1, *GRID, 12))
