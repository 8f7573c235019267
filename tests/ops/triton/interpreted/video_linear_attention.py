# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tests that test_interpreter.py runs with TRITON_INTERPRET=1."""
import math
from itertools import product

import pytest
import torch
from helpers import relative
from ops.video_linear_attention_cases import case, naive
from torch.library import opcheck
from torch.utils.flop_counter import FlopCounterMode

from mmvidattn.ops import shift_plan
from mmvidattn.ops.dispatch import use_backends
from mmvidattn.ops.feature_fixation import Gate
from mmvidattn.ops.triton import video_linear_attention as launches
from mmvidattn.ops.video_linear_attention import (
    Options,
    video_linear_attention,
)

TOLERANCES = {
    torch.float32: 2e-6,
    torch.bfloat16: 4e-3,
    torch.float16: 1e-3
}
# Frames, rows and columns; short and long sequences, full and partial tiles.
GRIDS = dict(time=(5, 2, 3), space=(2, 3, 7), joint=(3, 2, 4))


def results(function, dy, qkv, gate, **options):
    """Return the output, and the gradients of tokens and gate."""
    tensors = [qkv, *(() if gate is None else gate[:4])]
    leaves = [None if x is None else x.detach().requires_grad_()
              for x in tensors]
    y = function(leaves[0], Options(gate=None if gate is None else Gate(
        *leaves[1:], *gate[4:]), **options))
    return y.detach(), *torch.autograd.grad(
        y, [x for x in leaves if x is not None], dy.to(y.dtype))


def naive_of(qkv, options):
    options = options._asdict()
    del options['order']
    return naive(qkv, **options)


def errors(dtype, grid, num_heads=1, head_dims=16, gate='shared', scale=1.,
           seed=0, **options):
    """Return the errors of kernels and plain code relative to naive code."""
    qkv, gate = case((1, *grid), num_heads, head_dims, gate, seed=seed)
    options['num_heads'] = num_heads
    qkv = (qkv * scale).to(dtype)
    dy = torch.randn(
        1, *grid, num_heads * head_dims,
        generator=torch.Generator().manual_seed(1)).to(dtype)
    # The gate is float32, as under autocast.
    gate = gate and Gate(*(x if x is None else x.float() for x in gate[:4]),
                         *gate[4:])
    exact = gate and Gate(*(x if x is None else x.double()
                            for x in gate[:4]), *gate[4:])
    expected = results(naive_of, dy.double(), qkv.double(), exact, **options)
    kernels = results(video_linear_attention, dy, qkv, gate, **options)
    with use_backends(False):
        wide = qkv if dtype == torch.float32 else qkv.float()
        plain = results(video_linear_attention, dy.float(), wide, gate,
                        **options)
    return [[relative(x, y) for x, y in zip(xs, expected)]
            for xs in (kernels, plain)]


def shift(mode, channels):
    divisors = dict(tsm=4, cross=8)
    return shift_plan(mode, channels, divisor=divisors.get(mode))


@pytest.fixture(autouse=True)
def kernels_run(request, monkeypatch):
    """Check that each test runs a kernel instead of the plain code."""
    calls = []
    launch = launches._launch_forward
    monkeypatch.setattr(launches, '_launch_forward', lambda *args: (
        calls.append(1), launch(*args))[1])
    yield
    assert calls or 'falls_back' in request.node.name


# Every pattern, mode, gate and dtype once. The slow test has all combinations.
CASES = [
    ('time', 'eight', 'shared', torch.bfloat16),
    ('joint', None, None, torch.float32),
    ('time', 'cross', 'unshared', torch.bfloat16),
    ('space', 'tsm', 'separate', torch.float32),
    ('time', None, 'qk', torch.float16),
    ('joint', 'tsm', 'add', torch.bfloat16),
]


