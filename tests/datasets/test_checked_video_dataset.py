# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re
import shutil

import cv2
import numpy as np
import pytest
from mmaction.registry import DATASETS
from mmengine.dataset import pseudo_collate, worker_init_fn
from torch.utils.data import DataLoader

PIPELINE = [
    dict(type='DecordInit'),
    dict(type='UniformSample', clip_len=2),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(32, 32), keep_ratio=False),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')]
BROKEN = ['missing', 'empty', 'text', 'cut', 'no_frames', 'damaged']


@pytest.fixture
def folder(motion_dir, tmp_path):
    """Three good videos, and a broken video of each kind."""
    good = motion_dir / 'train/000002.mp4'
    for name in ('a.mp4', 'b.mp4', 'with two spaces.mp4'):
        shutil.copy(good, tmp_path / name)
    whole = good.read_bytes()
    (tmp_path / 'empty.mp4').touch()
    (tmp_path / 'text.mp4').write_text('not a video\n' * 99)
    (tmp_path / 'cut.mp4').write_bytes(whole[:len(whole) // 2])
    cv2.VideoWriter(
        str(tmp_path / 'no_frames.mp4'), cv2.VideoWriter_fourcc(*'mp4v'), 10,
        (64, 64)).release()
    start = whole.index(b'mdat') + 4
    size = whole.index(b'moov') - 4 - start
    noise = np.random.default_rng(0).bytes(size)
    (tmp_path / 'damaged.mp4').write_bytes(
        whole[:start] + noise + whole[start + size:])
    return tmp_path


def build(folder, lines, **kwargs):
    (folder / 'list.txt').write_text('\n'.join(lines))
    options = dict(pipeline=PIPELINE, data_root=str(folder)) | kwargs
    return DATASETS.build(
        dict(type='CheckedVideoDataset', ann_file='list.txt', **options))


def skipped(sample):
    return [name.rsplit('/', 1)[1] for name in
            sample['data_samples'].get('skipped_videos', [])]


def test_balancing_repeats_rare_classes(folder):
    """mmengine repeats a video by sqrt(threshold / share of its class)."""
    lines = ['a.mp4 0'] * 3 + ['b.mp4 1']
    build(folder, lines)
    balanced = DATASETS.build(dict(
        type='ClassBalancedDataset', oversample_thr=1., dataset=dict(
            type='GuardedVideoDataset', ann_file='list.txt',
            pipeline=PIPELINE, data_root=str(folder),
            metainfo=dict(classes=['still', 'moving']))))
    labels = [balanced.get_data_info(i)['label'] for i in range(len(balanced))]
    assert labels == [0] * 3 * 2 + [1] * 2


@pytest.mark.parametrize('kind', BROKEN)
def test_broken_video_is_replaced_in_training_and_an_error_in_testing(
        folder, logged, kind):
    np.random.seed(0)
    lines = ['a.mp4 1', f'{kind}.mp4 0']
    dataset = build(folder, lines)
    for _ in range(3):
        sample = dataset[1]
        assert sample['data_samples'].gt_label.item() == 1
        assert set(skipped(sample)) == {f'{kind}.mp4'}
    assert skipped(dataset[0]) == []
    logs = [line for line in logged if f'{kind}.mp4' in line]
    assert len(logs) == 1 and 'Error' in logs[0]
    dataset = build(folder, lines, test_mode=True)
    with pytest.raises(RuntimeError, match=f'{kind}.mp4') as error:
        dataset[1]
    assert error.value.__cause__ is not None
    assert dataset[0]['inputs'].shape == (1, 3, 2, 32, 32)


def test_removes_broken_videos_of_a_test_set_on_request(folder, logged):
    lines = [f'{name}.mp4 {label}' for label, name in enumerate(
        ['a', *BROKEN, 'with two spaces'])]
    # A name without a suffix is an mp4.
    dataset = build(folder, [*lines, 'b 8'], test_mode=True, on_error='skip')
    labels = [dataset[i]['data_samples'].gt_label.item()
              for i in range(len(dataset))]
    assert labels == [0, 7, 8]
    logs = [line for line in logged if '6 of 9 videos' in line]
    assert len(logs) == 1
    assert all(re.search(rf'{kind}\.mp4 \(.+\)', logs[0]) for kind in BROKEN)


def test_test_set_without_any_readable_video_raises(folder):
    with pytest.raises(RuntimeError, match='cannot read 2 of 2') as error:
        build(folder, ['empty.mp4 0', 'cut.mp4 0'], test_mode=True,
              on_error='skip')
    assert f'such as {folder}/empty.mp4' in str(error.value)
    assert error.value.__cause__ is not None


def test_raises_for_a_faulty_pipeline(folder):

    def faulty(results):
        raise KeyError('a bug')

    dataset = build(
        folder, ['a.mp4 0', 'b.mp4 1'], pipeline=[*PIPELINE, faulty])
    with pytest.raises(RuntimeError, match='10 times.*a bug') as error:
        dataset[0]
    assert isinstance(error.value.__cause__, KeyError)


def test_workers_report_skipped_videos(folder):
    lines = ['a.mp4 0', 'b.mp4 0', *(f'{kind}.mp4 1' for kind in BROKEN)]
    dataset = build(folder, lines, max_failures=100)
    loader = DataLoader(
        dataset, batch_size=2, num_workers=2, collate_fn=pseudo_collate,
        worker_init_fn=lambda i: worker_init_fn(i, 2, 0, 0))
    samples = [s for batch in loader for s in batch['data_samples']]
    assert [s.gt_label.item() for s in samples] == [0] * 8
    result = sum((s.get('skipped_videos', []) for s in samples), [])
    assert {name.rsplit('/', 1)[1] for name in result} == {
        f'{kind}.mp4' for kind in BROKEN}


def test_warns_of_a_missing_file_of_class_names(folder, logged):
    dataset = build(folder, ['a.mp4 0'],
                    metainfo=dict(classes='nowhere.txt', task='x'))
    assert 'classes' not in dataset.metainfo
    assert dataset.metainfo['task'] == 'x'
    assert sum('nowhere.txt' in line for line in logged) == 1
