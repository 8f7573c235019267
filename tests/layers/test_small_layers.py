# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Embeddings of patches and tubelets, stochastic depth, and decay."""
import math

import pytest
import torch
import torch.nn.functional as F
from helpers import with_gradients
from torch import nn

from mmvidattn.layers import (
    FrameDecay,
    PatchEmbed,
    StochasticDepth,
    TubeletEmbed,
)


@pytest.mark.parametrize('num_frames, patch_frames', [(1, 3), (2, 5), (7, 3)])
@pytest.mark.parametrize('size, stride, padding', [(4, 4, 0), (5, 3, 2)])
def test_patches_of_several_frames_equal_a_convolution(
        num_frames, patch_frames, size, stride, padding):
    torch.manual_seed(0)
    embed = PatchEmbed(3, 8, patch_frames, size, stride, padding,
                       with_norm=False).double()
    x = torch.randn(2, 3, num_frames, 13, 12, dtype=torch.float64)
    conv = embed.projection

    def ours(x, weight, bias):
        return torch.func.functional_call(
            embed, {'projection.weight': weight, 'projection.bias': bias}, x)

    def theirs(x, weight, bias):
        return F.conv3d(x, weight, bias, conv.stride,
                        conv.padding).permute(0, 2, 3, 4, 1)

    leaves = x, conv.weight, conv.bias
    assert embed(x).shape[2:4] == embed.grid_of((13, 12))
    for a, b in zip(with_gradients(ours, leaves),
                    with_gradients(theirs, leaves)):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


# The first case is the released code's.
@pytest.mark.parametrize('num_frames, sampled, want', [
    (32, 16, [2, 4, 6, 8, 9, 11, 13, 15, 17, 19, 21, 23, 24, 26, 28, 30]),
    (8, 3, [2, 4, 6]), (5, 4, [1, 2, 3, 4]), (4, 4, [0, 1, 2, 3])])
def test_samples_frames_evenly(num_frames, sampled, want):
    embed = TubeletEmbed(1, 1, 1, 2, sampled)
    nn.init.constant_(embed.projection.weight, 0.25)
    nn.init.zeros_(embed.projection.bias)
    frames = torch.arange(float(num_frames)).view(1, 1, -1, 1, 1)
    tokens = embed(frames.expand(-1, -1, -1, 2, 4))
    assert tokens[0, :, 0, 0, 0].tolist() == want
    assert embed.grid_of(num_frames, (2, 4)) == (sampled, 1, 2)


def test_token_depends_on_its_tubelet_only():
    embed = TubeletEmbed(3, 5, 2, 4)
    x = torch.randn(1, 3, 6, 8, 12)
    y = embed(x)
    assert y.shape == (1, *embed.grid_of(6, (8, 12)), 5) == (1, 3, 2, 3, 5)
    x[:, :, 2:4, 4:8, 8:12] += 1
    changed = (embed(x) != y).any(-1)[0]
    assert changed.nonzero().tolist() == [[1, 1, 2]]


def test_stochastic_depth_drops_whole_samples_without_rescaling_the_rest():
    torch.manual_seed(0)
    path, x = StochasticDepth(0.3).train(), torch.randn(1000, 2, 3)
    y = path(x)
    dropped = (y == 0).all(-1).all(-1)
    assert torch.allclose(y[~dropped], x[~dropped], rtol=1e-6)
    assert abs(dropped.float().mean() - 0.3) < 0.05
    assert torch.equal(path.eval()(x), x)
    assert torch.equal(StochasticDepth(0.).train()(x), x)


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
