# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ops with a state, over long streams; ops with their own backward pass."""
import numpy as np
import pytest
import torch
from helpers import relative, with_gradients
from ops.attentions import in_parts, naive

from mmvidattn.layers import VideoSelfAttention
from mmvidattn.ops import (
    frame_causal_linear_attention,
    frame_delta_rule,
    temporal_smoothing_attention,
)
from mmvidattn.ops.depthwise_conv import depthwise_conv, frame_conv
from mmvidattn.ops.frame_causal_linear_attention import initial_frame_sums
from mmvidattn.ops.patch_conv import patch_conv
from mmvidattn.ops.stream_smoothing import (
    exponential_smoothing,
    smoothing_state,
    window_smoothing,
)


def _stream(q, k, v, decay, elapsed):
    """Process linear attention frame by frame."""
    return in_parts(
        lambda q, k, v, times, state: frame_causal_linear_attention(
            q, k, v, decay, state, times), 1, q, k, v, elapsed)


@pytest.mark.parametrize('rate', [0., 1e-3])
def test_linear_sums_do_not_stall_after_many_frames(rate):
    """Check small terms: a plain float32 sum ignores 10^-8 of its value."""
    T = 300
    gen = torch.Generator().manual_seed(0)
    k = torch.rand(1, T, 1, 1, 4, generator=gen)
    v = torch.randn(1, T, 1, 1, 4, generator=gen) + 1
    sums, carry = initial_frame_sums(v, 4)
    # The sums after 10^8 frames that add about 1/2 each.
    state = sums + 5e7, carry
    exact = state[0].double(), carry
    decay = torch.tensor([rate])
    for t in range(T):
        part = k[:, t:t + 1], k[:, t:t + 1], v[:, t:t + 1]
        _, state = frame_causal_linear_attention(*part, decay, state)
        _, exact = frame_causal_linear_attention(
            *(x.double() for x in part), decay.double(), exact)
    change = exact[0] - 5e7
    assert relative(state[0].double() + state[1].double() - 5e7, change) < 1e-2
    # float32 also rounds the decay.
    assert relative(state[0], exact[0]) < 1e-6 * (1 + rate * T)


def test_slow_decay_is_exact_where_expm1_is_not(monkeypatch):
    """Compute expm1 like compiled programs and ONNX Runtime."""
    T, rate = 300, 1e-3
    v = torch.ones(1, T, 1, 1, 1)
    want = sum(np.exp(-rate * age) for age in range(T))
    monkeypatch.setattr(torch, 'expm1', lambda x: x.exp() - 1)
    _, state = _stream(v, v, v, torch.tensor([rate]), torch.ones(1, T))
    assert state[0].flatten().tolist() == pytest.approx([want] * 2, rel=1e-6)


@pytest.mark.parametrize('gap', [1e5, 1e7])
def test_clip_equals_stream_around_a_long_gap(gap):
    torch.manual_seed(0)
    q, k, v = torch.rand(3, 2, 12, 5, 3, 4)
    elapsed = 3 * torch.rand(2, 12)
    elapsed[:, 5] = gap
    decay = torch.tensor([0., 1e-4, 0.7])
    clip, _ = frame_causal_linear_attention(q, k, v, decay, None, elapsed)
    assert relative(clip, _stream(q, k, v, decay, elapsed)[0]) < 1e-6


def test_backward_keeps_only_the_states_between_chunks():
    q, k, v = torch.rand(3, 1, 128, 1, 1, 32)
    q, k, v = (x.clone().requires_grad_() for x in (q, k, v))
    inputs, kept = {x.data_ptr() for x in (q, k, v)}, {}

    def pack(x):
        if x.untyped_storage().data_ptr() not in inputs:
            kept[x.data_ptr()] = x.numel()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        frame_causal_linear_attention(q, k, v)
    # Sums and carry of 8 chunks; not the sums of 128 frames.
    assert sum(kept.values()) <= 2 * 8 * 32 * 33


def _delta_inputs(T, N, D=4, E=6):
    gen = torch.Generator().manual_seed(0)
    q, k, v, beta, gate = (
        torch.randn(2, T, *shape, generator=gen, dtype=torch.float64)
        for shape in ((N, 3, D), (N, 3, D), (N, 3, E), (N, 3), (3, )))
    return q, k, v, beta.sigmoid(), -gate.abs()


