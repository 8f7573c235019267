# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F

from mmvidattn.layers import GlobalPyramid, GlobalPyramidAttention

KERNELS = ((2, 2, 3), (3, 7, 14))


def _convolve(x, conv, groups, kernel=None):
    """Convolve [B, C, T, H, W]; a given kernel pads incomplete blocks."""
    keep_rest, kernel = kernel is not None, kernel or conv.weight.shape[2:]
    pad = [-n % k if keep_rest else max(k - n, 0)
           for k, n in zip(kernel, x.shape[2:])]
    return F.conv3d(F.pad(x, (0, pad[2], 0, pad[1], 0, pad[0])), conv.weight,
                    conv.bias, kernel, groups=groups)


def _level_by_hand(level, x, kernel, coarse, pooling):
    """Reduce [B, C, T, H, W] to [B, S, C] with torch's convolutions."""
    groups = 1 if pooling == 'conv' else x.shape[1]
    if pooling == 'avg':
        kernel = tuple(map(min, kernel, x.shape[2:]))
        y = F.avg_pool3d(x, kernel, ceil_mode=True, count_include_pad=False)
    elif pooling == 'factorized':
        x = _convolve(x, level[0], groups, (1, *kernel[1:]))
        y = _convolve(x, level[1], groups, (kernel[0], 1, 1))
    elif coarse:
        norm = level.norm
        x = F.batch_norm(
            _convolve(x, level.conv1, groups), norm.running_mean,
            norm.running_var, norm.weight, norm.bias)
        y = _convolve(F.relu(x), level.conv2, groups)
    else:
        y = _convolve(x, level, groups, kernel)
    return y.flatten(2).transpose(1, 2)


@pytest.mark.parametrize('pooling', ['dwconv', 'factorized', 'conv', 'avg'])
@pytest.mark.parametrize('grid', [(6, 14, 28), (5, 15, 29), (1, 3, 4)],
                         ids=lambda grid: 'x'.join(map(str, grid)))
def test_matches_torch_convolutions_and_attention(grid, pooling):
    torch.manual_seed(0)
    module = GlobalPyramidAttention(8, 2, KERNELS, pooling).double().eval()
    for name, p in module.named_parameters():
        torch.nn.init.normal_(p, std=.3)
    for name, buffer in module.named_buffers():
        if 'running' in name:
            buffer.uniform_(0.5, 2)
    x = torch.randn(2, *grid, 8, dtype=torch.float64)
    volume = x.movedim(-1, 1)
    priors = torch.cat([
        _level_by_hand(level, volume, kernel, i == 1, pooling)
        for i, (level, kernel) in enumerate(
            zip(module.pyramid.levels, KERNELS))], 1)
    if pooling != 'factorized':
        norm = module.pyramid.norm
        priors = F.layer_norm(priors, (8, ), norm.weight, norm.bias)
    k, v = module.kv(priors).chunk(2, -1)
    q = module.q(x.flatten(1, 3))
    heads = []
    for part in (slice(0, 4), slice(4, 8)):
        scores = q[..., part] @ k[..., part].mT / 2
        heads.append(scores.softmax(-1) @ v[..., part])
    want = module.proj(torch.cat(heads, -1)).view(x.shape)
    assert (module(x) - want).norm() < 1e-12 * want.norm()


def test_number_of_priors():
    pyramid = GlobalPyramid(4, KERNELS).eval()
    assert len(pyramid(torch.randn(1, 6, 14, 28, 4))[0]) == (
        3 * 7 * 10 + 2 * 2 * 2)
    # Incomplete fine blocks are padded, incomplete coarse blocks skipped.
    assert len(pyramid(torch.randn(1, 7, 15, 29, 4))[0]) == (
        4 * 8 * 10 + 2 * 2 * 2)


def test_without_levels_the_tokens_are_the_priors():
    x = torch.randn(1, 2, 3, 4, 8)
    assert torch.equal(GlobalPyramid(8, ())(x), x.flatten(1, 3))
