# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Properties of all attentions: reference, gradients, masks, numerics."""
from functools import partial

import pytest
import torch
from helpers import relative

from mmvidattn.ops import (
    cosformer_attention,
    fixation_ratio,
    frame_delta_rule,
    lara_attention,
    linear_attention,
    linformer_attention,
    mala_attention,
    neighbor_shift,
    orthoformer_attention,
    performer_attention,
    periodic_shift,
    polaformer_attention,
    rala_attention,
    random_projection,
    shift_plan,
    softmax_attention,
    temporal_smoothing_attention,
)
from mmvidattn.ops.cosformer import naive_cosformer_attention
from mmvidattn.ops.linear_attention import naive_linear_attention
from mmvidattn.ops.linformer import naive_linformer_attention
from mmvidattn.ops.mala import naive_mala_attention
from mmvidattn.ops.performer import naive_performer_attention
from mmvidattn.ops.polaformer import naive_polaformer_attention
from mmvidattn.ops.rala import naive_rala_attention
from mmvidattn.ops.softmax_attention import naive_softmax_attention

HALVES = [torch.float16, torch.bfloat16]
# Relative error of one rounding.
ACCURACY = {
    torch.float64: 1e-11,
    torch.float32: 1e-5,
    torch.float16: 5e-4,
    torch.bfloat16: 4e-3
}


def _projections(m, D):
    gen = torch.Generator().manual_seed(1)
    return random_projection(m, D, gen)


def _mixtures(M):
    gen = torch.Generator().manual_seed(2)
    return (torch.rand(2, M, 7, generator=gen) - 0.5) * 0.5


class _Case:
    """An attention and its reference, as functions of raw q, k and v."""

    def __init__(self, op, naive, mapped=False, extra=None, **kwargs):
        self.op, self.naive = op, naive
        self.mapped, self.extra, self.kwargs = mapped, extra, kwargs

    def __call__(self, q, k, v, **kwargs):
        return self._call(self.op, q, k, v, kwargs)

    def reference(self, q, k, v, **kwargs):
        return self._call(self.naive, q, k, v, kwargs)

    def _call(self, function, q, k, v, kwargs):
        if self.mapped:
            q, k = q.relu(), k.relu()
        # Parameters stay in float32, as in a module.
        dtype = torch.promote_types(v.dtype, torch.float32)
        extra = self.extra(k).to(dtype) if self.extra else ()
        if self.op in (performer_attention, polaformer_attention):
            extra = (extra, )
        return function(q, k, v, *extra, **self.kwargs, **kwargs)


CASES = dict(
    linear=_Case(linear_attention, naive_linear_attention, mapped=True),
    clamped=_Case(
        linear_attention,
        naive_linear_attention,
        mapped=True,
        clamp_eps=True),
    cosformer=_Case(
        cosformer_attention, naive_cosformer_attention, mapped=True),
    favor=_Case(
        performer_attention,
        naive_performer_attention,
        extra=lambda k: _projections(21, k.shape[-1])),
    relu=_Case(
        performer_attention,
        naive_performer_attention,
        extra=lambda k: _projections(21, k.shape[-1]),
        kind='relu'),
    linformer=_Case(
        linformer_attention,
        naive_linformer_attention,
        extra=lambda k: _mixtures(k.shape[-3] if k.dim() > 2 else 1)),
    mala=_Case(mala_attention, naive_mala_attention, mapped=True),
    rala=_Case(rala_attention, naive_rala_attention, mapped=True),
    polaformer=_Case(
        polaformer_attention,
        naive_polaformer_attention,
        extra=lambda k: torch.linspace(1.2, 3, k.shape[-2:].numel()).view(
            k.shape[-2:])),
    softmax=_Case(softmax_attention, naive_softmax_attention),
)
LINEAR = [name for name in CASES if name not in ('linformer', 'softmax')]
every_case = pytest.mark.parametrize('name', CASES)
every_linear_case = pytest.mark.parametrize('name', LINEAR)


def _qkv(lead, N, M, G, D, E, dtype=torch.float64):
    gen = torch.Generator().manual_seed(0)
    return tuple(
        torch.randn(*lead, length, G, width, generator=gen).to(dtype)
        for length, width in ((N, D), (M, D), (M, E)))


def _mask(*shape):
    """Mask about a third of the keys, differently in each sequence."""
    gen = torch.Generator().manual_seed(3)
    mask = torch.rand(*shape, generator=gen) > 0.35
    mask[..., 0] = True
    return mask


