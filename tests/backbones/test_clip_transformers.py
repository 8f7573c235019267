# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear video transformer, XViT and ViViT."""
import pytest
import torch
from backbones import families
from backbones.families import build, outputs_of, released
from helpers import relative

from mmvidattn.backbones import LinearVideoTransformer, ViViT

LVT = dict(type='LinearVideoTransformer', num_frames=8)
XVIT = dict(type='XViT', num_frames=8, img_size=64)
CROSS = dict(mode='cross', divisor=8)
LINEAR_FF_GOLDENS = {
    ('lvt', 'shared_eight_s1_div4'): LVT,
    ('lvt', 'shared_cross_s1_div4'): dict(LVT, spatial_shift=CROSS),
    ('lvt', 'nogate_noshift'): dict(
        LVT, fixation=None, temporal_shift=None, spatial_shift=None),
    ('lvt', 'softmax_nogate'): dict(
        LVT, fixation=None, attention=dict(type='SoftmaxAttention'),
        spatial_shift=CROSS),
    ('xvit', 'div4'): dict(XVIT, temporal_shift=dict(mode='tsm', divisor=4)),
    ('xvit', 'noshift'): dict(XVIT, temporal_shift=None),
}


@pytest.mark.parametrize('family, case', LINEAR_FF_GOLDENS)
def test_golden_linear_ff_and_xvit(golden, family, case):
    """Outputs of the released models with their converted weights."""
    G = golden(f'linear/golden_{family}.pt')
    g, sizes = G[case], dict(num_classes=7, hidden_dims=24)
    width, num_heads, source = 48, 3, 'xvit'
    head = dict(type='XViTHead', num_heads=3)
    if family == 'lvt':
        width, num_heads = (g['meta']['dims'][key]
                            for key in ('embed_dim', 'num_heads'))
        source, head = 'linear_ff', dict(type='LinearVideoTransformerHead')
    model = released(
        source, g['state_dict'],
        dict(LINEAR_FF_GOLDENS[family, case], embed_dims=width, num_layers=2,
             num_heads=num_heads), dict(head, in_channels=width, **sizes))
    logits, taps = outputs_of(model, G['_input'])
    assert relative(logits, g['output']) < 1e-5
    assert taps.keys() >= g['taps'].keys()
    for name, tap in g['taps'].items():
        assert relative(taps[name], tap) < 1e-5, name


def test_dropout_acts_twice_in_the_mlp():
    mlp, calls = build(LinearVideoTransformer, drop_rate=0.5).blocks[0].mlp, []
    mlp.dropout.register_forward_hook(lambda *args: calls.append(1))
    mlp(torch.randn(1, 4, 3, 3, 32))
    assert len(calls) == 2 and mlp.dropout.p == 0.5


TINY = families.TINY[ViViT]


def _build(**kwargs):
    torch.manual_seed(0)
    model = ViViT(**{**TINY, **kwargs})
    model.init_weights()
    return model


def test_space_time_order_attends_in_space_first():
    model = _build(model='fact_attention', order='space_time',
                   zero_init_temporal=False).eval()
    block = model.encoder.blocks[0]
    assert block.temporal_attn.proj.weight.std() > 0.01
    x = torch.randn(1, 4, 2, 3, 32)
    want = x + block.attn(block.attn_norm(x))
    want = want + block.temporal_attn(block.temporal_attn_norm(want))
    want = want + block.mlp(block.mlp_norm(want))
    assert torch.allclose(block(x), want, atol=1e-5)
    # By default, temporal attention starts as identity.
    block = _build(model='fact_attention').encoder.blocks[0]
    assert not block.temporal_attn(x).any()


@pytest.mark.parametrize('scale', [False, True])
def test_stochastic_depth_rises_linearly_in_each_encoder(scale):
    model = _build(model='fact_encoder', num_layers=3, drop_path_rate=0.2,
                   drop_path_scale=scale).train()
    for encoder, rates in ((model.encoder, [0, .1, .2]),
                           (model.encoder.temporal, [0, .2 / 3, .4 / 3, .2])):
        paths = [block.drop_path for block in encoder.blocks]
        assert [path.drop_prob for path in paths] == pytest.approx(rates)
    kept = set(paths[-1](torch.ones(64)).tolist())
    assert sorted(kept) == pytest.approx([0, 1.25 if scale else 1])