def test_delta_rule_of_one_token_per_frame_is_the_rule_of_the_paper():
    """Eq. 10: S_t = S_{t-1} (a_t (I - b_t k_t k_t^T)) + b_t v_t k_t^T."""
    q, k, v, beta, gate = _delta_inputs(50, 1)
    k = torch.nn.functional.normalize(k, dim=-1)
    got, _ = frame_delta_rule(q, k, v, beta, gate)
    state, eye = v.new_zeros(2, 3, 6, 4), torch.eye(4).double()
    for t in range(50):
        query, key, value = (x[:, t, 0, :, :, None] for x in (q, k, v))
        rate, decay = beta[:, t, 0], gate[:, t].exp()
        rate, decay = rate[..., None, None], decay[..., None, None]
        state = state @ (decay * (eye - rate * key @ key.mT)) + (
            rate * value @ key.mT)
        want = (state @ query / 2).squeeze(-1)
        assert (got[:, t, 0] - want).abs().max() < 1e-12


def test_delta_rule_is_bounded_for_large_keys_and_learns_a_repeated_frame():
    """A step never overshoots: it moves the read values to the new ones."""
    q, k, v, beta, gate = _delta_inputs(300, 9)
    y, state = frame_delta_rule(q, 30 * k, v, beta, 0 * gate)
    assert y.isfinite().all() and state.abs().max() < v.abs().max()
    # Without decay, the memory converges to the values of the keys.
    k = torch.eye(4, dtype=torch.float64)[None, None, :, None]
    k = k.expand(1, 40, 4, 1, 4)
    v = torch.randn(1, 1, 4, 1, 6, dtype=torch.float64).expand(1, 40, -1, -1,
                                                               -1)
    y, _ = frame_delta_rule(k, k, v, k.new_ones(1, 40, 4, 1),
                            k.new_zeros(1, 40, 1))
    assert relative(2 * y[:, -1], v[:, -1]) < 1e-10


def test_kernel_is_exact_in_float64_and_half_precision():
    """It would be wrong by 1e-8 in float32, and by up to 6 % in bfloat16."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, 3, 8).double() for n in (5, 512, 512))
    got = temporal_smoothing_attention(q, k, v, decay=0.97)
    scores = torch.einsum('bkgd,bngd->bkng', k, q) * 8**-0.5
    want = naive.temporal_smoothing_attention(q, k, v, decay=0.97)
    for y in got, window_smoothing(scores, v, decay=0.97):
        assert relative(y, want) < 1e-13
    q = torch.zeros(1, 1, 1, 4, dtype=torch.bfloat16)
    v = torch.eye(512, dtype=torch.bfloat16)[None, :, None]
    with torch.autocast('cpu', torch.bfloat16):
        y = temporal_smoothing_attention(
            q, q.expand(1, 512, 1, 4), v, decay=0.97)
    want = 0.97**torch.arange(511, -1, -1).double()
    want /= want.sum()
    assert ((y.flatten() - want).abs() / want).max() < 5e-3


@pytest.mark.parametrize('decay', [1., 0.9])
def test_times_repeats_or_skips_a_sample(decay):
    gen = torch.Generator().manual_seed(0)
    scores, v = (torch.randn(10, 3, *shape, generator=gen).double()
                 for shape in ((4, 2), (2, 5)))
    before = smoothing_state(scores[0], 5)
    for sample in zip(scores[:9], v):
        _, before = exponential_smoothing(*sample, before, decay=decay)
    sample = scores[9], v[9]
    # A skipped sample leaves no trace, even with a large score.
    sample[0][2] += 1e4
    times = torch.tensor([3, 1, 0])
    y, after = exponential_smoothing(*sample, before, decay=decay, times=times)
    for stream, number in enumerate(times.tolist()):
        want = before
        for _ in range(number):
            out, want = exponential_smoothing(*sample, want, decay=decay)
            expected = out[stream]
        if number:
            assert relative(y[stream], expected) < 1e-12
        for a, b in zip(after, want):
            torch.testing.assert_close(
                a[stream], b[stream], rtol=1e-12 if number else 0, atol=0)


@pytest.mark.parametrize('decay', [1., 0.999])
def test_a_constant_stream_does_not_drift(decay):
    """Millions of samples at once, then hundreds one by one."""
    gen = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 3, 2, generator=gen)
    v = torch.randn(2, 2, 5, generator=gen)
    state = smoothing_state(scores, 5)
    for times in [2**24] + 500 * [1]:
        y, state = exponential_smoothing(
            scores, v, state, decay=decay, times=torch.tensor([times] * 2))
    mean = state.total / state.weight[..., None]
    assert relative(mean, v[:, None].expand_as(mean)) < 1e-12
    if decay == 1:
        assert torch.equal(state.weight, torch.full_like(scores, 2**24 + 500))
    assert y.dtype == torch.float32


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
    y, = session.run(None, {session.get_inputs()[0].name: x.detach().numpy()})
    torch.testing.assert_close(
        torch.from_numpy(y), layer(x).detach(), rtol=1e-4, atol=1e-5)
