# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attentions within parts of a clip, embeddings, packed weights and LoRA."""
import copy
import math

import pytest
import torch
import torch.nn.functional as F
from helpers import with_gradients
from torch import nn

from mmvidattn import layers
from mmvidattn.layers.packed_linear import PackedLinear, pack_linears

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


CASES = [(layers.FactorizedDotAttention, {}, factorized, grid)
         for grid in ((3, 2, 5), (1, 3, 3), (4, 1, 1))]
CASES += [(layers.LocalWindowAttention, dict(
              window_size=SIZE.tolist(), with_relative_bias=bias), windows,
           grid) for grid, bias in (((2, 3, 3), True), ((4, 3, 3), True), (
              (3, 4, 4), True), ((3, 4, 4), False), ((1, 2, 2), True))]


@pytest.mark.parametrize('cls, options, reference, grid', CASES)
def test_equals_masked_attention(cls, options, reference, grid):
    torch.manual_seed(0)
    module = cls(12, HEADS, **options).double()
    if getattr(module, 'relative_bias', None) is not None:
        torch.nn.init.normal_(module.relative_bias)
    x = torch.randn(2, *grid, 12, dtype=torch.float64)
    got = module(x)
    want = reference(module, x, torch.cartesian_prod(*map(torch.arange, grid)))
    assert (got - want).norm() < 1e-12 * want.norm()
    parameters, weight = list(module.parameters()), torch.randn_like(got)
    for a, b in zip(torch.autograd.grad((got * weight).sum(), parameters),
                    torch.autograd.grad((want * weight).sum(), parameters)):
        # The biases of keys have no effect; their gradients are near zero.
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('option', ['attn_drop_rate', 'drop_rate'])
def test_dropout_acts_in_training_only(option):
    x = torch.randn(1, 3, 2, 2, 12)
    attn = layers.FactorizedDotAttention(12, HEADS, **{option: 0.5})
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
    module = layers.GlobalPyramidAttention(8, 2, KERNELS, pooling).double()
    module.eval()
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
    assert torch.equal(layers.GlobalPyramid(8, ())(x), x.flatten(1, 3))


@pytest.mark.parametrize('num_frames, patch_frames', [(1, 3), (2, 5), (7, 3)])
@pytest.mark.parametrize('size, stride, padding', [(4, 4, 0), (5, 3, 2)])
def test_patches_of_several_frames_equal_a_convolution(
        num_frames, patch_frames, size, stride, padding):
    torch.manual_seed(0)
    embed = layers.PatchEmbed(3, 8, patch_frames, size, stride, padding,
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
    embed = layers.TubeletEmbed(1, 1, 1, 2, sampled)
    nn.init.constant_(embed.projection.weight, 0.25)
    nn.init.zeros_(embed.projection.bias)
    frames = torch.arange(float(num_frames)).view(1, 1, -1, 1, 1)
    tokens = embed(frames.expand(-1, -1, -1, 2, 4))
    assert tokens[0, :, 0, 0, 0].tolist() == want
    assert embed.grid_of(num_frames, (2, 4)) == (sampled, 1, 2)


def test_token_depends_on_its_tubelet_only():
    embed = layers.TubeletEmbed(3, 5, 2, 4)
    x = torch.randn(1, 3, 6, 8, 12)
    y = embed(x)
    assert y.shape == (1, *embed.grid_of(6, (8, 12)), 5) == (1, 3, 2, 3, 5)
    x[:, :, 2:4, 4:8, 8:12] += 1
    changed = (embed(x) != y).any(-1)[0]
    assert changed.nonzero().tolist() == [[1, 1, 2]]


@pytest.mark.parametrize('more', [{}, dict(pattern='window', window_frames=1)])
def test_names_an_attention_that_returns_another_shape(more):
    layer = layers.VideoSelfAttention(8, 2, dict(type='SoftmaxAttention'),
                                      (2, 3, 3), **more)
    layer.attention.forward = lambda q, k, v: q.mean(-1)
    with pytest.raises(ValueError, match='SoftmaxAttention.forward .*G, D'):
        layer.eval()(torch.randn(1, 2, 3, 3, 8))


def test_stochastic_depth_drops_whole_samples_without_rescaling_the_rest():
    torch.manual_seed(0)
    path, x = layers.StochasticDepth(0.3).train(), torch.randn(1000, 2, 3)
    y = path(x)
    dropped = (y == 0).all(-1).all(-1)
    assert torch.allclose(y[~dropped], x[~dropped], rtol=1e-6)
    assert abs(dropped.float().mean() - 0.3) < 0.05
    assert torch.equal(path.eval()(x), x)
    assert torch.equal(layers.StochasticDepth(0.).train()(x), x)


def test_decay_halves_the_weight_of_a_frame_after_its_half_life():
    decay = layers.FrameDecay(5, half_life=(3, 48))
    weights = (-decay() * torch.tensor([3, 6, 12, 24, 48])).exp()
    assert torch.allclose(weights, torch.full((5, ), .5))
    assert (math.log(2) / layers.FrameDecay(3)()).tolist() == pytest.approx(
        [8, 64, 512])
    with torch.no_grad():
        decay.log_factor += math.log(2)
    assert torch.allclose((-decay() * 3).exp()[0], torch.tensor(.25))


def _model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(256, 512), nn.Sequential(nn.ReLU(), nn.Linear(512, 256)),
        nn.Linear(256, 4), nn.Linear(256, 256, dtype=torch.float64)).eval()


