# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Causal layers, frame by frame, against plain loops over all frames."""
import math

import pytest
import torch
import torch.nn.functional as F
from causal_schedules import Causal, run_schedule, whole_streams

from mmvidattn.layers import MLP, FrameDecay, PatchEmbed, VideoSelfAttention
from mmvidattn.layers.neighbor_shift import NeighborShift

T, H, W, C, HEADS = 90, 1, 2, 8, 2
RESETS = [30, 70, 1]


def _times(num_frames=T):
    return 2 * torch.rand(3, num_frames, dtype=torch.float64)


def _tokens(*shape):
    torch.manual_seed(0)
    return torch.randn(3, *shape, dtype=torch.float64)


def _assert_stream_equals(network, reference, x, elapsed=None):
    elapsed = _times(x.shape[1]) if elapsed is None else elapsed
    with torch.no_grad():
        got = run_schedule(network, x, elapsed, RESETS)
        want = whole_streams(reference, x, elapsed, RESETS)
    assert got.shape == want.shape
    assert (got - want).abs().max() < 1e-10


def _naive_shift(x, plan):
    """Read ``plan``, a list of (start, stop, frames back), in [B, T, *, C]."""
    y = x.clone()
    for start, stop, back in plan:
        y[..., start:stop] = 0
        y[:, back:, ..., start:stop] = x[:, :x.shape[1] - back,
                                         ..., start:stop]
    return y


# Channels 2 and 3 would come from the next frame, the next two from the
# previous one. In a window of 2, the second half of the channels is shared by
# the frames -2, -1, 1 and 2.
SHIFTS = {
    'tsm': (dict(mode='tsm', divisor=4), [(2, 4, 1)]),
    'tsm-of-3': (dict(mode='tsm', divisor=4, size=3), [(2, 4, 3)]),
    'window-of-2': (dict(mode='window', size=2, alpha=.5),
                    [(4, 5, 2), (5, 6, 1)]),
}


@pytest.mark.parametrize('options, plan', SHIFTS.values(), ids=SHIFTS)
def test_shift(options, plan):
    shift = NeighborShift(C, causal=True, **options)

    def forward(x, state, elapsed):
        y, new = shift.forward_causal(x, state['past'])
        return y, dict(past=new)

    network = Causal(forward, lambda number: dict(
        past=shift.initial_state(torch.zeros(number, 0, H, W, C).double())))
    _assert_stream_equals(network, lambda x, _: _naive_shift(x, plan),
                          _tokens(T, H, W, C))


def test_patches_of_3_frames():
    embed = PatchEmbed(3, C, 3, 2, 2, 0, with_norm=True, causal=True).double()
    weight, bias = embed.projection.weight, embed.projection.bias

    def naive(x, _):
        patches = []
        for t in range(x.shape[1]):
            frames = [x[:, s] if s >= 0 else torch.zeros_like(x[:, 0])
                      for s in (t - 2, t - 1, t)]
            patches.append(sum(F.conv2d(frame, weight[:, :, i], stride=2)
                               for i, frame in enumerate(frames)))
        y = torch.stack(patches, dim=1).movedim(2, -1) + bias
        return F.layer_norm(y, (C, ), embed.norm.weight, embed.norm.bias)

    def forward(x, state, elapsed):
        return embed.forward_causal(x.transpose(1, 2), state)

    network = Causal(forward, lambda number: embed.initial_state(
        torch.zeros(number, 3, 0, 2, 4).double()))
    _assert_stream_equals(network, naive, _tokens(T, 3, 2, 4))


def test_depth_wise_convolution_of_the_mlp_reads_its_own_frame_only():
    mlp = MLP(C, 2 * C, with_conv=True).double()

    def naive(x, _):
        frames = F.linear(x, mlp.fc1.weight, mlp.fc1.bias)
        frames = torch.stack([
            F.conv2d(frame.movedim(-1, 1), mlp.dwconv.weight, mlp.dwconv.bias,
                     padding=1, groups=2 * C).movedim(1, -1)
            for frame in frames.unbind(1)], dim=1)
        gelu = frames * (1 + (frames / math.sqrt(2)).erf()) / 2
        return F.linear(gelu, mlp.fc2.weight, mlp.fc2.bias)

    network = Causal(lambda x, state, elapsed: (mlp(x), {}), lambda number: {})
    _assert_stream_equals(network, naive, _tokens(T, 3, 2, C))


