# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Masks, numerics and random choices of attentions."""
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from helpers import relative
from ops.attentions import ATTENTIONS, SUMS, naive

from mmvidattn import ops
from mmvidattn.ops.unprojected_attention import few_queries

HALVES = [torch.float16, torch.bfloat16]
# Relative error of one rounding.
ACCURACY = {torch.float32: 1e-5, torch.float16: 5e-4, torch.bfloat16: 4e-3}
EACH_DTYPE = pytest.mark.parametrize('dtype', ACCURACY, ids=str)


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _qkv(lead, N, M, G, width, dtype=torch.float64):
    gen = _generator()
    return tuple(
        torch.randn(*lead, length, G, width, generator=gen).to(dtype)
        for length in (N, M, M))


def _double(*tensors):
    return tuple(x.double() for x in tensors)


def _mask(*shape):
    """Mask about a third of the keys, differently in each sequence."""
    mask = torch.rand(*shape, generator=_generator(3)) > 0.35
    mask[..., 0] = True
    return mask


@pytest.mark.parametrize('rest', [torch.nan, torch.inf, 6e4])
@EACH_DTYPE
def test_masked_keys_reach_neither_result_nor_gradient(rest, dtype):
    q, k, v = _qkv((2, ), 7, 19, 2, 8, dtype)
    mask = _mask(2, 19)
    want = naive.softmax_attention(*_double(q, k, v), key_mask=mask)
    leaves = [
        x.masked_fill(~mask[..., None, None], rest).requires_grad_()
        for x in (k, v)
    ]
    y = ops.softmax_attention(q, *leaves, key_mask=mask)
    assert relative(y, want) < 2 * ACCURACY[dtype]
    for grad in torch.autograd.grad(y.double().square().sum(), leaves):
        assert grad.isfinite().all()
        assert grad[mask].abs().max() > 0
        assert grad[~mask].abs().max() == 0


def _textbook(q, k, v, attn_mask, **kwargs):
    """Return NaN if all keys are masked, like some kernels."""
    return (q @ k.mT).masked_fill(~attn_mask, -torch.inf).softmax(-1) @ v


@pytest.mark.parametrize('attention', [
    ops.softmax_attention, 'textbook', partial(
        ops.temporal_smoothing_attention, decay=0.9)],
    ids=['softmax', 'textbook', 'smoothing'])
@EACH_DTYPE
def test_all_keys_masked_gives_zero(attention, dtype, monkeypatch):
    if attention == 'textbook':
        monkeypatch.setattr(F, 'scaled_dot_product_attention', _textbook)
        attention = ops.softmax_attention
    leaves = [x.requires_grad_() for x in _qkv((2, ), 7, 9, 2, 8, dtype)]
    mask = _mask(2, 9)
    mask[1] = False
    y = attention(*leaves, key_mask=mask)
    assert y[0].abs().max() > 0
    assert torch.equal(y[1], torch.zeros_like(y[1]))
    for grad in torch.autograd.grad(y.double().square().sum(), leaves):
        assert grad.isfinite().all()


@pytest.mark.parametrize('name', ['linear', 'clamped', 'cosformer'])
@pytest.mark.parametrize('which', ['query', 'keys'])
@pytest.mark.parametrize('order', ['left', 'right'])
@EACH_DTYPE
def test_all_zero_rows_give_zero(name, which, order, dtype):
    q, k, v = _qkv((1, ), 6, 6, 1, 8, dtype)
    (q[:, 2] if which == 'query' else k).copy_(torch.tensor(-1.))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    y = ATTENTIONS[name](*leaves, order=order)
    zero = y[:, 2] if which == 'query' else y
    assert torch.equal(zero, torch.zeros_like(zero))
    y.double().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in leaves)


@pytest.mark.parametrize('name', [*SUMS, 'softmax'])
@EACH_DTYPE
def test_large_inputs_and_many_tokens(name, dtype):
    """A clip of 96 frames with 33 x 33 tokens of magnitude 8."""
    case = ATTENTIONS[name]
    # Softmax scores of float16 inputs overflow in float16.
    scale = 1 if 'lara' in name else 400 if name == 'softmax' else 8
    q, k, v = (scale * x for x in _qkv((), 3, 104_544, 1, 8, dtype))
    want = case.reference(*_double(q, k, v))
    for order in ('left', 'right') if case.takes_order else ('', ):
        y = case(q, k, v, **(dict(order=order) if order else {}))
        assert y.isfinite().all()
        assert relative(y, want) < max(ACCURACY[dtype], 1e-4)


def test_order_auto_takes_the_cheaper_product():
    for N, M, D, E in [(10, 30, 16, 8), (30, 10, 16, 8), (64, 65, 64, 64)]:
        left, right = N * M * D + N * M * E, M * D * E + N * D * E
        assert ops.cheaper_order(N, M, D, E) == (
            'right' if right < left else 'left')
    # A query of 16 heads costs as much as the projections of 1.5 tokens.
    assert few_queries(21, 32, 16, 1024) and not few_queries(22, 32, 16, 1024)


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_cosformer_weights_are_not_negative_for_many_tokens(dtype):
    N = 2**14
    k = torch.zeros(N, 1, 1, dtype=dtype)
    k[0], k[-1] = 1, 1
    v = torch.stack([k[:, 0, 0].cumsum(0) < 2, k[:, 0, 0].cumsum(0) > 1])
    y = ops.cosformer_attention(torch.ones_like(k), k, v.T[:, None].float())
    assert y.min() >= 0
    angles = math.pi / 2 * torch.arange(N, dtype=torch.float64) / N
    weights = torch.stack([angles.cos(), angles.flip(0).cos()], dim=-1)
    want = weights / weights.sum(-1, keepdim=True)
    assert (y[:, 0].double() - want).abs().max() < 1e-6