@pytest.mark.parametrize('pattern, mode, gate, dtype', CASES)
def test_matches_naive(pattern, mode, gate, dtype):
    folds = shift(mode, 32) if mode else ()
    kernels, _ = errors(dtype, GRIDS[pattern], 2, 16, gate, pattern=pattern,
                        folds=folds, offset=0.125)
    # A common factor of all keys does not change the result. Therefore, terms
    # of the gradients of a key gate cancel, and their relative errors are
    # larger.
    key_gate = kernels[4:]
    assert max(kernels[:4]) < TOLERANCES[dtype], kernels
    assert max(key_gate, default=0.) < 1.5 * TOLERANCES[dtype], kernels


@pytest.mark.slow
@pytest.mark.parametrize('pattern, mode, gate, dtype', [
    x for x in product(GRIDS, (None, 'tsm', 'cross', 'eight'), (
        None, 'shared', 'qk', 'unshared', 'separate', 'add'), TOLERANCES)
    if x not in CASES and not (x[2] == 'unshared' and x[3] != torch.bfloat16)])
def test_all_combinations_match_naive(pattern, mode, gate, dtype):
    test_matches_naive(pattern, mode, gate, dtype)


@pytest.fixture
def guarded(monkeypatch):
    """Surround new memory of kernels with NaN, and check that it stays NaN.

    The memory itself is NaN as well. Therefore, a result is NaN if a kernel
    reads too early or leaves out an output.
    """
    blocks, real = [], torch.Tensor.new_empty

    def allocate(shape, dtype):
        size = math.prod(shape)
        block = torch.full((size + 128, ), math.nan, dtype=dtype)
        blocks.append(block)
        return block[64:-64].view(shape)

    def new_empty(x, *shape, dtype=None, device=None):
        if device is not None:
            # The interpreter makes tensors for its own use.
            return real(x, *shape, dtype=dtype, device=device)
        shape = shape[0] if len(shape) == 1 and not isinstance(
            shape[0], int) else shape
        return allocate(shape, dtype or x.dtype)

    monkeypatch.setattr(torch, 'empty_like',
                        lambda x: allocate(x.shape, x.dtype))
    monkeypatch.setattr(torch.Tensor, 'new_empty', new_empty)
    yield
    assert blocks
    assert all(margin.isnan().all() for block in blocks
               for margin in (block[:64], block[-64:]))


@pytest.mark.parametrize('head_dims, gate, dtype', [
    (24, 'shared', torch.float32), (24, 'separate', torch.float32),
    (40, 'shared', torch.bfloat16),
    pytest.param(64, 'shared', torch.float16, marks=pytest.mark.slow),
    pytest.param(64, 'shared', torch.bfloat16, marks=pytest.mark.slow),
])
def test_other_widths(guarded, head_dims, gate, dtype):
    kernels, _ = errors(dtype, (2, 3, 7), 1, head_dims, gate,
                        pattern='space', folds=shift('tsm', head_dims))
    assert max(kernels) < TOLERANCES[dtype]


@pytest.mark.slow
def test_heads_of_128_channels_without_gate():
    kernels, _ = errors(torch.bfloat16, (2, 3, 7), 1, 128, None,
                        pattern='space', folds=shift('tsm', 128))
    assert max(kernels) < TOLERANCES[torch.bfloat16]


@pytest.mark.parametrize('kernel, offset', [
    ('elu+1', 0.), ('sigmoid', 0.1), ('identity', 3.)])
def test_maps(kernel, offset):
    kernels, _ = errors(torch.float32, (4, 2, 2), pattern='time',
                        kernel=kernel, offset=offset, segment_frames=2,
                        folds=shift('tsm', 16))
    # The denominator of signed features may cancel.
    assert max(kernels) < (2e-6 if kernel != 'identity' else 1e-5)


SCALED = [('shared', torch.bfloat16, 1e3), (None, torch.float32, 1e-6)]


@pytest.mark.parametrize('gate, dtype, scale', [
    pytest.param(*x, marks=() if x in SCALED else pytest.mark.slow)
    for x in product((None, 'shared'), TOLERANCES, (1e3, 1e-6))])
