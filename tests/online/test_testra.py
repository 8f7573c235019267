# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from unittest.mock import Mock

import pytest
import torch
from helpers import relative
from online.networks import video_of, windows_of

from mmvidattn.online import TeSTra, dense_features
from mmvidattn.online import block as online_block
from mmvidattn.online.block import OnlineBlock
from mmvidattn.ops.unprojected_attention import unprojected_attention


def windows(model, num=3, dtype=torch.float64):
    """Make random windows, the first one with 4 padded samples."""
    N = model.backbone.long_memory_length
    videos = [video_of(model, N + model.backbone.work_memory_length, dtype, i)
              for i in range(num)]
    mask = torch.zeros(num, N, dtype=torch.bool)
    mask[0, :4] = True
    return {'padding_mask': mask, **{
        name: torch.stack([video[name] for video in videos])
        for name in videos[0]}}


def test_matches_a_reference_of_torch_layers(pair):
    reference, ours = pair
    inputs = windows(ours)
    features = inputs['rgb'], inputs['flow']
    for x in features:
        x.requires_grad_()
    mask = inputs['padding_mask'] if reference.long else None
    want = reference(*features, mask)
    got = ours(inputs)
    assert got.keys() == want.keys()
    for name in want:
        assert got[name].shape == want[name].shape
        assert relative(got[name], want[name]) < 1e-7
    for a, b in zip(*(torch.autograd.grad(
            sum(y.square().sum() for y in out.values()), features)
            for out in (got, want))):
        assert relative(a, b) < 1e-7


def test_dense_features_match_a_reference_of_torch_layers(pair):
    """Each frame is projected once."""
    reference, model = pair
    backbone, video = model.backbone, video_of(model)
    N, L = backbone.long_memory_length, backbone.work_memory_length
    frames, mask, _ = windows_of(backbone, range(L - 1, 40), 2, 1, False)
    numbers = []
    for name in 'long_projection', 'work_projection':
        if hasattr(backbone, name):
            getattr(backbone, name).register_forward_hook(
                lambda module, args, out: numbers.append(len(out)))
    got = dense_features(backbone, video, frames[:, :N], frames[:, N:], mask,
                         batch_size=7)
    assert set(numbers) == {40} and len(numbers) <= 2
    # No graph of an entire video is kept for gradients.
    assert not got.requires_grad
    want = reference(video['rgb'][frames], video['flow'][frames],
                     mask if N else None)
    for name, y in model.cls_head(got).items():
        assert relative(y, want[name][:, L - 1:]) < 1e-7


def test_dropout_differs_within_a_batch(detector):
    """A batch shares the queries' self-attention only during inference."""
    model = detector(drop_rate=0.5).train()
    twice = {name: x[-1:].repeat(2, *[1] * (x.dim() - 1))
             for name, x in windows(model, dtype=torch.float32).items()}
    memories = []
    model.backbone.encoder.stages[0].register_forward_hook(
        lambda module, args, out: memories.append(out))
    model(twice)
    assert not torch.allclose(*memories[0])
    model.eval()(twice)
    assert torch.equal(*memories[1])


def test_initial_weights_match_torch():
    """Xavier for the packed projection, zero biases, normal queries."""
    torch.manual_seed(0)
    model = TeSTra(dict(rgb=8), embed_dims=64, num_heads=2, ffn_dims=32)
    want = torch.nn.MultiheadAttention(64, 2)
    for block in model.encoder.stages[0].blocks:
        for x in block.self_attn, block.memory_attn:
            packed = torch.cat([x.q.weight, x.kv.weight])
            for a, b in ((packed, want.in_proj_weight),
                         (x.proj.weight, want.out_proj.weight)):
                assert a.shape == b.shape
                assert abs(a.std() / b.std() - 1) < 0.05
                assert a.abs().max() <= b.abs().max() * 1.01
            assert not any(y.bias.any() for y in (x.q, x.kv, x.proj))
    assert abs(torch.cat(list(model.encoder.queries)).std() - 1) < 0.1


@pytest.mark.parametrize('name', ['anticipation', 'no-fuse', 'deep-gelu'])
@torch.no_grad()
def test_computing_last_outputs_gives_the_same_features(detector, monkeypatch,
                                                        name):
    """Few queries attend to tokens without projecting keys and values."""
    decoder = detector(name).double().eval().backbone.decoder
    spy = Mock(side_effect=unprojected_attention)
    monkeypatch.setattr(online_block, 'unprojected_attention', spy)
    gen = torch.Generator().manual_seed(0)
    x, memory = (torch.randn(3, n, 16, generator=gen, dtype=torch.float64)
                 for n in (9, 8))
    rows, padded = decoder.project(x), torch.tensor([0, 2, 6])
    want = decoder(rows, memory, num_padded=padded)
    assert not spy.called
    monkeypatch.setattr(online_block, 'MANY_TOKENS', 0)
    got = decoder(rows, memory, num_padded=padded, num_outputs=2)
    assert spy.call_count == 2
    assert relative(got, want[:, -2:]) < 1e-12


def test_drops_each_branch_in_training():
    """With a dropout rate of 1, only the residuals of branches are left."""
    torch.manual_seed(0)
    block = OnlineBlock(8, 2, 16, drop_rate=1.).train()
    # Otherwise dropped activations would hide a missing dropout.
    torch.nn.init.normal_(block.ffn[-1].bias)
    x, y = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    for got, expected in (
            (block.add_attended(x, y)[0], block.self_norm(x)),
            (block(x, y), block.ffn_norm(block.memory_norm(x))),
            (block(x), block.ffn_norm(x))):
        torch.testing.assert_close(got, expected)