@pytest.mark.parametrize('num_keys', [None, torch.tensor([4])])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_top_share_ties_only_equal_scores(dtype, num_keys):
    """The next float below the lowest selected score is not selected."""
    least = torch.tensor(1., dtype=dtype)
    near = least.nextafter(least - 1)
    k = torch.stack([least + 1, least, near, least]).reshape(1, 4, 1, 1)
    q = torch.ones(1, 1, 1, 1, dtype=dtype)
    v = torch.eye(4, dtype=dtype).reshape(1, 4, 1, 4)
    weights = ops.top_share_attention(
        q, k, v, share=.5, num_keys=num_keys).flatten()
    assert (weights > 0).tolist() == [True, True, False, True]


def test_performer_projection_has_orthogonal_blocks_of_normal_entries():
    """Draw it 4,000 times, each with a whole and a partial block."""
    gen = _generator(1)
    W = torch.stack([ops.random_projection(7, 5, gen) for _ in range(4000)])
    for block in W.split(5, dim=1):
        block = F.normalize(block, dim=-1)
        assert (block @ block.mT - torch.eye(block.shape[1])).abs().max() < (
            1e-5)
    # The standard error is 0.016 for the mean and 0.022 for the square.
    assert W.mean(0).abs().max() < 0.08
    assert (W.square().mean(0) - 1).abs().max() < 0.11
    # The lengths vary as in the chi distribution.
    assert (W.square().sum(-1).var(0) - 10).abs().max() < 1.5


def test_orthoformer_landmarks_have_different_directions():
    """Select one landmark per group: multiples of e0, of e1, and e0 + e1."""
    e = torch.eye(4)
    q = torch.stack([e[0], 3 * e[0], -e[0], e[1], e[0] + e[1], -2 * e[1]])
    q = q.view(1, 6, 1, 4)
    assert ops.orthogonal_landmarks(q, 2, 0).flatten().tolist() == [0, 3]
    assert ops.orthogonal_landmarks(q, 3, 0).flatten().tolist() == [0, 3, 4]
    # No token is chosen twice.
    for same in torch.zeros(2, 9, 1, 4), torch.ones(2, 9, 1, 4):
        assert (ops.orthogonal_landmarks(same, 6).diff(dim=1) > 0).all()


@pytest.mark.parametrize('dtype', HALVES)
def test_orthoformer_landmarks_are_chosen_in_float32(dtype):
    # Among 400 queries, some are nearly tied.
    q = torch.randn(2, 400, 2, 16, generator=_generator()).to(dtype)
    want = ops.orthogonal_landmarks(q.float(), 60, 5)
    assert torch.equal(ops.orthogonal_landmarks(q, 60, 5), want)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        assert torch.equal(ops.orthogonal_landmarks(q.float(), 60, 5), want)


def test_first_orthoformer_landmark_is_random_by_default():
    q = torch.randn(64, 31, 2, 8)
    assert len(ops.orthogonal_landmarks(q, 1).unique()) > 20
    assert (ops.orthogonal_landmarks(q, 1, 3) == 3).all()


@pytest.mark.parametrize('dtype, tolerance', [
    (torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize('autocast', [False, True])
@pytest.mark.parametrize('large', ['inputs', 'landmarks'])
def test_lara_takes_large_values(dtype, tolerance, autocast, large):
    gen = _generator()
    tensors = [torch.randn(1, n, 1, 16, generator=gen).to(dtype)
               for n in [500] * 3 + [9] * 3]
    if large == 'inputs':
        tensors = [8 * x for x in tensors]
    else:
        # The sum of both landmarks exceeds the largest float16.
        scale = 40000 if dtype == torch.float16 else 10
        tensors = [*tensors[:3], *(scale * x.abs().clamp(max=1)
                                   for x in tensors[3:5])]
    want = ops.lara_attention(*_double(*tensors))
    if autocast:
        tensors = [x.float() for x in tensors]
        tolerance = 1e-4
    with torch.autocast('cpu', dtype=dtype, enabled=autocast):
        y = ops.lara_attention(*tensors)
    assert y.isfinite().all() and relative(y, want) < tolerance


def test_lower_bound_of_lara_weights_holds_in_float16():
    """A landmark whose weight is only the bound can dominate the result."""
    # The first landmark has the query's attention but a vanishing share.
    landmarks = torch.tensor([[0., 0.], [30., 0.]]).view(1, 2, 1, 2)
    tensors = [
        torch.tensor([[3., 0.], [-40., 0.]]).view(1, 2, 1, 2),
        torch.zeros(1, 2, 1, 2),
        torch.randn(1, 2, 1, 2), landmarks, torch.zeros(1, 2, 1, 2)
    ]
    y = ops.lara_attention(*(x.half() for x in tensors))
    want = naive.lara_attention(*(x.half().double() for x in tensors))
    assert y.isfinite().all() and relative(y, want) < 1e-3


@pytest.mark.parametrize('shape, num_landmarks, grid', [
    ((14, 28), 49, (7, 7)), ((5, 17), 49, (5, 7)), ((197, 1), 49, (49, 1)),
    ((16, ), 49, (16, )), ((96, ), 49, (49, )), ((16, 17, 17), 49, (3, 4, 4)),
    ((2, 17, 17), 49, (1, 7, 7)), ((8, 4, 4), 16, (4, 2, 2))])
def test_landmark_grid(shape, num_landmarks, grid):
    assert ops.landmark_grid(shape, num_landmarks) == grid