def test_scaled_inputs(gate, dtype, scale):
    """Without a gate, only ``eps`` depends on the scale. With a gate, logits
    amplify rounding errors; the kernels may be as inexact as the plain code.
    """
    if dtype == torch.float16 and scale < 1:
        scale = 1e-3  # float16 numbers near 1e-6 have at most four bits.
    kernels, plain = errors(dtype, (2, 3, 7), gate=gate, scale=scale,
                            pattern='space', folds=shift('tsm', 16))
    if gate is None:
        assert max(kernels) < TOLERANCES[dtype]
    elif dtype == torch.float32:
        assert all(a < max(2e-6, 2 * b)
                   for a, b in zip(kernels, plain)), (kernels, plain)
    else:
        assert kernels[0] < TOLERANCES[dtype]


def test_zero_queries_give_zeros():
    qkv = torch.randn(1, 2, 3, 7, 48)
    qkv[..., :16] = 0
    qkv.requires_grad_()
    y = video_linear_attention(qkv, Options(1, 'space'))
    y.sum().backward()
    assert y.abs().max() == 0
    assert qkv.grad.isfinite().all()


def test_nan_stays_in_its_sequence():
    qkv = torch.randn(1, 2, 3, 7, 48)
    qkv[0, 1, 0, 0, 20] = torch.nan
    y = video_linear_attention(qkv, Options(1, 'space'))
    assert y[0, 0].isfinite().all()
    assert y[0, 1].isnan().all()


def test_repeats_exactly():
    qkv, gate = case((1, 2, 3, 7), 1, 16, 'shared', torch.float32)
    first, second = (results(
        video_linear_attention, torch.ones(1, 2, 3, 7, 16), qkv, gate,
        num_heads=1, pattern='space') for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second))


@pytest.mark.slow
def test_split_sequences_equal_whole_sequences(monkeypatch):
    """Few long sequences are split on a device with many processors."""
    qkv, gate = case((1, 2, 5, 5), 1, 16, 'shared', torch.bfloat16)
    dy = torch.randn(1, 2, 5, 5, 16).bfloat16()
    options = dict(num_heads=1, pattern='joint', folds=shift('eight', 16))
    runs = []
    for processors in 1, 0:
        monkeypatch.setattr(launches, '_num_processors',
                            lambda device: processors or 64)
        monkeypatch.setattr(launches, 'FULL_A_PROCESSOR', 1)
        runs.append(results(video_linear_attention, dy, qkv, gate, **options))
    for whole, split in zip(*runs):
        assert relative(split, whole) < 4e-3


def test_operators_pass_opcheck():
    qkv, gate = case((1, 1, 3, 6), 1, 16, 'shared', torch.float32)
    qkv.requires_grad_()
    opcheck(launches.fused, (
        qkv, gate.q_weight.requires_grad_(), gate.q_bias.requires_grad_(),
        None, None, 1, 'space', 'shared', 3, [0, 4, 0, 1, 0, 1], 1, 'relu',
        0.1, 1e-6))


def test_gradcheck():
    """Compare with finite differences in float32."""
    qkv, gate = case((1, 2, 1, 2), 1, 16, 'shared', torch.float32, seed=2)
    gate = Gate(*(x if x is None else x.float() for x in gate[:4]))
    qkv.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: video_linear_attention(
            x, Options(1, 'time', gate=gate, kernel='elu+1')),
        (qkv, ), eps=1e-2, atol=2e-3, rtol=1e-2, fast_mode=True)


