# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ops with their own backward passes."""
import pytest
import torch
from helpers import with_gradients
from ops.attentions import naive

from mmvidattn.layers import VideoSelfAttention
from mmvidattn.ops.depthwise_conv import depthwise_conv, frame_conv
from mmvidattn.ops.patch_conv import patch_conv


def test_weight_gradient_is_right_under_autocast():
    """torch 2.13 computes a wrong one in 3D, in bfloat16 with few frames."""
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, 5, 6, 8), torch.randn(8, 1, 5, 3, 1)]
    want = with_gradients(naive.depthwise_conv, [x.double() for x in inputs])
    with torch.autocast('cpu', dtype=torch.bfloat16):
        got = with_gradients(depthwise_conv, inputs)
    for a, b in zip(got, want):
        assert (a - b).norm() <= 2e-2 * b.norm()


@pytest.mark.parametrize('op, reference, kernel', [
    (depthwise_conv, naive.depthwise_conv, (8, 1, 3, 3, 3)),
    (patch_conv, naive.patch_conv, (8, 1, 2, 2, 2))])
def test_compiled_equals_naive(op, reference, kernel):
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, 4, 5, 8), torch.randn(kernel), torch.randn(8)]
    compiled = torch.compile(op, fullgraph=True, backend='aot_eager')
    got = with_gradients(compiled, inputs)
    want = with_gradients(reference, [x.double() for x in inputs])
    for a, b in zip(got, want):
        assert (a - b).norm() <= 1e-5 * b.norm()
    with torch.no_grad():
        assert torch.allclose(compiled(*inputs), op(*inputs), atol=1e-5)


def test_compiled_operator_has_right_strides():
    """torch.library's own checks, of the fake implementation too."""
    x = torch.randn(2, 3, 4, 5, 8, requires_grad=True)
    weight = torch.randn(8, 1, 3, 3, requires_grad=True)
    torch.library.opcheck(frame_conv, (x[:, 1:], weight, None))


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
