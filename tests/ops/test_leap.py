# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest
import torch

from mmvidattn.ops.leap import (
    leap_attention,
    leap_frames,
    leap_pair,
    leap_step,
    leap_unpair,
    naive_leap_attention,
)

# Frames and levels, some with a step that is no power of two.
LEVELS = [(2, 1), (4, 1), (4, 2), (8, 1), (8, 2), (8, 3), (12, 1), (12, 2),
          (12, 3), (6, 2), (10, 3), (32, 5)]


def _qkv(T, N, M, dtype=torch.float64):
    torch.manual_seed(0)
    G, D, E = 2, 5, 3
    return [torch.randn(2, T, n, G, d, dtype=dtype)
            for n, d in ((N, D), (M, D), (M, E))]


def _order(num_frames, level):
    """The frames in the order in which pairs have them."""
    numbers = torch.arange(num_frames).view(1, num_frames, 1)
    return leap_pair(numbers, level)


@pytest.mark.parametrize('T, level', LEVELS)
def test_pairs_the_frames_of_algorithm_1(T, level):
    first, second = leap_frames(T, level)
    step = T // 2**level
    assert sorted(first + second) == list(range(T))
    assert all(b - a == step for a, b in zip(first, second))
    assert _order(T, level).tolist() == [list(p) for p in zip(first, second)]


def test_pairs_as_figure_3_shows():
    assert _order(8, 1).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert _order(8, 2).tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert _order(8, 3).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_pairs_the_frames_of_the_released_code(shared_dir):
    path = shared_dir / 'goldens/laps/leap_index.json'
    tables = json.loads(path.read_text())
    # Every level of 8, 16, 32 and 64 frames.
    assert len(tables) == 3 + 4 + 5 + 6
    for name, table in tables.items():
        T, level = (int(part[1:]) for part in name.split('_'))
        pairs = _order(T, level)
        assert pairs.T.tolist() == [table['A'], table['B']]
        assert leap_step(T, level) == table['S']
        # Theirs are all of the first, then all of the second.
        assert pairs.T.flatten()[table['reverse']].tolist() == list(range(T))


@pytest.mark.parametrize('T, level', LEVELS)
@pytest.mark.parametrize('N, M', [(3, 3), (5, 2), (1, 1)])
def test_matches_naive(T, level, N, M):
    q, k, v = (x.requires_grad_() for x in _qkv(T, N, M))
    y = leap_attention(q, k, v, level=level)
    want = naive_leap_attention(q, k, v, level)
    assert torch.allclose(y, want, atol=1e-12)
    weight = torch.randn_like(y)
    grads = torch.autograd.grad((y * weight).sum(), (q, k, v))
    wanted = torch.autograd.grad((want * weight).sum(), (q, k, v))
    for a, b in zip(grads, wanted):
        assert torch.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize('dtype, tolerance', [
    (torch.float32, 1e-6), (torch.bfloat16, 1e-2)], ids=str)
def test_matches_naive_in_lower_precision(dtype, tolerance):
    q, k, v = _qkv(8, 3, 4, dtype)
    y = leap_attention(q, k, v, level=2, scale=0.3)
    want = naive_leap_attention(*(x.double() for x in (q, k, v)), 2, 0.3)
    assert y.dtype == dtype
    assert (y - want).norm() < tolerance * want.norm()


@pytest.mark.parametrize('T, level', LEVELS)
def test_unpairing_is_the_inverse(T, level):
    x = torch.randn(3, T, 5, 2)
    pairs = leap_pair(x, level)
    assert pairs.shape == (3 * T // 2, 10, 2)
    assert torch.equal(leap_unpair(pairs, level, T), x)


def test_a_token_reaches_its_pair_and_no_other_frame():
    q, k, v = (x.requires_grad_() for x in _qkv(8, 3, 3))
    y = leap_attention(q, k, v, level=2)
    grad, = torch.autograd.grad(y[0, 3].sum(), v)
    reached = grad.abs().amax(dim=(2, 3, 4)) > 0
    assert reached[0].nonzero().flatten().tolist() == [1, 3]
    assert not reached[1].any()


def test_compiles():
    q, k, v = _qkv(8, 3, 3, torch.float32)
    compiled = torch.compile(
        leap_attention, fullgraph=True, backend='aot_eager')
    assert torch.allclose(
        compiled(q, k, v, level=1), leap_attention(q, k, v, level=1))


@pytest.mark.parametrize('T, level, allowed', [
    (8, 4, r'\[1, 2, 3\]'), (8, 0, r'\[1, 2, 3\]'), (8, -1, r'\[1, 2, 3\]'),
    (6, 3, r'\[1, 2\]'), (7, 1, 'must be even'), (1, 1, 'must be even')])
def test_rejects_frames_that_form_no_pairs(T, level, allowed):
    with pytest.raises(ValueError, match=f'{T} frames.*{level}; .*{allowed}'):
        leap_pair(torch.zeros(1, T, 2), level)
    with pytest.raises(ValueError, match=f'{T} frames'):
        leap_attention(*_qkv(T, 2, 2), level=level)
