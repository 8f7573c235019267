# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs of MiniROAD and the causal transformer, narrow."""
import copy

import pytest
import torch
from mmaction.registry import DATA_SAMPLERS, DATASETS, METRICS, MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper

from mmvidattn.apis import list_models, load_config

STEPS = 60
NAMES = [name for name in list_models()
         if name.startswith(('miniroad', 'causal_transformer', 'mat_'))]
FULL = [name for name in NAMES if 'tiny' not in name]


def of_videos(name):
    return 'ek100' not in name


@pytest.mark.parametrize('name', NAMES)
def test_trains_a_step_and_tests_a_step(name, narrow_online):
    cfg = narrow_online(name)
    torch.manual_seed(0)
    # As many steps as the videos have, or fewer.
    backbone, length = cfg.model.backbone, 32
    if not backbone.get('long_memory_length'):
        backbone.work_memory_length = length
        for split in 'train', 'val', 'test':
            cfg[f'{split}_dataloader'].dataset.work_steps = length
    model = MODELS.build(cfg.model)
    model.init_weights()
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    sampler = DATA_SAMPLERS.build(dict(cfg.train_dataloader.sampler,
                                       dataset=dataset))
    assert len(list(sampler)) == len(sampler) > 0
    before = copy.deepcopy(model.state_dict())
    # The last ones have a history.
    batch = pseudo_collate([dataset[len(dataset) - i] for i in (1, 2)])
    losses = model.train().train_step(batch, wrapper)
    assert losses['loss'].isfinite() and losses['loss'] > 0
    same = {k for k, v in model.state_dict().items()
            if torch.equal(v, before[k])}
    assert not {k for k in same if not k.endswith('kv.bias')}

    model.eval()
    head = cfg.model.cls_head
    for split in 'val', 'test':
        dataset = DATASETS.build(cfg[f'{split}_dataloader'].dataset)
        with torch.no_grad():
            result, = model.test_step(pseudo_collate([dataset[0]]))
        assert result.pred_action.shape[1] == head.num_classes
        assert result.pred_action.isfinite().all()
        if split == 'test' and of_videos(name):
            assert len(result.pred_action) == STEPS
    assert ('pred_verb' in result) == ('num_verbs' in head)


@pytest.mark.parametrize('name', [n for n in NAMES if of_videos(n)])
def test_a_stream_has_the_scores_of_the_video(name, narrow_online):
    cfg = narrow_online(name)
    cfg.merge_from_dict({'model.cls_head.score': 'logit'})
    torch.manual_seed(0)
    model = MODELS.build(cfg.model).eval()
    whole = DATASETS.build(cfg.test_dataloader.dataset)
    cfg.test_dataloader.dataset.windows = 'stream'
    stream = DATASETS.build(cfg.test_dataloader.dataset)
    with torch.no_grad():
        want, = model.test_step(pseudo_collate([whole[0]]))
        results = model.test_step(pseudo_collate([stream[0], stream[1]]))
    got = results[0]
    # A network that looks ahead within a window does so in a video's first.
    first = 31 if name.startswith('mat') else 0
    torch.testing.assert_close(
        got.pred_action[first:], want.pred_action[first:STEPS], rtol=0,
        atol=1e-5)
    metric = METRICS.build(cfg.test_evaluator)
    metric.dataset_meta = None
    metric.process(None, [result.to_dict() for result in results])
    found = metric.evaluate(2)
    assert list(found)[0].endswith('_stream_window')
    assert found['online/stream_state_bytes'] > 0


@pytest.mark.parametrize('name', NAMES)
def test_model_and_data_agree(name):
    cfg = load_config(name)
    backbone = cfg.model.backbone
    for split in 'train', 'val', 'test':
        data = cfg[f'{split}_dataloader'].dataset
        assert data.long_steps // data.get('long_rate', 1) == \
            backbone.get('long_memory_length', 0)
        assert data.work_steps // data.get('work_rate', 1) == \
            backbone.work_memory_length
        assert data.get('anticipation_steps', 0) // data.get(
            'anticipation_rate', 1) == backbone.get(
                'num_anticipation_tokens', 0)
        modalities = {k for k in data.data_prefix if not k.startswith('gt_')}
        assert modalities == set(backbone.in_channels)
        for modality, channels in backbone.in_channels.items():
            if 'feature_dims' in data:
                assert data.feature_dims[modality] == channels
    assert cfg.model.cls_head.in_channels == backbone.embed_dims
    if name in FULL:
        assert cfg.train_dataloader.batch_size == \
            cfg.auto_scale_lr.base_batch_size


@pytest.mark.parametrize('name, batch, flow, classes', [
    ('miniroad_thumos14', 16, 1024, 22), ('miniroad_tvseries', 64, 2048, 31)])
def test_miniroad_is_trained_as_released(name, batch, flow, classes):
    cfg = load_config(name)
    assert cfg.model.backbone.to_dict() == dict(
        type='MiniROAD', in_channels=dict(rgb=2048, flow=flow),
        embed_dims=1024, proj_dims=2048, num_layers=1,
        work_memory_length=128, drop_rate=0.2)
    assert cfg.model.cls_head.num_classes == classes
    assert cfg.model.cls_head.num_loss_steps == 1
    assert cfg.train_dataloader.batch_size == batch
    assert cfg.train_dataloader.sampler.stride == 4
    assert cfg.train_dataloader.dataset.pad_start
    assert cfg.optim_wrapper.optimizer.to_dict() == dict(
        type='AdamW', lr=1e-4, weight_decay=0.05)
    assert cfg.train_cfg.max_epochs == 10
    assert not cfg.get('param_scheduler')
    init = MODELS.build(cfg.model.cls_head.loss_cls)
    # Two classes at once count a root of a half each.
    logits, target = torch.randn(1, classes), torch.zeros(1, classes)
    target[0, [1, classes - 1]] = 1
    want = -logits.log_softmax(-1)[0, [1, classes - 1]].sum() / 2**0.5
    torch.testing.assert_close(init(logits, target), want)
