# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import DATASETS, MODELS
from mmaction.structures import ActionDataSample
from mmengine.dataset import pseudo_collate
from safetensors.torch import save_file

import mmvidattn

BACKBONE = dict(
    type='LinearVideoTransformer', num_frames=2, img_size=32, embed_dims=24,
    num_layers=3, num_heads=2, drop_path_rate=0.5)
FACTORIZED = dict(
    type='ViViT', num_frames=4, img_size=32, embed_dims=24, num_layers=2,
    num_heads=2, model='fact_encoder', num_temporal_layers=1,
    drop_path_rate=0.5, drop_rate=0.5)
HEAD = dict(type='LinearVideoTransformerHead', num_classes=3, in_channels=24,
            hidden_dims=8)


def build(**options):
    kind = 'FineTunedRecognizer3D' if options else 'Recognizer3D'
    return MODELS.build(dict(
        dict(type=kind, backbone=BACKBONE, cls_head=HEAD), **options))


def trained(model):
    return {name for name, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize('freeze, number', [('backbone', 4), (0, 0), (2, 2)])
def test_freezes_first_layers_in_evaluation_mode(freeze, number):
    model = build(freeze=freeze).train()
    for name, parameter in model.named_parameters():
        kind, part, block = f'{name}.'.split('.')[:3]
        depth = {'blocks': block, 'norm': 3}.get(part, -1)
        assert parameter.requires_grad == (
            kind == 'cls_head' or int(depth) >= number), name
    assert [block.training for block in model.backbone.blocks] == [
        i >= number for i in range(3)]
    assert not model.backbone.patch_embed.training
    assert model.cls_head.training and model.cls_head.dropout.training
    if freeze == 'backbone':
        # With stochastic depth, two calls would differ.
        clips = torch.randn(1, 3, 2, 32, 32)
        assert torch.equal(model.backbone(clips), model.backbone(clips))


def test_pools_the_clips_of_a_video_only():
    head = dict(type='AttentiveHead', num_classes=3, in_channels=24,
                num_heads=2, num_layers=2)
    model = build(pool_clips=2, cls_head=head).eval()
    clips = torch.randn(2, 6, 3, 2, 32, 32)
    with torch.no_grad():
        features = model.backbone(clips.flatten(0, 1)).unflatten(0, (2, 6))
        want = torch.cat([
            model.cls_head(torch.cat([views[i], views[i + 1]], dim=1)[None])
            for views in features for i in (0, 2, 4)])
        got = model(clips, mode='tensor', stage='head')
        torch.testing.assert_close(got, want)
        # Batches of single clips are not mixed.
        torch.testing.assert_close(
            model(clips[:, :1].contiguous(), mode='tensor', stage='head'),
            model.cls_head(features[:, 0]))
    samples = [ActionDataSample().set_gt_label(1) for _ in clips]
    scores = torch.stack([sample.pred_score for sample in model(
        clips, samples, mode='predict')])
    torch.testing.assert_close(scores, want.view(2, 3, 3).mean(1))
    loss = model(clips[:, :2].contiguous(), samples, mode='loss')['loss_cls']
    assert loss.isfinite()
    with pytest.raises(ValueError, match='pool_clips=2 must divide .* got 3'):
        model(clips[:, :3].contiguous(), mode='tensor', stage='head')


def test_freezes_spatial_encoder(tmp_path):
    head = dict(type='ViViTHead', num_classes=3, in_channels=24)
    model = build(freeze='spatial', backbone=FACTORIZED, cls_head=head).train()
    names = {name for name, _ in model.named_parameters()}
    assert trained(model) == {
        name for name in names if name.startswith(
            ('cls_head.', 'backbone.encoder.temporal.'))} < names
    encoder = model.backbone.encoder
    assert not any(m.training for block in encoder.blocks
                   for m in block.modules())
    assert all(m.training for m in encoder.temporal.modules())
    clips = torch.randn(3, 1, 3, 4, 32, 32)
    features = model.frozen_features(clips)
    assert features.shape == (3, 1, 2, 24) and not features.requires_grad
    model.eval()
    expected = model.cls_head(model.backbone(clips[:, 0]))
    assert torch.equal(model(clips, stage='head'), expected)
    # Samples with features do not need the frozen layers.
    path = tmp_path / 'features.safetensors'
    save_file(dict(features=features, labels=torch.tensor([[2], [0], [1]])),
              path)
    data = DATASETS.build(dict(
        type='FrozenFeatureDataset', ann_file=str(path)))
    batch = pseudo_collate([data[i] for i in range(3)])
    assert [data.get_cat_ids(i) for i in range(3)] == [[2], [0], [1]]
    assert [int(x.gt_label) for x in batch['data_samples']] == [2, 0, 1]
    got = model(torch.stack(batch['inputs']).float(), batch['data_samples'],
                stage='head')
    torch.testing.assert_close(got, expected)
    assert not any('frozen_features' in x for x in batch['data_samples'])


@pytest.mark.parametrize('name, options', [
    *((name, dict(freeze=1)) for name in (
        'vivit_tiny_fact_encoder', 'laps_tiny', 'dualformer_tiny')),
    *((name, dict(lora=dict(rank=2))) for name in (
        'laps_tiny', 'dualformer_tiny'))])
def test_all_families_train(name, options):
    cfg = mmvidattn.apis.load_config(f'{name}_motion').model
    model = MODELS.build(dict(
        cfg, type='FineTunedRecognizer3D', **options)).train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    features = model.extract_feat(torch.randn(2, 1, 3, 8, 64, 64))[0]
    model.cls_head(features).square().sum().backward()
    optimizer.step()
    names = trained(model)
    changed = {key for key, value in model.state_dict().items()
               if not torch.equal(value, before[key])}
    # The running statistics of the frozen part do not change either.
    inside = {key for key in changed if key.startswith('backbone.')}
    assert changed - inside
    if 'lora' in options:
        assert inside and all('.lora_' in key for key in inside)
        assert model.backbone.training
    else:
        first = model.backbone.layer_groups()[:2]
        frozen = tuple(f'backbone.{part}.' for group in first
                       for part in group)
        assert not [key for key in changed | names
                    if f'{key}.'.startswith(frozen)]
        assert names


def test_get_model_merges_lora(tmp_path):
    model = build(lora=dict(rank=2)).eval()
    for name, parameter in model.named_parameters():
        if 'lora_up' in name:
            parameter.data.normal_()
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'lora.pth')
    (tmp_path / 'lora.py').write_text(f'''
model = dict(type='FineTunedRecognizer3D', lora=dict(rank=2),
             backbone={BACKBONE}, cls_head={HEAD})
''')
    merged = mmvidattn.get_model(tmp_path / 'lora.py', tmp_path / 'lora.pth')
    assert merged.state_dict().keys() == build().state_dict().keys()
    clips = torch.randn(2, 1, 3, 2, 32, 32)
    torch.testing.assert_close(
        merged(clips, mode='tensor', stage='head'),
        model(clips, mode='tensor', stage='head'), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('options, error', [
    (dict(freeze=4), 'freeze .* 3, .* LinearVideo.*got 4'),
    (dict(freeze='spatial'), 'a LinearVideoTransformer without'),
    (dict(freeze='spatial', backbone=dict(FACTORIZED, model='joint',
                                          num_temporal_layers=None)),
     'a spatial and a temporal encoder, .*got a ViViT'),
    (dict(freeze='spatial', backbone=dict(FACTORIZED, num_temporal_layers=0)),
     'num_temporal_layers from 1, got a ViViT'),
    (dict(freeze=-1), 'got -1'), (dict(freeze='head'), "got 'head'"),
    (dict(freeze=1, lora=dict(rank=1)), 'got freeze=1 as well'),
    # Features of layers that are trained.
    (dict(freeze=1), "'backbone'.* got freeze=1")], ids=str)
def test_rejects_wrong_options(options, error):
    with pytest.raises(ValueError, match=error):
        build(**options).frozen_features(torch.randn(1, 1, 3, 2, 32, 32))
