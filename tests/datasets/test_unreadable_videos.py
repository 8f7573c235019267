# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets that skip and report unreadable videos."""
import copy
import pickle
import re
import shutil

import cv2
import numpy as np
import pytest
import torch
from made_videos import require_backend
from mmaction.registry import DATASETS
from mmengine.dataset import pseudo_collate, worker_init_fn
from torch.utils.data import DataLoader

DECODERS = {
    'decord': [dict(type='DecordInit'), dict(type='DecordDecode')],
    'opencv': [dict(type='OpenCVInit'), dict(type='OpenCVDecode')],
    'pyav': [dict(type='VideoReaderInit'), dict(type='VideoReaderDecode')]}
BROKEN = ['missing', 'empty', 'text', 'cut', 'no_frames', 'damaged']


def pipeline(decoder='pyav', *more):
    require_backend(decoder)
    init, decode = DECODERS[decoder]
    return [init, dict(type='UniformSample', clip_len=2), decode,
            dict(type='Resize', scale=(32, 32), keep_ratio=False), *more,
            dict(type='FormatShape', input_format='NCTHW'),
            dict(type='PackActionInputs')]


@pytest.fixture(scope='module')
def videos(motion_dir, tmp_path_factory):
    """Folder of three good videos, and a broken video of each kind."""
    folder = tmp_path_factory.mktemp('videos')
    good = motion_dir / 'train/000002.mp4'
    for name in 'a.mp4', 'b.mp4', 'with two spaces.mp4':
        shutil.copy(good, folder / name)
    whole = good.read_bytes()
    (folder / 'empty.mp4').touch()
    (folder / 'text.mp4').write_text('not a video\n' * 99)
    (folder / 'cut.mp4').write_bytes(whole[:len(whole) // 2])
    cv2.VideoWriter(
        str(folder / 'no_frames.mp4'), cv2.VideoWriter_fourcc(*'mp4v'), 10,
        (64, 64)).release()
    start = whole.index(b'mdat') + 4
    size = whole.index(b'moov') - 4 - start
    noise = np.random.default_rng(0).bytes(size)
    (folder / 'damaged.mp4').write_bytes(
        whole[:start] + noise + whole[start + size:])
    return folder


@pytest.fixture
def build(videos, tmp_path):
    """Build a dataset of list lines; with ``wrap``, in SkipUnreadable."""
    def build(lines, wrap=None, **options):
        (tmp_path / 'list.txt').write_text('\n'.join(lines))
        config = dict(
            type='CheckedVideoDataset' if wrap is None else 'VideoDataset',
            ann_file=str(tmp_path / 'list.txt'), pipeline=pipeline(),
            data_prefix=dict(video=str(videos))) | options
        return DATASETS.build(config if wrap is None else dict(
            type='SkipUnreadable', dataset=config, **wrap))

    return build


def label(sample):
    return sample['data_samples'].gt_label.item()


def skipped(sample):
    return {name.rsplit('/', 1)[1] for name in
            sample['data_samples'].get('skipped_videos', [])}


@pytest.mark.parametrize('kind', BROKEN)
def test_broken_video_is_replaced_in_training_and_an_error_in_testing(
        build, logged, kind):
    np.random.seed(0)
    lines = ['a.mp4 1', f'{kind}.mp4 0']
    dataset = build(lines)
    for _ in range(2):
        sample = dataset[1]
        assert label(sample) == 1 and skipped(sample) == {f'{kind}.mp4'}
    assert not skipped(dataset[0])
    log, = (line for line in logged if f'{kind}.mp4' in line)
    assert 'Error' in log
    dataset = build(lines, test_mode=True)
    with pytest.raises(RuntimeError, match=f'{kind}.mp4') as error:
        dataset[1]
    assert error.value.__cause__ is not None
    assert dataset[0]['inputs'].shape == (1, 3, 2, 32, 32)


def test_removes_broken_videos_of_a_test_set_on_request(build, videos,
                                                        logged):
    lines = [f'{name}.mp4 {number}' for number, name in enumerate(
        ['a', *BROKEN, 'with two spaces'])]
    # A name without a suffix is an mp4.
    dataset = build([*lines, 'b 8'], test_mode=True, on_error='skip')
    assert [label(dataset[i]) for i in range(len(dataset))] == [0, 7, 8]
    log, = (line for line in logged if '6 of 9 videos' in line)
    assert all(re.search(rf'{kind}\.mp4 \(.+\)', log) for kind in BROKEN)
    with pytest.raises(RuntimeError, match='cannot read 2 of 2.* such as '
                       f'{videos}/empty.mp4') as error:
        build(['empty.mp4 0', 'cut.mp4 0'], test_mode=True, on_error='skip')
    assert error.value.__cause__ is not None


def add_noise(results):
    results['imgs'] = [img + np.random.randint(99, dtype=np.uint8)
                       for img in results['imgs']]
    return results


@pytest.mark.parametrize('decoder', DECODERS)
def test_skips_in_any_mmaction_pipeline(build, videos, decoder):
    lines = ['cut.mp4 0', 'a.mp4 1']
    steps = pipeline(decoder, add_noise)
    plain = build(lines, type='VideoDataset', pipeline=steps)
    with pytest.raises(Exception):
        plain[0]
    dataset = build(lines, {}, pipeline=steps)
    assert len(dataset) == 2 and dataset.metainfo == plain.metainfo
    for other in dataset, pickle.loads(pickle.dumps(dataset)), copy.deepcopy(
            dataset):
        # The wrapper draws no random number.
        inputs = []
        for one in plain, other:
            np.random.seed(0)
            inputs.append(one[1]['inputs'])
        assert torch.equal(*inputs)
        note = other[0]['data_samples']
        assert note.filename == str(videos / 'a.mp4')
        assert {*note.skipped_videos} == {str(videos / 'cut.mp4')}
        assert 'Error' in note.skipped_reasons[str(videos / 'cut.mp4')]


def test_skips_with_repeated_augmentation(build):
    np.random.seed(0)
    samples = build(['cut.mp4 0', 'a.mp4 1'], {}, type='RepeatAugDataset',
                    num_repeats=2, pipeline=pipeline('decord'))[0]
    assert [skipped(sample) for sample in samples] == [{'cut.mp4'}] * 2


IMAGE = np.zeros((8, 8, 3), np.uint8)


@pytest.mark.parametrize('place, change, message', [
    (2, dict(imgs=[IMAGE]), 'expected 2 frames, read 1'),
    (2, dict(imgs=[]), 'expected 2 frames, read 0'),
    (2, dict(imgs=[IMAGE, IMAGE[:0]]), 'frame 1 of the clip is empty'),
    (2, dict(imgs=[IMAGE, None]), 'frame 1 of the clip is empty'),
    (0, dict(total_frames=0), 'it contains no frames')])
def test_detects_lost_frames(build, place, change, message):
    steps = pipeline()
    steps[place] = lambda results: {**results, **change}
    dataset = build(['a.mp4 0'], {}, pipeline=steps, test_mode=True)
    with pytest.raises(RuntimeError, match=message):
        dataset[0]


def test_raises_for_a_faulty_pipeline(build):
    def faulty(results):
        raise KeyError('a bug')

    dataset = build(['a.mp4 0', 'b.mp4 1'], pipeline=[*pipeline(), faulty])
    with pytest.raises(RuntimeError, match='10 times.*a bug') as error:
        dataset[0]
    assert isinstance(error.value.__cause__, KeyError)


def test_workers_report_skipped_videos(build):
    dataset = build(['a.mp4 0', 'b.mp4 0', *(
        f'{kind}.mp4 1' for kind in BROKEN)], max_failures=100)
    loader = DataLoader(
        dataset, batch_size=2, num_workers=2, collate_fn=pseudo_collate,
        worker_init_fn=lambda i: worker_init_fn(i, 2, 0, 0))
    samples = [dict(data_samples=one) for batch in loader
               for one in batch['data_samples']]
    assert [*map(label, samples)] == [0] * 8
    assert set.union(*map(skipped, samples)) == {
        f'{kind}.mp4' for kind in BROKEN}


def test_warns_of_a_missing_file_of_class_names(build, logged):
    # The class's former name.
    dataset = build(['a.mp4 0', 'b.mp4 1'], type='GuardedVideoDataset',
                    metainfo=dict(classes='nowhere.txt', task='x'))
    assert 'classes' not in dataset.metainfo
    assert dataset.metainfo['task'] == 'x'
    assert sum('nowhere.txt' in line for line in logged) == 1
    # mmengine's ClassBalancedDataset calls this.
    assert [dataset.get_cat_ids(i) for i in range(2)] == [[0], [1]]
