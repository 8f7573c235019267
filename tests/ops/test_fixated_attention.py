# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import random

import pytest
import torch

from mmvidattn.layers import VideoSelfAttention
from mmvidattn.ops.feature_maps import FEATURE_MAPS
from mmvidattn.ops.fixated_attention import (
    Gate,
    Options,
    fixated_attention,
    naive_fixated_attention,
)
from mmvidattn.ops.neighbor_shift import BOUNDARIES, shift_plan

SHIFTS = (dict(mode='tsm', divisor=4), dict(mode='tsm', divisor=2, size=3),
          dict(mode='window', alpha=0.5), dict(mode='cross', divisor=8),
          dict(mode='square', alpha=0.3), dict(mode='eight', size=1))


def _draw(seed):
    """Draw options, weights and projections, float64."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    heads, width = draw.choice((1, 2, 4)), draw.choice((6, 8))
    channels = heads * width
    shape = (draw.choice((1, 2)), draw.choice((2, 4)), draw.choice((1, 3)),
             draw.choice((2, 4)))
    shifts = tuple(
        (shift_plan(kind.pop('mode'), channels, **kind,
                    boundary=draw.choice((None, *BOUNDARIES))),
         draw.choice((None, shape[1] // 2)))
        for kind in map(dict, draw.sample(SHIFTS, draw.choice((0, 1, 2)))))
    gates, weights = [], []
    kind = draw.choice(('none', 'separate', 'shared', 'two'))
    for name in dict(none='', separate='qk', shared='q', two='qk')[kind]:
        inputs = name if kind == 'separate' else draw.choice(('qk', 'qkv'))
        aggregate = draw.choice(('concat', 'add'))
        gates.append(Gate(inputs, aggregate))
        number = len(inputs) if aggregate == 'concat' else 1
        weights += [torch.randn(width, number * width).double() / 3,
                    torch.randn(width).double()]
    options = Options(
        heads, draw.choice(('space', 'time', 'joint')),
        draw.choice(FEATURE_MAPS[:3]), draw.choice((0., 0.3)),
        draw.choice(('auto', 'left', 'right')), draw.choice((1e-6, 0.1)),
        shifts, *gates)
    return options, weights, torch.randn(*shape, 3 * channels).double()


def _gradients(function, qkv, weights, options, dtype=torch.float64):
    leaves = [x.to(dtype).requires_grad_() for x in (qkv, *weights)]
    y = function(leaves[0], leaves[1:], options)
    torch.manual_seed(1)
    grad = torch.randn(y.shape).to(y.dtype)
    return [y, *torch.autograd.grad(y, leaves, grad)]


@pytest.mark.parametrize('seed', range(60))
def test_equals_the_composition(seed):
    options, weights, qkv = _draw(seed)
    wants = _gradients(naive_fixated_attention, qkv, weights, options)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 2e-6)):
        results = _gradients(fixated_attention, qkv, weights, options, dtype)
        for result, want in zip(results, wants):
            # The composition's own rounding in float32 is as large.
            scale = want.abs().max().clamp_min(1)
            assert (result - want).abs().max() <= tolerance * scale, options


MODULES = (
    dict(pattern='time', fixation={}, shifts=[dict(mode='eight', size=1)]),
    dict(pattern='space', shifts=[dict(mode='tsm', divisor=4)],
         fixation=dict(mode='separate')),
    dict(pattern='joint', fixation=dict(inputs='qk', shared=False,
                                        aggregate='add')))


@pytest.mark.parametrize('kwargs', MODULES)
def test_layer_trains_as_its_modules_do(kwargs, monkeypatch):
    """Also with frozen weights, checkpoints and autocast."""
    torch.manual_seed(0)
    layer = VideoSelfAttention(
        16, 2, dict(type='LinearAttention', offset='auto'), (4, 3, 5),
        **kwargs)
    layer.qkv.bias.requires_grad_(False)
    x = torch.randn(2, 4, 3, 5, 16, requires_grad=True)

    def gradients(run):
        leaves = [x, *(p for p in layer.parameters() if p.requires_grad)]
        return torch.autograd.grad(run(x).square().mean(), leaves)

    def in_bfloat16(x):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            return layer(x).float()

    fused = gradients(layer)
    again = gradients(lambda x: torch.utils.checkpoint.checkpoint(
        layer, x, use_reentrant=False))
    half = gradients(in_bfloat16)
    monkeypatch.setattr(layer, '_is_fused', lambda qkv: False)
    plain = gradients(layer)
    plain_half = gradients(in_bfloat16)
    for a, b, c, d, e in zip(fused, again, plain, half, plain_half):
        torch.testing.assert_close(a, c, rtol=1e-4, atol=1e-6)
        assert torch.equal(a, b)
        assert (d - c).norm() <= 1.1 * (e - c).norm() + 1e-6


def test_hooks_run_and_second_derivatives_are_refused():
    layer = VideoSelfAttention(
        16, 2, dict(type='LinearAttention'), (4, 3, 5), 'space', fixation={})
    x = torch.randn(1, 4, 3, 5, 16, requires_grad=True)
    grad, = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match='once_differentiable'):
        grad.sum().backward()
    seen = []
    layer.fixation.register_forward_hook(lambda *args: seen.append(1))
    layer(x)
    assert seen


@pytest.mark.parametrize('pattern', ['space', 'joint', 'time'])
def test_takes_projections_in_any_memory_order(pattern):
    options, weights, _ = _draw(3)
    options = options._replace(pattern=pattern)
    qkv = torch.randn(3 * 8 * options.num_heads, 2, 2, 2, 4).double()
    for order in ((1, 2, 3, 4, 0), (2, 1, 3, 4, 0)):
        x = qkv.permute(order)
        if options.q_gate is not None:
            width = len(weights[0])
            x = x[..., :3 * width * options.num_heads]
        for result, want in zip(
                _gradients(fixated_attention, x, weights, options),
                _gradients(naive_fixated_attention, x, weights, options)):
            torch.testing.assert_close(result, want)


def test_can_be_traced_transformed_and_exported_by_tracing(tmp_path):
    layer = VideoSelfAttention(
        16, 2, dict(type='LinearAttention', offset='auto'), (4, 3, 5), 'space',
        fixation={}, shifts=[dict(mode='tsm', divisor=4)])
    x = torch.randn(2, 4, 3, 5, 16)
    want, = torch.autograd.grad(layer(x.requires_grad_()).sum(), x)
    torch.testing.assert_close(
        torch.func.grad(lambda x: layer(x).sum())(x.detach()), want)
    torch.jit.save(torch.jit.trace(layer, x), tmp_path / 'layer.pt')
    torch.onnx.export(layer, x, tmp_path / 'layer.onnx', dynamo=False,
                      opset_version=17)
    runtime = pytest.importorskip('onnxruntime')
    session = runtime.InferenceSession(tmp_path / 'layer.onnx')
    y, = session.run(None, {
        session.get_inputs()[0].name: x.detach().numpy()})
    torch.testing.assert_close(
        torch.from_numpy(y), layer(x).detach(), rtol=1e-4, atol=1e-5)
