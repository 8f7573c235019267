# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Embeddings of patches and tubelets, and stochastic depth."""
import pytest
import torch
import torch.nn.functional as F
from helpers import with_gradients
from torch import nn

from mmvidattn.layers import PatchEmbed, StochasticDepth, TubeletEmbed
from mmvidattn.layers.tubelet_embed import inflate_kernel


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


@pytest.mark.parametrize('num_frames', [1, 2, 3, 4])
@pytest.mark.parametrize('mode', ['central', 'average'])
def test_inflated_kernel_sums_to_the_image_kernel(num_frames, mode):
    kernel = torch.randn(5, 3, 4, 4)
    out = inflate_kernel(kernel, num_frames, mode)
    assert out.shape == (5, 3, num_frames, 4, 4)
    assert torch.allclose(out.sum(2), kernel, atol=1e-6)
    used = [t for t in range(num_frames) if out[:, :, t].abs().max() > 0]
    assert used == ([num_frames // 2]
                    if mode == 'central' else list(range(num_frames)))


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