# Ops and the shapes of their arguments.
SHIFT = shift_plan('tsm', 4, divisor=4)
TOKENS, LANDMARKS, CLIP = (2, 4, 1, 4), (2, 3, 1, 4), (1, 4, 2, 1, 4)
QKV = [(2, 4, 1, 4), (2, 5, 1, 4), (2, 5, 1, 3)]
DIFFERENTIATED = {
    **{name: (case, QKV) for name, case in CASES.items()},
    'polaformer': (CASES['polaformer'], [*QKV[:2], (2, 5, 1, 4)]),
    'frame-delta': (lambda q, k, v, b, g: frame_delta_rule(
        q, k, v, b.sigmoid(), -g.exp()), [(1, 3, 1, 1, 4), *[(1, 3, 2, 1, 4)]
                                          * 2, (1, 3, 2, 1), (1, 3, 1)]),
    'lara': (lara_attention, [TOKENS] * 3 + [LANDMARKS] * 3),
    'orthoformer': (orthoformer_attention, [TOKENS] * 3 + [LANDMARKS]),
    'smoothing': (partial(temporal_smoothing_attention, decay=0.9),
                  [TOKENS] * 3),
    'fixation': (lambda q, k, *p: fixation_ratio((q, k), *p),
                 [TOKENS, TOKENS, (4, 8), (4, )]),
    'neighbor-shift': (lambda x: neighbor_shift(x, SHIFT), [CLIP]),
    'periodic-shift': (periodic_shift, [CLIP]),
}


@pytest.mark.parametrize('name', DIFFERENTIATED)
def test_gradients_match_finite_differences(name):
    op, shapes = DIFFERENTIATED[name]
    gen = torch.Generator().manual_seed(0)
    leaves = [torch.randn(shape, generator=gen, dtype=torch.float64,
                          requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(op, leaves)


@pytest.mark.parametrize('rest', [torch.nan, torch.inf, 6e4])
@pytest.mark.parametrize('dtype', [torch.float32, *HALVES])
def test_masked_keys_reach_neither_result_nor_gradient(rest, dtype):
    case = CASES['softmax']
    q, k, v = _qkv((2, ), 7, 19, 2, 8, 8, dtype)
    mask = _mask(2, 19)
    want = case.reference(*(x.double() for x in (q, k, v)), key_mask=mask)
    leaves = [
        x.masked_fill(~mask[..., None, None], rest).requires_grad_()
        for x in (k, v)
    ]
    y = case(q, *leaves, key_mask=mask)
    assert relative(y, want) < 2 * ACCURACY[dtype]
    for grad in torch.autograd.grad(y.double().square().sum(), leaves):
        assert grad.isfinite().all()
        assert grad[mask].abs().max() > 0
        assert grad[~mask].abs().max() == 0


@pytest.mark.parametrize('dtype', [torch.float32, *HALVES])
@pytest.mark.parametrize('attention', [
    softmax_attention, partial(temporal_smoothing_attention, decay=0.9)],
    ids=['softmax', 'smoothing'])
def test_all_keys_masked_gives_zero(attention, dtype):
    leaves = [x.requires_grad_() for x in _qkv((2, ), 7, 9, 2, 8, 8, dtype)]
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
@pytest.mark.parametrize('dtype', [torch.float32, *HALVES])
def test_all_zero_rows_give_zero(name, which, order, dtype):
    q, k, v = _qkv((1, ), 6, 6, 1, 8, 8, dtype)
    (q[:, 2] if which == 'query' else k).copy_(torch.tensor(-1.))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    y = CASES[name](*leaves, order=order)
    zero = y[:, 2] if which == 'query' else y
    assert torch.equal(zero, torch.zeros_like(zero))
    y.double().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in leaves)


@pytest.mark.parametrize(
    'name, kwargs',
    [('linformer', {}), ('softmax', {})] +
    [(name, dict(order=order)) for name in LINEAR
     for order in ('left', 'right')],
    ids=lambda value: '-'.join(value.values()) if isinstance(value, dict)
    else value)
@pytest.mark.parametrize('dtype', [torch.float32, *HALVES])
def test_large_inputs_and_many_tokens(name, kwargs, dtype):
    """A clip of 96 frames with 33 x 33 tokens of magnitude 8."""
    q, k, v = (8 * x for x in _qkv((), 3, 104_544, 1, 8, 8, dtype))
    y = CASES[name](q, k, v, **kwargs)
    want = CASES[name].reference(*(x.double() for x in (q, k, v)))
    assert y.isfinite().all()
    assert relative(y, want) < max(ACCURACY[dtype], 1e-4)


@pytest.mark.parametrize('name', [*LINEAR, 'linformer'])
def test_sums_stay_in_float32_under_autocast(name):
    q, k, v = _qkv((1, ), 300, 300, 2, 8, 8, torch.float32)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        y = CASES[name](q, k, v)
    want = CASES[name].reference(*(x.double() for x in (q, k, v)))
    assert y.dtype == torch.float32
    assert relative(y, want) < 1e-5


@pytest.mark.parametrize('name', [*LINEAR, 'linformer'])
def test_accepts_queries_of_wider_dtype_than_values(name):
    """Under autocast, a gate returns float32 and a projection does not."""
    q, k, v = _qkv((1, ), 30, 30, 2, 8, 8, torch.float32)
    v = v.bfloat16()
    y = CASES[name](q, k, v)
    want = CASES[name].reference(*(x.double() for x in (q, k, v)))
    assert y.dtype == torch.bfloat16
    assert relative(y, want) < ACCURACY[torch.bfloat16]
