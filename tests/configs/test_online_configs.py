# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs of online detection, with narrow models on small features."""
import numpy as np
import pytest
import torch
from mmaction.registry import DATA_SAMPLERS, DATASETS, METRICS, MODELS
from mmengine.dataset import pseudo_collate

from mmvidattn.apis import list_models, load_config

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


@pytest.fixture
def narrow_online(tmp_path):
    """Load a config with a narrow model, and write files of two videos."""

    def read(name):
        cfg, rng = load_config(name), np.random.default_rng(0)
        backbone, head = cfg.model.backbone, cfg.model.cls_head
        narrow = dict(embed_dims=16, num_heads=2, ffn_dims=16, proj_dims=16)
        backbone.update({key: width for key, width in narrow.items()
                         if key in backbone})
        head.in_channels = 16
        if 'class_counts' in head.loss_cls:
            head.loss_cls.class_counts = [1] * head.num_classes
        (tmp_path / 'classes.txt').write_text(
            '\n'.join(map(str, range(head.num_classes))))
        for split in 'train', 'val', 'test':
            dataset = cfg[f'{split}_dataloader'].dataset
            dataset.data_root = str(tmp_path)
            if 'metainfo' in dataset:
                dataset.metainfo.classes = str(tmp_path / 'classes.txt')
            (tmp_path / dataset.ann_file).write_text('a\nb')
            if 'segment_file' in dataset:
                (tmp_path / dataset.segment_file).write_text(
                    '0,a,300,330,1,2,3\n1,b,300,330,1,2,3\n')
            dims = dict(gt_action=head.num_classes) | dataset.get(
                'feature_dims', backbone.in_channels)
            for key, folder in dataset.data_prefix.items():
                (tmp_path / folder).mkdir(exist_ok=True)
                for video in 'ab':
                    x = rng.standard_normal((STEPS, dims[key]), np.float32)
                    if key.startswith('gt'):
                        x = np.eye(dims[key], dtype=np.float32)[
                            np.arange(STEPS) // 9 % 4]
                    np.save(tmp_path / folder / f'{video}.npy', x)
        return cfg

    return read


@pytest.mark.parametrize('name', PATHS)
def test_train_step_and_test_step(name, narrow_online, train_once):
    cfg = narrow_online(name)
    if name.startswith(WINDOWS):
        # The windows must not be longer than the videos.
        cfg.model.backbone.work_memory_length = 32
        for split in 'train', 'val', 'test':
            cfg[f'{split}_dataloader'].dataset.work_steps = 32
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    sampler = DATA_SAMPLERS.build(dict(cfg.train_dataloader.sampler,
                                       dataset=dataset))
    assert len(list(sampler)) == len(sampler) > 0
    # The last samples have a history.
    model, unchanged = train_once(cfg, [len(dataset) - 1, len(dataset) - 2])
    # Softmax cancels the biases of keys, so their gradient is zero.
    assert not {key for key in unchanged if not key.endswith('kv.bias')}

    head, backbone = cfg.model.cls_head, cfg.model.backbone
    ahead = backbone.get('num_anticipation_tokens', 0)
    rows = dict(val=backbone.work_memory_length + ahead)
    rows['test'] = STEPS if name.endswith(
        ('thumos14', 'tvseries')) else rows['val']
    if name.startswith(WINDOWS):
        rows['val'] = STEPS
    for split in 'val', 'test':
        sample = DATASETS.build(cfg[f'{split}_dataloader'].dataset)[0]
        with torch.no_grad():
            result, = model.test_step(pseudo_collate([sample]))
        assert result.pred_action.shape == (rows[split], head.num_classes)
        assert result.pred_action.isfinite().all()
    assert ('pred_verb' in result) == ('num_verbs' in head)
    if name.startswith(('testra', 'lstr')):
        later = result.get('pred_anticipated_action')
        assert (later is None) == (ahead != 8)
        assert later is None or later.shape == (
            STEPS - 31, 8, head.num_classes)


@pytest.mark.parametrize('name', NAMES)
def test_model_fits_the_dataset(name):
    cfg = load_config(name)
    backbone = cfg.model.backbone
    for split in 'train', 'val', 'test':
        data = cfg[f'{split}_dataloader'].dataset
        assert data.long_steps // data.long_rate == \
            backbone.get('long_memory_length', 0)
        assert data.work_steps // data.work_rate == backbone.work_memory_length
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
    assert cfg.train_dataloader.batch_size == cfg.auto_scale_lr.base_batch_size


# They look ahead in windows, which differ in the first window.
@pytest.mark.parametrize('name, first', [
    ('mat_thumos14', 31), ('miniroad_thumos14', 0), ('testra_thumos14', 0)])
@torch.no_grad()
def test_stream_has_the_scores_of_the_video(name, first, narrow_online):
    cfg = narrow_online(name)
    cfg.model.cls_head.score = 'logit'
    torch.manual_seed(0)
    model = MODELS.build(cfg.model).eval()
    data = cfg.test_dataloader.dataset
    stream = DATASETS.build(dict(data, windows='stream'))
    results = model.test_step(pseudo_collate([stream[0], stream[1]]))
    want, = model.test_step(pseudo_collate([DATASETS.build(data)[0]]))
    torch.testing.assert_close(
        results[0].pred_action[first:], want.pred_action[first:STEPS],
        rtol=0, atol=1e-5)
    metric = METRICS.build(cfg.test_evaluator)
    metric.dataset_meta = None
    metric.process(None, [result.to_dict() for result in results])
    got = metric.evaluate(2)
    assert list(got)[0] == 'online/mAP_stream_window'
    cost = results[0].stream_cost
    assert got['online/stream_steps_per_second'] == pytest.approx(
        cost['steps'] / cost['seconds'])
    assert got['online/stream_state_bytes'] == cost['state_bytes']


@torch.no_grad()
def test_stream_has_the_scores_of_the_windows_of_segments(narrow_online):
    cfg = narrow_online('testra_ek100')
    torch.manual_seed(0)
    model = MODELS.build(cfg.model).eval()
    data, found = cfg.test_dataloader.dataset, []
    metric = METRICS.build(dict(cfg.test_evaluator, subsets=None))
    for windows in 'segments', 'stream':
        dataset = DATASETS.build(dict(data, windows=windows))
        results = model.test_step(pseudo_collate([dataset[0], dataset[1]]))
        metric.process(None, [result.to_dict() for result in results])
        found.append({segment.id: segment for result in metric.results
                      for segment in result['segments']})
        metric.results.clear()
    assert len(found[0]) == 2 and found[0].keys() == found[1].keys()
    for name, window in found[0].items():
        stream = found[1][name]
        assert (stream.labels, stream.seen) == (window.labels, True)
        for part, scores in window.scores.items():
            np.testing.assert_allclose(stream.scores[part], scores, atol=1e-4)
