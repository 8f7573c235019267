# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from torch import nn

from mmvidattn.heads import XViTHead


def _head(**kwargs):
    torch.manual_seed(0)
    head = XViTHead(5, 8, num_heads=2, hidden_dims=6, **kwargs)
    head.init_weights()
    return head.eval()


def _layer_norm(x, norm):
    x = (x - x.mean(-1, keepdim=True)) / (
        x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    return x * norm.weight + norm.bias


def _gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


def _naive(head, frames):
    """Frames [T, 8] of a clip to its logits."""
    block = head.block
    x = torch.cat([head.cls_token[0], frames])
    q, k, v = (_layer_norm(x, block.attn_norm) @ block.attn.qkv.weight.T
               ).unflatten(-1, (3, 2, 4)).unbind(1)
    scores = torch.einsum('ngd,mgd->gnm', q, k) / 2
    y = torch.einsum('gnm,mgd->ngd', scores.softmax(-1), v).flatten(1)
    x = x + y @ block.attn.proj.weight.T + block.attn.proj.bias
    y = _gelu(
        _layer_norm(x, block.mlp_norm) @ block.mlp.fc1.weight.T +
        block.mlp.fc1.bias)
    x = x + y @ block.mlp.fc2.weight.T + block.mlp.fc2.bias
    hidden = _gelu(
        _layer_norm(x[0], head.norm) @ head.fc_hidden.weight.T +
        head.fc_hidden.bias)
    return hidden @ head.fc_cls.weight.T + head.fc_cls.bias


@pytest.mark.parametrize('num_frames', [1, 5, 16])
def test_matches_naive_transformer(num_frames):
    head = _head().double()
    for p in head.parameters():
        nn.init.normal_(p, std=0.5)
    x = torch.randn(3, 8, num_frames, dtype=torch.float64)
    with torch.no_grad():
        expected = torch.stack([_naive(head, clip.T) for clip in x])
        assert (head(x) - expected).norm() < 1e-12 * expected.norm()


def test_dropout_of_frames_and_hidden_layer():
    head, shapes = _head(), []
    head.dropout.register_forward_hook(
        lambda m, args, out: shapes.append(out.shape))
    x = torch.randn(2, 8, 3)
    assert torch.equal(head(x), head(x))
    head.train()
    assert not torch.equal(head(x), head(x))
    assert shapes == 4 * [(2, 3, 8), (2, 6)] and head.dropout.p == 0.5
