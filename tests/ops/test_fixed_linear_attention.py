# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib

import pytest
import torch

from mmvidattn.ops import fixed_linear_attention, shift_plan
from mmvidattn.ops.fixed_linear_attention import naive_fixed_linear_attention

C, G, D = 32, 4, 8
SHIFTS = dict(
    none=None,
    tsm=dict(mode='tsm', divisor=4),
    window=dict(mode='window', size=2, alpha=0.5),
    eight=dict(mode='eight'),
    far_cross=dict(mode='cross', size=3, divisor=5),
    own_at_edges=dict(mode='cross', divisor=4, boundary='self'))
# One sequence longer than a head is wide, one shorter; odd sizes.
SHAPES = [(2, 3, 3, 5), (1, 11, 1, 2), (2, 1, 1, 1)]


def _plan(shift):
    return () if shift is None else shift_plan(channels=C, **shift)


def _arguments(shape, num_inputs, with_bias=True, dtype=torch.float64):
    torch.manual_seed(0)

    def randn(*size):
        return torch.randn(*size, dtype=torch.float64).to(
            dtype).requires_grad_()

    return [
        randn(*shape, 3 * C),
        randn(3 * C) if with_bias else None,
        randn(D, num_inputs * D) if num_inputs else None,
        randn(D) if num_inputs else None
    ]


def _gradients(y, arguments):
    torch.manual_seed(1)
    weight = torch.randn(y.shape, dtype=torch.float64).to(y.dtype)
    return torch.autograd.grad((y * weight).sum(),
                               [a for a in arguments if a is not None])


@pytest.fixture(params=[1, 2**21], ids=['in-pieces', 'at-once'])
def piece_numel(request, monkeypatch):
    module = importlib.import_module(
        'mmvidattn.ops.fixed_linear_attention.fixed_linear_attention')
    monkeypatch.setattr(module, 'PIECE_NUMEL', request.param)


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('pattern', ['space', 'time', 'joint'])
@pytest.mark.parametrize('shift', SHIFTS)
@pytest.mark.parametrize('num_inputs', [0, 2, 3],
                         ids=['no-gate', 'gate-qk', 'gate-qkv'])
def test_matches_naive(shape, pattern, shift, num_inputs, piece_numel):
    arguments = _arguments(shape, num_inputs)
    options = dict(num_heads=G, pattern=pattern, offset=0.3)
    ours, naive = (
        f(*arguments, _plan(SHIFTS[shift]), **options)
        for f in (fixed_linear_attention, naive_fixed_linear_attention))
    assert (ours - naive).norm() <= 1e-12 * naive.norm()
    for a, b in zip(
            _gradients(ours, arguments), _gradients(naive, arguments)):
        # With one token the gradients of Q and K all but cancel.
        assert (a - b).norm() <= 1e-11 * b.norm() + 1e-13


@pytest.mark.parametrize('pattern', ['space', 'time', 'joint'])
def test_float32_matches_naive_float64(pattern):
    arguments = _arguments((1, 9, 4, 5), 3, dtype=torch.float32)
    exact = [a.detach().double().requires_grad_() for a in arguments]
    plan = _plan(SHIFTS['tsm'])
    options = dict(num_heads=G, pattern=pattern, offset=D**-0.5)
    y = fixed_linear_attention(*arguments, plan, **options)
    want = naive_fixed_linear_attention(*exact, plan, **options)
    assert (y.double() - want).norm() < 1e-6 * want.norm()
    for a, b in zip(_gradients(y, arguments), _gradients(want, exact)):
        assert (a.double() - b).norm() < 1e-5 * b.norm()


def test_without_bias():
    arguments = _arguments((2, 3, 2, 2), 3, with_bias=False)
    options = dict(num_heads=G, pattern='space')
    ours, naive = (
        f(*arguments, **options)
        for f in (fixed_linear_attention, naive_fixed_linear_attention))
    assert torch.allclose(ours, naive, atol=1e-12)
    for a, b in zip(
            _gradients(ours, arguments), _gradients(naive, arguments)):
        assert torch.allclose(a, b, atol=1e-10)


def test_queries_and_keys_of_zeros_give_zeros():
    qkv = torch.full((1, 2, 3, 3, 3 * C), -1., requires_grad=True)
    y = fixed_linear_attention(
        qkv, None, None, None, num_heads=G, pattern='space')
    assert torch.equal(y, torch.zeros_like(y))
    y.sum().backward()
    assert torch.equal(qkv.grad, torch.zeros_like(qkv))


def test_leaves_its_input_as_it_was():
    arguments = _arguments((1, 3, 2, 2), 3)
    before = [a.detach().clone() for a in arguments]
    y = fixed_linear_attention(
        *arguments, _plan(SHIFTS['tsm']), num_heads=G, pattern='time')
    _gradients(y, arguments)
    assert all(torch.equal(a, b) for a, b in zip(arguments, before))


@pytest.mark.parametrize('change, message', [
    (dict(pattern='window'), "pattern must be one of.*'window'"),
    (dict(offset=-1.), 'offset must not be negative, got -1'),
    (dict(num_heads=5), 'a multiple of num_heads=5'),
    (dict(plan=shift_plan('cross', C, divisor=4, boundary='replicate')),
     "boundary of.*got 'replicate'"),
])
def test_rejects(change, message):
    options = dict(num_heads=G, pattern='space', plan=()) | change
    with pytest.raises(ValueError, match=message):
        fixed_linear_attention(*_arguments((1, 2, 2, 2), 3), **options)


def test_rejects_half_precision():
    with pytest.raises(ValueError, match='float32 or float64.*bfloat16'):
        fixed_linear_attention(
            torch.zeros(1, 2, 2, 2, 3 * C, dtype=torch.bfloat16), None, None,
            None, num_heads=G, pattern='space')
