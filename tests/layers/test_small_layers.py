# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Embeddings, stochastic depth, decay, packed weights and LoRA."""
import copy
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
    add_lora,
    merge_lora,
)
from mmvidattn.layers.packed_linear import PackedLinear, pack_linears


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
    assert add_lora(model, rank=2, alpha=6) == ['qkv', 'proj']
    for layer in model.qkv, model.proj:
        nn.init.normal_(layer.lora_up)
    return model


def test_initial_update_is_zero():
    model = Attention()
    x = torch.randn(3, 4, 5)
    before = model(x)
    add_lora(model, rank=2)
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
    assert merge_lora(adapted) == ['qkv', 'proj']
    assert adapted.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(adapted(x), with_update)
    assert merge_lora(adapted) == []
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
