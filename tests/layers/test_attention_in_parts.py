# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attentions to parts of a clip, and to pooled tokens."""
import pytest
import torch
import torch.nn.functional as F

from mmvidattn.layers import (
    FactorizedDotAttention,
    GlobalPyramid,
    GlobalPyramidAttention,
    LocalWindowAttention,
)

HEADS = 4
SIZE = torch.tensor([2, 3, 3])


def masked(module, x, seen, bias=0):
    """Attend to the tokens that ``seen`` [G, N, N] allows."""
    q, k, v = (y.flatten(1, 3).unflatten(-1, (HEADS, -1)).transpose(1, 2)
               for y in module.qkv(x).chunk(3, -1))
    scores = q @ k.mT / q.shape[-1]**.5 + bias
    y = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v
    return module.proj(y.transpose(1, 2).flatten(2)).view(x.shape)


def factorized(module, x, place):
    """The first half of the heads attends in time, the second in space."""
    same = place[:, None] == place
    in_time, in_space = same[..., 1:].all(-1), same[..., 0]
    return masked(module, x, torch.stack([in_time] * 2 + [in_space] * 2))


def windows(module, x, place):
    window = place // SIZE
    seen = (window[:, None] == window).all(-1).expand(HEADS, -1, -1)
    if module.relative_bias is None:
        return masked(module, x, seen)
    # Distances in other windows lack a bias, and are masked.
    apart = place[:, None] - place + SIZE - 1
    apart = apart.clamp(min=0).minimum(2 * SIZE - 2)
    bias = module.relative_bias[apart.unbind(-1)].permute(2, 0, 1)
    return masked(module, x, seen, bias)


CASES = [(FactorizedDotAttention, {}, factorized, grid)
         for grid in ((3, 2, 5), (1, 3, 3), (4, 1, 1))]
CASES += [(LocalWindowAttention, dict(window_size=SIZE.tolist(),
                                      with_relative_bias=bias), windows, grid)
          for grid, bias in (((2, 3, 3), True), ((4, 3, 3), True), (
              (3, 4, 4), True), ((3, 4, 4), False), ((1, 2, 2), True))]


@pytest.mark.parametrize('cls, options, reference, grid', CASES)
def test_equals_masked_attention(cls, options, reference, grid):
    torch.manual_seed(0)
    module = cls(12, HEADS, **options).double()
    if getattr(module, 'relative_bias', None) is not None:
        torch.nn.init.normal_(module.relative_bias)
    x = torch.randn(2, *grid, 12, dtype=torch.float64)
    got = module(x)
    want = reference(module, x, torch.cartesian_prod(*map(
        torch.arange, grid)))
    assert (got - want).norm() < 1e-12 * want.norm()
    parameters, weight = list(module.parameters()), torch.randn_like(got)
    for a, b in zip(torch.autograd.grad((got * weight).sum(), parameters),
                    torch.autograd.grad((want * weight).sum(), parameters)):
        # The biases of keys have no effect; their gradients are near zero.
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('option', ['attn_drop_rate', 'drop_rate'])
def test_dropout_acts_in_training_only(option):
    x = torch.randn(1, 3, 2, 2, 12)
    attn = FactorizedDotAttention(12, HEADS, **{option: 0.5})
    assert not torch.equal(attn(x), attn(x))
    attn.eval()
    assert torch.equal(attn(x), attn(x))


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


def test_without_levels_the_tokens_are_the_priors():
    x = torch.randn(1, 2, 3, 4, 8)
    assert torch.equal(GlobalPyramid(8, ())(x), x.flatten(1, 3))
