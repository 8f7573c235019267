# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from torch import nn

from mmvidattn.layers import TubeletEmbed
from mmvidattn.layers.tubelet_embed import inflate_kernel


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


def test_rejects_unknown_inflation():
    with pytest.raises(ValueError, match="'central', 'average'.*got 'x'"):
        inflate_kernel(torch.zeros(1, 1, 1, 1), 2, 'x')


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
    assert tokens.shape == (1, sampled, 1, 2, 1)
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