def test_flat_tables_are_reshaped_unless_ambiguous():
    model = _build(model='joint')
    table = torch.randn(1, 24, 32)
    model.load_state_dict({'encoder.pos_embed': table}, strict=False)
    assert torch.equal(model.encoder.pos_embed, table.view(1, 4, 2, 3, 32))
    with pytest.raises(ValueError, match='30 positions in one row.*4 x 2 x 3'):
        model.load_state_dict({'encoder.pos_embed': torch.randn(1, 30, 32)},
                              strict=False)
    model = _build(model='fact_encoder')
    table = torch.randn(1, 16, 32)
    model.load_state_dict(
        {'encoder.pos_embed': table, 'encoder.temporal.pos_embed': table},
        strict=False)
    assert model.encoder.pos_embed.isfinite().all()
    assert model.encoder.temporal.pos_embed.shape == (1, 4, 1, 1, 32)


@pytest.mark.parametrize('patch_init, shares', [
    ('central', [0, 0, 1, 0]), ('average', 4 * [.25])])
def test_image_kernels_are_inflated(patch_init, shares):
    """Initial kernels have the same shares."""
    model = _build(patch_init=patch_init, tubelet_frames=4)
    kernel = model.patch_embed.projection.weight
    center = kernel[:, :, 2].clone()
    assert center.std() > 0
    for t, share in enumerate(shares):
        assert torch.equal(kernel[:, :, t], share / shares[2] * center)
    patch = torch.randn(32, 3, 16, 16)
    model.load_state_dict({'patch_embed.projection.weight': patch},
                          strict=False)
    for t, share in enumerate(shares):
        assert torch.allclose(kernel[:, :, t], share * patch)
    kernel = _build(patch_init='random').patch_embed.projection.weight
    assert kernel[:, :, 0].std() > 0 and kernel[:, :, 0].ne(
        kernel[:, :, 1]).any()


GOLDENS = dict(
    model1_token=dict(model='joint'),
    model2_token=dict(model='fact_encoder', num_temporal_layers=2),
    model3_time_space=dict(model='fact_attention'),
    model4=dict(model='fact_dot'),
    model1_token_uniform_sampling=dict(tubelet_frames=1, sampled_frames=3))


@pytest.mark.parametrize('case', GOLDENS)
def test_golden_released_model(golden, case):
    """Outputs of the released models with their converted weights."""
    G = golden('vivit/golden_scenic_vivit.pt')
    model = released(
        'vivit_scenic', G[case]['param'],
        dict(type='ViViT', num_frames=4, img_size=24, patch_size=8,
             embed_dims=32, num_layers=2, num_heads=4, mlp_ratio=2,
             **GOLDENS[case]),
        dict(type='ViViTHead', num_classes=5, in_channels=32))
    clips = G['input_NTHWC'].permute(0, 4, 1, 2, 3)
    assert relative(outputs_of(model, clips)[0], G[case]['logits']) < 1e-5


def test_golden_hugging_face_model(golden):
    g = golden('vivit/golden_hf_vivit.pt')
    model = released(
        'vivit_hf', g['state_dict'],
        dict(type='ViViT', num_frames=6, img_size=32, patch_size=8,
             embed_dims=48, num_layers=3, num_heads=4, mlp_ratio=2),
        dict(type='ViViTHead', num_classes=7, in_channels=48))
    seen = []
    model.backbone.encoder.blocks[0].register_forward_pre_hook(
        lambda module, args: seen.append(args[0]))
    clips = g['input'].transpose(1, 2)
    assert relative(outputs_of(model, clips)[0], g['logits']) < 1e-5
    assert relative(seen[0].squeeze(1, 3), g['embeddings']) < 1e-5
