# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative

from mmvidattn.online import TeSTra
from mmvidattn.online import block as online_block
from mmvidattn.online.block import OnlineBlock, causal_bias
from mmvidattn.online.feature_inputs import sinusoidal_positions
from mmvidattn.ops.unprojected_attention import unprojected_attention


def test_matches_a_reference_of_torch_layers(pair, windows):
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
    grads = [
        torch.autograd.grad(
            sum(y.square().sum() for y in out.values()), features)
        for out in (got, want)
    ]
    for a, b in zip(*grads):
        assert relative(a, b) < 1e-7


def test_scores_are_causal(pair, windows):
    """A step depends on all steps up to it."""
    _, model = pair
    inputs = windows(model, batch=1, padded=0)
    inputs['rgb'].requires_grad_()
    y = model(inputs)['action'][0]
    N, L = (model.backbone.long_memory_length,
            model.backbone.work_memory_length)
    # This fusion compresses the entire work memory: the paper's Table 6b.
    free = L if model.backbone.fusion == 'long' else 0
    for step in range(len(y)):
        grad, = torch.autograd.grad(
            y[step].square().sum(), inputs['rgb'], retain_graph=True)
        reached = grad[0].abs().amax(dim=-1) > 0
        want = [t <= N + max(step, free) for t in range(N + L)]
        assert reached.tolist() == want


def test_dropout_differs_within_a_batch(detector, windows):
    """A batch shares the queries' self-attention only during inference."""
    model = detector(drop_rate=0.5).train()
    inputs = windows(model, batch=1, padded=0, dtype=torch.float32)
    twice = {name: x.expand(2, *x.shape[1:]) for name, x in inputs.items()}
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
        for attention in (block.self_attn, block.memory_attn):
            packed = torch.cat([attention.q.weight, attention.kv.weight])
            assert packed.shape == want.in_proj_weight.shape
            for a, b in ((packed, want.in_proj_weight),
                         (attention.proj.weight, want.out_proj.weight)):
                assert abs(a.std() / b.std() - 1) < 0.05
                assert a.abs().max() <= b.abs().max() * 1.01
            for layer in (attention.q, attention.kv, attention.proj):
                assert not layer.bias.any()
    assert abs(torch.cat(list(model.encoder.queries)).std() - 1) < 0.1


def test_positions_are_sines_and_cosines():
    table = sinusoidal_positions(5, 6)
    for t in range(5):
        for c in range(6):
            angle = torch.tensor(t / 10000**(c // 2 * 2 / 6))
            want = angle.cos() if c % 2 else angle.sin()
            assert (table[t, c] - want).abs() < 1e-6
    with pytest.raises(ValueError, match='embed_dims must be even, got 5'):
        sinusoidal_positions(3, 5)


def test_causal_bias_hides_the_future_and_padding():
    assert causal_bias(3).exp().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    padded = causal_bias(3, num_padded=torch.tensor([0, 2]))
    assert padded.exp()[:, 0].tolist() == [
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]]


@pytest.mark.parametrize('kwargs, message', [
    (dict(num_heads=5), 'num_heads must divide embed_dims, got 5 and 16'),
    (dict(embed_dims=15, num_heads=3), 'embed_dims must be even, got 15'),
    (dict(encoder=[]), 'encoder must be a list of dict'),
    (dict(encoder=[dict(num_queries=2)]), 'encoder must be a list of dict'),
    (dict(encoder=[dict(num_queries=None, num_layers=1)]),
     "first stage.*num_queries': None"),
])
def test_rejects_options(kwargs, message):
    options = dict(embed_dims=16, num_heads=2, ffn_dims=8)
    with pytest.raises(ValueError, match=message):
        TeSTra(dict(rgb=4), **{**options, **kwargs})


@pytest.mark.parametrize('change, message', [
    (lambda x: x.pop('flow'), r"inputs\['flow'\] must be .*got nothing"),
    (lambda x: x.update(rgb=x['rgb'][..., :9]),
     r"inputs\['rgb'\] must be \[B, T, 10\] .*17 <= T.* got \(3, 17, 9\)"),
    (lambda x: x.update(rgb=x['rgb'][:, 1:]), r'got \(3, 16, 10\)'),
    (lambda x: x.update(flow=x['flow'][:2]), r'got \(2, 17, 6\)'),
    (lambda x: x.update(padding_mask=x['padding_mask'].float()),
     r"inputs\['padding_mask'\] must be bool"),
    (lambda x: x.update(padding_mask=x['padding_mask'][:, 1:]),
     r'\[B, N\] = \(3, 12\), got torch.bool \(3, 11\)'),
], ids=['missing', 'channels', 'length', 'batch', 'float-mask', 'mask'])
def test_rejects_inputs(detector, windows, change, message):
    model = detector()
    inputs = windows(model, dtype=torch.float32)
    change(inputs)
    with pytest.raises(ValueError, match=message):
        model(inputs)


@pytest.mark.parametrize('name', ['anticipation', 'no-fuse', 'deep-gelu'])
@torch.no_grad()
def test_computing_last_outputs_gives_the_same_features(detector, monkeypatch,
                                                    name):
    """Few queries attend to tokens without projecting keys and values."""
    backbone, called = detector(name).double().eval().backbone, []

    def spy(*args):
        called.append(args)
        return unprojected_attention(*args)

    monkeypatch.setattr(online_block, 'unprojected_attention', spy)
    gen = torch.Generator().manual_seed(0)
    C, L = backbone.embed_dims, 9
    x, memory = (torch.randn(3, n, C, generator=gen, dtype=torch.float64)
                 for n in (L, 8))
    padded = torch.tensor([0, 2, 6])
    want = backbone.decoder(
        backbone.decoder.project(x), memory, num_padded=padded)
    assert not called
    monkeypatch.setattr(online_block, 'MANY_TOKENS', 0)
    got = backbone.decoder(
        backbone.decoder.project(x), memory, num_padded=padded, num_outputs=2)
    assert len(called) == 2
    assert relative(got, want[:, -2:]) < 1e-12


@pytest.mark.parametrize('branch', ['self', 'memory', 'ffn'])
def test_drops_each_branch_in_training(branch):
    """With a dropout rate of 1, only the residual of the branch is left."""
    torch.manual_seed(0)
    block = OnlineBlock(8, 2, 16, drop_rate=1.).train()
    x, y = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    if branch == 'self':
        got, expected = block.add_attended(x, y)[0], block.self_norm(x)
    elif branch == 'memory':
        got = block(x, y)
        expected = block.ffn_norm(block.memory_norm(x))
    else:
        # A bias of the last layer, so that dropped activations do not hide a
        # missing dropout of the branch.
        torch.nn.init.normal_(block.ffn[-1].bias)
        got, expected = block(x), block.ffn_norm(x)
    torch.testing.assert_close(got, expected)
