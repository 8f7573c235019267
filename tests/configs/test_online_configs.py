# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs of online detection, with narrow models on small features."""
import copy

import pytest
import torch
from config_cache import load_config
from mmaction.registry import DATA_SAMPLERS, DATASETS, METRICS, MODELS
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper

from mmvidattn.apis import list_models

FAMILIES = 'testra_*', 'lstr_*', 'mat_*', 'miniroad_*'
# Other tests run the tiny configs on their datasets.
NAMES = [name for family in FAMILIES
         for name in list_models(family, ablations=True)
         if 'tiny' not in name]
# One config for each code path.
PATHS = [
    'testra_thumos14', 'testra_anticipation_thumos14', 'testra_ek100',
    'lstr_refined_thumos14', 'lstr_no_long_memory_thumos14',
    'testra_table06b_long_memory', 'mat_ek100', 'miniroad_tvseries']
WINDOWS = 'miniroad'
STEPS = 60


def _data_set(name):
    return next((k for k in ('thumos14', 'tvseries') if k in name), 'ek100')


@pytest.mark.parametrize('name', PATHS)
def test_train_step_and_test_step(name, narrow_online):
    cfg = narrow_online(name)
    torch.manual_seed(0)
    if name.startswith(WINDOWS):
        # The windows must not be longer than the videos.
        cfg.model.backbone.work_memory_length = 32
        for split in 'train', 'val', 'test':
            cfg[f'{split}_dataloader'].dataset.work_steps = 32
    model = MODELS.build(cfg.model)
    model.init_weights()
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    sampler = DATA_SAMPLERS.build(dict(cfg.train_dataloader.sampler,
                                       dataset=dataset))
    assert len(list(sampler)) == len(sampler) > 0
    before = copy.deepcopy(model.state_dict())
    # The last samples have a history.
    batch = pseudo_collate([dataset[len(dataset) - i] for i in (1, 2)])
    losses = model.train().train_step(batch, wrapper)
    assert losses['loss'].isfinite() and losses['loss'] > 0
    same = {k for k, v in model.state_dict().items()
            if torch.equal(v, before[k])}
    # Softmax cancels the biases of keys, so their gradient is zero.
    assert not {k for k in same if not k.endswith('kv.bias')}

    head, backbone = cfg.model.cls_head, cfg.model.backbone
    ahead = backbone.get('num_anticipation_tokens', 0)
    of_videos = _data_set(name) != 'ek100'
    rows = dict(val=backbone.work_memory_length + ahead)
    rows['test'] = STEPS if of_videos else rows['val']
    if name.startswith(WINDOWS):
        rows['val'] = STEPS
    for split in 'val', 'test':
        sample = DATASETS.build(cfg[f'{split}_dataloader'].dataset)[0]
        with torch.no_grad():
            result, = model.eval().test_step(pseudo_collate([sample]))
        assert result.pred_action.shape == (rows[split], head.num_classes)
        assert result.pred_action.isfinite().all()
    assert ('pred_verb' in result) == ('num_verbs' in head)
    if name.startswith(('testra', 'lstr')):
        later = result.get('pred_anticipated_action')
        assert (later is None) == (ahead != 8)
        assert later is None or later.shape == (
            STEPS - 31, 8, head.num_classes)


@pytest.mark.parametrize('name, kernel', [
    ('testra_table04_laplace', 'smoothing'), ('testra_thumos14', 'window')])
def test_runs_as_a_stream(name, kernel, narrow_online):
    """Two options; the kernels are rows of the paper's Table 4."""
    cfg = narrow_online(name)
    cfg.merge_from_dict({'model.stream_kernel': kernel,
                         'test_dataloader.dataset.windows': 'stream'})
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    model = MODELS.build(cfg.model).eval()
    with torch.no_grad():
        results = model.test_step(pseudo_collate([dataset[0], dataset[1]]))
    metric = METRICS.build(dict(cfg.test_evaluator, subsets=None)
                           if 'table04' in name else cfg.test_evaluator)
    metric.dataset_meta = None
    metric.process(None, [result.to_dict() for result in results])
    got = metric.evaluate(2)
    kind = f'stream_{kernel}'
    first = f'action_top5_recall_testra_{kind}' if 'table04' in name else (
        f'mAP_{kind}')
    assert list(got)[0] == f'online/{first}'
    assert got['online/stream_state_bytes'] > 0


@pytest.mark.parametrize('name', NAMES)
def test_model_fits_the_dataset(name):
    cfg = load_config(name)
    backbone = cfg.model.backbone
    for split in 'train', 'val', 'test':
        data = cfg[f'{split}_dataloader'].dataset
        assert data.long_steps // data.long_rate == \
            backbone.get('long_memory_length', 0)
        assert data.work_steps // data.work_rate == \
            backbone.work_memory_length
        assert data.get('anticipation_steps', 0) // data.get(
            'anticipation_rate', 1) == backbone.get(
                'num_anticipation_tokens', 0)
        modalities = {k for k in data.data_prefix if not k.startswith('gt_')}
        assert modalities == set(backbone.in_channels)
        for modality, channels in backbone.in_channels.items():
            assert data.feature_dims[modality] == channels
        # Only LSTR and MAT stretch a short history over the memory.
        assert data.get('stretch_long_memory', False) == (
            'lstr' in name or name.startswith('mat_'))
    assert cfg.model.cls_head.in_channels == backbone.embed_dims
    assert cfg.train_dataloader.batch_size == \
        cfg.auto_scale_lr.base_batch_size


@pytest.mark.parametrize('name', ['mat_thumos14', 'miniroad_thumos14'])
def test_stream_has_the_scores_of_the_video(name, narrow_online):
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
    # MAT looks ahead in a window, which differs in the first window.
    first = 31 if name.startswith('mat') else 0
    torch.testing.assert_close(
        got.pred_action[first:], want.pred_action[first:STEPS], rtol=0,
        atol=1e-5)
    metric = METRICS.build(cfg.test_evaluator)
    metric.dataset_meta = None
    metric.process(None, [result.to_dict() for result in results])
    actual = metric.evaluate(2)
    assert list(actual)[0].endswith('_stream_window')
    assert actual['online/stream_state_bytes'] > 0
