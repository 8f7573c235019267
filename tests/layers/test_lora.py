# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
import torch
from torch import nn

from mmvidattn.layers import add_lora, merge_lora


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