def test_decay_halves_the_weight_of_a_frame_after_its_half_life():
    decay = FrameDecay(5, half_life=(3, 48))
    weights = (-decay() * torch.tensor([3, 6, 12, 24, 48])).exp()
    assert torch.allclose(weights, torch.full((5, ), .5))
    first, *_, last = FrameDecay(4)()
    assert torch.allclose(math.log(2) / torch.stack([first, last]),
                          torch.tensor([8., 512.]))
    with torch.no_grad():
        decay.log_factor += math.log(2)
    assert torch.allclose((-decay() * 3).exp()[0], torch.tensor(.25))


def _naive_attention(layer, options, x, elapsed):
    """Attend to earlier frames with one masked matrix of all tokens."""
    num_frames = x.shape[1]
    kind, D = options['attention'], C // HEADS
    q, k, v = F.linear(x, layer.qkv.weight, layer.qkv.bias).chunk(3, dim=-1)
    if options.get('shifts'):
        k, v = (_naive_shift(y, SHIFTS['tsm'][1]) for y in (k, v))
    # [G, T N, D]
    q, k, v = (y[0].reshape(-1, HEADS, D).transpose(0, 1) for y in (q, k, v))
    linear = kind['type'] == 'LinearAttention'
    if linear:
        q, k = (y.clamp(min=0) + D**-.5 for y in (q, k))
    if options.get('fixation') is not None:
        gate = layer.fixation.gate
        ratio = 1 / (1 + (-torch.cat([q, k, v], dim=-1) @ gate.weight.T
                          - gate.bias).exp())
        q, k = q * ratio, k * ratio
    frame = torch.arange(num_frames).repeat_interleave(H * W)
    back = frame[:, None] - frame
    seen = (back >= 0) & (back < kind.get('window_frames', num_frames))
    times = elapsed[0].cumsum(0).repeat_interleave(H * W)
    age = (times[:, None] - times).where(seen, 0)
    weights = 1.
    if options.get('decay') is not None:
        first, last = options['decay']['half_life']
        half_lives = torch.tensor([first, last], dtype=torch.float64)
        weights = .5 ** (age / half_lives[:, None, None])
    scores = q @ k.transpose(1, 2)
    if not linear:
        scores = (scores / D**.5).exp()
    scores = scores * weights * seen
    y = scores @ v / (scores.sum(-1, keepdim=True) + (1e-6 if linear else 0))
    y = y.transpose(0, 1).reshape(1, num_frames, H, W, C)
    return F.linear(y, layer.proj.weight, layer.proj.bias)


LINEAR = dict(type='LinearAttention', kernel='relu', offset='auto')
RING = dict(type='SoftmaxAttention', window_frames=7)
DECAY = dict(half_life=(4., 64.))
ATTENTIONS = {
    'linear': dict(attention=LINEAR),
    'linear-all': dict(attention=LINEAR, decay=DECAY, fixation={},
                       shifts=[SHIFTS['tsm'][0]]),
    'softmax-decay-shift': dict(attention=RING, decay=DECAY,
                                shifts=[SHIFTS['tsm'][0]]),
}


@pytest.mark.parametrize('options', ATTENTIONS.values(), ids=ATTENTIONS)
def test_attention(options):
    torch.manual_seed(1)
    layer = VideoSelfAttention(
        C, HEADS, grid_shape=(4, H, W), pattern='causal', **options).double()
    if layer.decay is not None:
        # A buffer of float32 that became float64 is not exact.
        layer.decay.initial_rate = math.log(2) / torch.tensor(
            DECAY['half_life'], dtype=torch.float64)
    network = Causal(
        layer.forward_causal, lambda number: layer.initial_state(
            torch.zeros(number, 0, H, W, C, dtype=torch.float64)),
        layer.decay_state)
    _assert_stream_equals(
        network, lambda x, elapsed: _naive_attention(
            layer, options, x, elapsed), _tokens(T, H, W, C))
