# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F

from mmvidattn.layers import PatchEmbed


@pytest.mark.parametrize('num_frames', [1, 2, 7])
@pytest.mark.parametrize('patch_frames', [3, 5])
@pytest.mark.parametrize('size, stride, padding', [(4, 4, 0), (5, 3, 2)])
def test_patches_of_several_frames_equal_a_convolution(
        num_frames, patch_frames, size, stride, padding):
    torch.manual_seed(0)
    embed = PatchEmbed(3, 8, patch_frames, size, stride, padding,
                       with_norm=False).double()
    x = torch.randn(2, 3, num_frames, 13, 12, dtype=torch.float64,
                    requires_grad=True)
    conv = embed.projection
    got, want = embed(x), F.conv3d(
        x, conv.weight, conv.bias, conv.stride,
        conv.padding).permute(0, 2, 3, 4, 1)
    assert got.shape[2:4] == embed.grid_of((13, 12))
    assert torch.allclose(got, want, atol=1e-12)
    weight = torch.randn_like(want)
    leaves = (x, *embed.parameters())
    for a, b in zip(*(torch.autograd.grad((y * weight).sum(), leaves)
                      for y in (got, want))):
        assert torch.allclose(a, b, atol=1e-12)