def test_rejects_second_derivatives():
    qkv = torch.randn(1, 2, 1, 2, 48, requires_grad=True)
    y = video_linear_attention(qkv, Options(1, 'time'))
    gradient, = torch.autograd.grad(y.square().sum(), qkv, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(gradient.sum(), qkv)


def _layer():
    # This import takes longer than most of the tests.
    from mmvidattn.layers import VideoSelfAttention

    return VideoSelfAttention(
        16, 1, dict(type='LinearAttention', offset='auto'), (2, 3, 7),
        pattern='space', fixation=dict(), shifts=[dict(mode='eight')])


@pytest.mark.slow
def test_layer_trains_like_plain_code():
    layer, x = _layer(), torch.randn(1, 2, 3, 7, 16)
    runs = []
    for enabled in True, False:
        layer.zero_grad()
        with use_backends(enabled):
            y = layer(x)
            y.square().sum().backward()
        runs.append([y, *(p.grad for p in layer.parameters())])
    assert all(relative(a, b) < 1e-5 for a, b in zip(*runs))


@pytest.mark.slow
def test_layer_compiles_without_graph_break():
    layer, x = _layer(), torch.randn(1, 2, 3, 7, 16)
    expected = layer(x)
    expected.sum().backward()
    want = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    y = torch.compile(layer, fullgraph=True, backend='aot_eager')(x)
    y.sum().backward()
    assert relative(y, expected) < 1e-6
    assert all(relative(p.grad, w) < 1e-5
               for p, w in zip(layer.parameters(), want))


class Plain(torch.nn.Module):
    """Attention as a layer calls it; the op selects the implementation."""

    def forward(self, qkv):
        return video_linear_attention(qkv, Options(
            1, 'space', folds=shift('eight', 16), offset=0.1))


class Fused(torch.nn.Module):

    def forward(self, qkv):
        return launches.fused(
            qkv, None, None, None, None, 1, 'space', 'none', 0, [], 2,
            'relu', 0.1, 1e-6)[0]


@pytest.mark.parametrize('module, uses_kernel', [
    (Plain(), False), (Fused(), True)])
def test_export(module, uses_kernel):
    """An exported op contains the plain code and so runs anywhere; the
    operator can be exported explicitly."""
    qkv = torch.randn(1, 2, 3, 7, 48)
    expected = module(qkv)
    program = torch.export.export(module, (qkv, ))
    assert ('mmvidattn.video_linear_attention' in str(
        program.graph)) == uses_kernel
    got = program.module()(qkv)
    assert relative(got, expected) < 1e-5
    assert torch.equal(got, expected) or not uses_kernel


def test_flops_are_counted():
    qkv, gate = case((1, 2, 3, 7), 2, 16, 'shared', torch.float32)
    with FlopCounterMode(display=False) as counter:
        video_linear_attention(qkv, Options(2, 'space', gate=gate))
    # For each token and head: three D x D products, K^T V and Q (K^T V).
    assert counter.get_total_flops() == 2 * 42 * 2 * 5 * 16**2


@pytest.mark.slow
def test_difference_from_plain_detects_a_fault(monkeypatch):
    cpu = torch.device('cpu')
    assert launches.difference_from_plain(cpu) < 1e-2
    launch = launches._launch_forward
    monkeypatch.setattr(launches, '_launch_forward', lambda *args: tuple(
        x * 1.1 for x in launch(*args)))
    assert launches.difference_from_plain(cpu) > 5e-2


def test_falls_back_with_a_warning(monkeypatch):
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda device: 'X')
    monkeypatch.setattr(launches, 'difference_from_plain',
                        lambda device: float('nan'))
    with pytest.warns(UserWarning, match='not used on X: they differ by nan'):
        assert not launches._is_right_on.__wrapped__(torch.device('cuda', 0))
    monkeypatch.setattr(launches, '_runs_plain', lambda x: True)
    qkv, gate = case((1, 2, 3, 7), 1, 16, 'shared')
    dy = torch.randn(1, 2, 3, 7, 16).double()
    options = dict(num_heads=1, pattern='space', folds=shift('tsm', 16))
    expected = results(naive_of, dy, qkv, gate, **options)
    got = results(
        lambda x, given: launches.fused(
            x, *given.gate[:4], 1, 'space', 'shared', 3,
            [n for start, stop, at, side in options['folds']
             for n in (start, stop, *at, side == 'self')], 2, 'relu', 0.,
            1e-6)[0], dy, qkv, gate, **options)
    assert all(relative(a, b) < 1e-10 for a, b in zip(got, expected))
