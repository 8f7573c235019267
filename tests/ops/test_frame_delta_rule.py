# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative

from mmvidattn.layers import VideoSelfAttention
from mmvidattn.ops import frame_delta_rule


def _inputs(T, N, D=4, E=6):
    gen = torch.Generator().manual_seed(0)
    q, k, v, beta, gate = (
        torch.randn(2, T, *shape, generator=gen, dtype=torch.float64)
        for shape in ((N, 3, D), (N, 3, D), (N, 3, E), (N, 3), (3, )))
    return q, k, v, beta.sigmoid(), -gate.abs()


def test_one_token_per_frame_is_the_rule_of_the_paper():
    """Eq. 10: S_t = S_{t-1} (a_t (I - b_t k_t k_t^T)) + b_t v_t k_t^T."""
    q, k, v, beta, gate = _inputs(50, 1)
    k = torch.nn.functional.normalize(k, dim=-1)
    got, _ = frame_delta_rule(q, k, v, beta, gate)
    eye = torch.eye(4, dtype=torch.float64)
    for b in range(2):
        for g in range(3):
            state = torch.zeros(6, 4, dtype=torch.float64)
            for t in range(50):
                key, value = k[b, t, 0, g], v[b, t, 0, g]
                rate = beta[b, t, 0, g]
                state = state @ (gate[b, t, g].exp() * (
                    eye - rate * key.outer(key))) + rate * value.outer(key)
                want = state @ q[b, t, 0, g] / 2
                assert (got[b, t, 0, g] - want).abs().max() < 1e-12


@pytest.mark.parametrize('decay', [None, dict(half_life=(2, 64))])
def test_stream_equals_clip_over_1000_frames(decay):
    torch.manual_seed(0)
    layer = VideoSelfAttention(
        12, 3, dict(type='GatedDeltaAttention'), (4, 2, 2), pattern='causal',
        fixation={}, shifts=[dict(mode='tsm', divisor=4)],
        decay=decay).double()
    x = torch.randn(1, 1000, 2, 2, 12, dtype=torch.float64)
    with torch.no_grad():
        want, state = layer(x), layer.initial_state(x)
        for t in range(1000):
            y, state = layer.forward_causal(x[:, t:t + 1], state)
            assert (y - want[:, t:t + 1]).abs().max() < 1e-10
    # The frames far back still matter without a decay by time.
    assert want.abs().max() > 1e-2


def test_memory_stays_bounded_for_large_keys():
    """A step never overshoots: it moves the read values to the new ones."""
    q, k, v, beta, gate = _inputs(300, 9)
    y, state = frame_delta_rule(q, 30 * k, v, beta, 0 * gate)
    assert y.isfinite().all() and state.abs().max() < v.abs().max()


def test_a_repeated_frame_is_learned():
    """Without decay, the memory converges to the values of the keys."""
    k = torch.eye(4, dtype=torch.float64)[None, None, :, None]
    k = k.expand(1, 40, 4, 1, 4)
    v = torch.randn(1, 1, 4, 1, 6, dtype=torch.float64).expand(1, 40, -1, -1,
                                                               -1)
    y, _ = frame_delta_rule(k, k, v, k.new_ones(1, 40, 4, 1),
                            k.new_zeros(1, 40, 1))
    assert relative(2 * y[:, -1], v[:, -1]) < 1e-10


def test_state_is_float32_for_bfloat16_inputs_and_float64_times():
    *inputs, gate = _inputs(3, 2)
    y, state = frame_delta_rule(*(x.bfloat16() for x in inputs), gate)
    assert y.dtype == torch.bfloat16 and state.dtype == torch.float32
    want, _ = frame_delta_rule(
        *(x.bfloat16().double() for x in inputs), gate)
    assert relative(y, want) < 5e-3


@pytest.mark.parametrize('wrong', range(5))
def test_rejects_shapes_that_do_not_match(wrong):
    inputs = [*_inputs(3, 2)]
    inputs[wrong] = inputs[wrong][:, :2]
    with pytest.raises(ValueError, match=r'log_gate \[B, T, G\], got'):
        frame_delta_rule(*inputs)