def _forward(model, x):
    hidden = model[1](model[0](x))
    return torch.cat([model[2](hidden), model[3](hidden.double())], dim=-1)


@torch.no_grad()
def test_equals_the_plain_layers_for_any_number_of_rows():
    model = _model()
    packed = pack_linears(model)
    assert [type(x) for x in packed.modules() if isinstance(x, nn.Linear)
            ] == [PackedLinear, PackedLinear, nn.Linear, nn.Linear]
    assert type(model[0]) is nn.Linear
    for shape in (256, ), (1, 256), (2, 3, 256), (100, 256):
        x = torch.randn(shape)
        for other in packed, copy.deepcopy(packed):
            torch.testing.assert_close(
                _forward(other, x), _forward(model, x), rtol=1e-5, atol=1e-5)


def test_uses_the_plain_weight_where_the_packed_one_does_not_fit():
    model, x = _model(), torch.randn(3, 256, requires_grad=True)
    packed = pack_linears(model)
    packed[0](x).sum().backward()
    torch.testing.assert_close(
        x.grad, model[0].weight.sum(dim=0).expand(3, 256))
    with torch.no_grad():
        with torch.autocast('cpu', dtype=torch.bfloat16):
            assert packed[0](x).dtype == torch.bfloat16
        compiled = torch.compile(packed[0], backend='eager', fullgraph=True)
        torch.testing.assert_close(compiled(x), model[0](x))
    assert packed.state_dict().keys() == model.state_dict().keys()
    assert packed[0].weight is model[0].weight


class Attention(nn.Module):

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(5, 15)
        self.proj = nn.Linear(5, 5, bias=False)
        self.fc = nn.Linear(5, 5)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.fc(self.proj(q * k + v))


@pytest.fixture
def adapted():
    """Network with nonzero updates, in float64."""
    torch.manual_seed(0)
    model = Attention().double()
    assert layers.add_lora(model, rank=2, alpha=6) == ['qkv', 'proj']
    for layer in model.qkv, model.proj:
        nn.init.normal_(layer.lora_up)
    return model


def test_initial_update_is_zero():
    model = Attention()
    x = torch.randn(3, 4, 5)
    before = model(x)
    layers.add_lora(model, rank=2)
    assert torch.equal(model(x), before)


def test_matches_the_formula_of_the_paper_and_learns(adapted):
    x = torch.randn(3, 5, dtype=torch.double)
    layer = adapted.qkv
    # W0 x + alpha / r B A x, Sec. 4.1.
    naive = torch.stack([
        layer.weight @ row + layer.bias
        + 6 / 2 * (layer.lora_up @ (layer.lora_down @ row)) for row in x])
    torch.testing.assert_close(layer(x), naive)
    adapted(x).sum().backward()
    for layer in adapted.qkv, adapted.proj:
        assert layer.lora_down.grad.any() and layer.lora_up.grad.any()


def test_merging_keeps_the_output(adapted):
    x = torch.randn(3, 5, dtype=torch.double)
    with_update, plain = adapted(x), Attention().double()
    assert layers.merge_lora(adapted) == ['qkv', 'proj']
    assert adapted.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(adapted(x), with_update)
    assert layers.merge_lora(adapted) == []
    plain.load_state_dict(adapted.state_dict())
    assert torch.equal(plain(x), adapted(x))


def test_checkpoints_without_and_with_lora_load(adapted):
    plain = Attention().double()
    adapted.load_state_dict(plain.state_dict())
    x = torch.randn(3, 5, dtype=torch.double)
    assert torch.equal(adapted(x), plain(x))
    other = copy.deepcopy(adapted)
    nn.init.normal_(adapted.qkv.lora_up)
    other.load_state_dict(adapted.state_dict())
    assert torch.equal(adapted(x), other(x))
