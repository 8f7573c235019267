# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import pickle

import numpy as np
import pytest
import torch
from made_videos import require_backend
from mmaction.registry import DATASETS

DECODERS = {
    'decord': [dict(type='DecordInit'), dict(type='DecordDecode')],
    'opencv': [dict(type='OpenCVInit'), dict(type='OpenCVDecode')],
    'pyav': [dict(type='VideoReaderInit'), dict(type='VideoReaderDecode')]}


def pipeline(decoder='decord', *more):
    require_backend(decoder)
    init, decode = DECODERS[decoder]
    return [init, dict(type='UniformSample', clip_len=4, test_mode=True),
            decode, dict(type='Resize', scale=(32, 32), keep_ratio=False),
            *more, dict(type='FormatShape', input_format='NCTHW'),
            dict(type='PackActionInputs')]


@pytest.fixture
def folder(motion_dir, tmp_path):
    whole = (motion_dir / 'train/000002.mp4').read_bytes()
    (tmp_path / 'good.mp4').write_bytes(whole)
    (tmp_path / 'bad.mp4').write_bytes(whole[:len(whole) // 2])
    return tmp_path


def config(folder, names, type='VideoDataset', steps=None, **kwargs):
    (folder / 'list.txt').write_text(
        ''.join(f'{name} {i}\n' for i, name in enumerate(names)))
    return dict(
        type=type, ann_file='list.txt', data_root=str(folder),
        data_prefix=dict(video=''), pipeline=steps or pipeline(), **kwargs)


def skip_unreadable(dataset, **options):
    return dict(type='SkipUnreadable', dataset=dataset, **options)


def build(folder, names, options=None, **kwargs):
    """Build a dataset that skips unreadable files."""
    return DATASETS.build(
        skip_unreadable(config(folder, names, **kwargs), **(options or {})))


def meta(sample):
    return sample['data_samples'].metainfo


@pytest.mark.parametrize('decoder', DECODERS)
def test_skips_in_any_mmaction_pipeline(folder, decoder):
    cfg = config(folder, ['bad.mp4', 'good.mp4'], steps=pipeline(decoder))
    plain = DATASETS.build(cfg)
    want = plain[1]['inputs']
    with pytest.raises(Exception):
        plain[0]
    dataset = DATASETS.build(skip_unreadable(cfg))
    assert len(dataset) == 2 and dataset.metainfo == plain.metainfo
    assert torch.equal(dataset[1]['inputs'], want)
    assert meta(dataset[1])['filename'] == str(folder / 'good.mp4')
    np.random.seed(0)
    sample = dataset[0]
    assert torch.equal(sample['inputs'], want)
    bad = str(folder / 'bad.mp4')
    assert set(meta(sample)['skipped_videos']) == {bad}
    assert 'Error' in meta(sample)['skipped_reasons'][bad]


def test_skips_with_repeated_augmentation(folder):
    dataset = build(folder, ['bad.mp4', 'good.mp4'], type='RepeatAugDataset',
                    num_repeats=2)
    np.random.seed(0)
    samples = dataset[0]
    assert len(samples) == 2
    assert all('skipped_videos' in meta(sample) for sample in samples)


class LosesFrames:
    """Decoder that loses frames or returns an empty one."""

    def __init__(self, fault):
        self.fault = fault

    def __call__(self, results):
        imgs = [np.zeros((8, 8, 3), np.uint8)] * 4
        results['imgs'] = dict(
            short=imgs[:3], none=[], empty=imgs[:3] + [np.zeros((0, 0, 3))],
            missing=imgs[:3] + [None])[self.fault]
        return results


@pytest.mark.parametrize('fault, message', [
    ('short', 'expected 4 frames, read 3'),
    ('none', 'expected 4 frames, read 0'),
    ('empty', 'frame 3 of the clip is empty'),
    ('missing', 'frame 3 of the clip is empty'),
    ('no video', 'it contains no frames')])
def test_detects_lost_frames(folder, fault, message):
    steps = pipeline()
    if fault == 'no video':
        steps.insert(0, lambda results: dict(results, total_frames=0))
    else:
        steps[2] = LosesFrames(fault)
    dataset = build(folder, ['good.mp4'], steps=steps, test_mode=True)
    with pytest.raises(RuntimeError, match=message):
        dataset[0]


def test_wrapper_can_be_pickled_and_copied(folder):
    dataset = build(folder, ['good.mp4'])
    want = dataset[0]['inputs']
    for other in (pickle.loads(pickle.dumps(dataset)), copy.deepcopy(dataset)):
        assert torch.equal(other[0]['inputs'], want)


def test_wrapper_does_not_change_random_numbers(folder):
    def draw(results):
        results['imgs'] = [img + np.random.randint(99, dtype=np.uint8)
                           for img in results['imgs']]
        return results

    cfg = config(folder, ['good.mp4'], steps=pipeline('decord', draw))
    got = []
    for one in cfg, skip_unreadable(cfg):
        dataset = DATASETS.build(one)
        np.random.seed(0)
        got.append(dataset[0]['inputs'])
    assert torch.equal(*got)
