# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy
import logging
import os
import pickle
import shutil
import time

import numpy as np
import pytest
import torch
from mmaction.registry import DATASETS
from mmengine.dataset import ConcatDataset, RepeatDataset, pseudo_collate
from mmengine.logging import MMLogger
from torch.utils.data import DataLoader

from mmvidattn.datasets.guard import Guard, guard, read_note

DECODERS = {
    'decord': [dict(type='DecordInit'), dict(type='DecordDecode')],
    'opencv': [dict(type='OpenCVInit'), dict(type='OpenCVDecode')],
}


def pipeline(decoder='decord', *more):
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


def build(folder, names, type='VideoDataset', steps=None, **kwargs):
    (folder / 'list.txt').write_text(
        ''.join(f'{name} {i}\n' for i, name in enumerate(names)))
    return DATASETS.build(dict(
        type=type, ann_file='list.txt', data_root=str(folder),
        data_prefix=dict(video=''), pipeline=steps or pipeline(), **kwargs))


def meta(sample):
    return sample['data_samples'].metainfo


@pytest.mark.parametrize('decoder', DECODERS)
def test_any_pipeline_of_mmaction_is_guarded(folder, decoder):
    dataset = build(folder, ['bad.mp4', 'good.mp4'], steps=pipeline(decoder))
    plain = dataset[1]['inputs']
    with pytest.raises(Exception):
        dataset[0]
    assert guard(dataset) == 1
    assert guard(dataset) == 0
    assert torch.equal(dataset[1]['inputs'], plain)
    assert meta(dataset[1])['filename'] == str(folder / 'good.mp4')
    np.random.seed(0)
    sample = dataset[0]
    assert torch.equal(sample['inputs'], plain)
    bad = str(folder / 'bad.mp4')
    assert set(meta(sample)['skipped_videos']) == {bad}
    assert 'Error' in meta(sample)['skipped_reasons'][bad]


@pytest.mark.parametrize('wrap', [
    lambda d: RepeatDataset(d, 2), lambda d: ConcatDataset([d, d])],
    ids=['repeat', 'concat'])
def test_wrapped_datasets_are_guarded(folder, wrap):
    dataset = build(folder, ['good.mp4'])
    assert guard(wrap(dataset)) == 1
    assert isinstance(dataset.prepare_data, Guard)


def test_repeated_augmentation_is_guarded(folder):
    steps = pipeline()
    dataset = build(folder, ['bad.mp4', 'good.mp4'], type='RepeatAugDataset',
                    steps=steps, num_repeats=2)
    guard(dataset)
    np.random.seed(0)
    samples = dataset[0]
    assert len(samples) == 2
    assert all('skipped_videos' in meta(sample) for sample in samples)


class Slow:
    """A decoder that hangs on one file."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, results):
        if 'slow' in results['filename']:
            time.sleep(self.seconds)
        return results


def test_time_out_is_kept_and_the_file_not_tried_again(folder):
    (folder / 'slow.mp4').write_bytes((folder / 'good.mp4').read_bytes())
    dataset = build(folder, ['slow.mp4', 'good.mp4'],
                    steps=[Slow(30), *pipeline()])
    guard(dataset, timeout=0.5)
    np.random.seed(0)
    began = time.monotonic()
    first, second = dataset[0], dataset[0]
    assert 0.5 <= time.monotonic() - began < 5
    for sample in first, second:
        assert 'took more than 0.5 s' in meta(sample)['skipped_reasons'][
            str(folder / 'slow.mp4')]


def test_worker_that_hangs_does_not_stop_the_others(folder):
    (folder / 'slow.mp4').write_bytes((folder / 'good.mp4').read_bytes())
    names = ['good.mp4', 'slow.mp4', 'good.mp4', 'good.mp4']
    dataset = build(folder, names, steps=[Slow(30), *pipeline()])
    guard(dataset, timeout=1)
    began = time.monotonic()
    loader = DataLoader(dataset, batch_size=2, num_workers=2,
                        collate_fn=pseudo_collate)
    assert sum(len(batch['inputs']) for batch in loader) == 4
    assert time.monotonic() - began < 15


class Short:
    """A decoder that loses frames, or the sight of one."""

    def __init__(self, way):
        self.way = way

    def __call__(self, results):
        imgs = [np.zeros((8, 8, 3), np.uint8)] * 4
        results['imgs'] = dict(
            short=imgs[:3], none=[], empty=imgs[:3] + [np.zeros((0, 0, 3))],
            missing=imgs[:3] + [None])[self.way]
        return results


@pytest.mark.parametrize('way, said', [
    ('short', '3 frames were read, 4 are wanted'),
    ('none', '0 frames were read'), ('empty', 'frame 3 of the clip is empty'),
    ('missing', 'frame 3 of the clip is empty')])
def test_short_reads_are_seen(folder, way, said):
    steps = pipeline()
    steps[2] = Short(way)
    dataset = build(folder, ['good.mp4'], steps=steps, test_mode=True)
    guard(dataset)
    with pytest.raises(RuntimeError, match=said):
        dataset[0]


def test_video_without_frames_is_seen(folder):

    def count(results):
        return dict(results, total_frames=0)

    dataset = build(folder, ['good.mp4'], steps=[count, *pipeline()],
                    test_mode=True)
    guard(dataset)
    with pytest.raises(RuntimeError, match='it has no frames'):
        dataset[0]


def test_loads_with_as_many_threads_as_its_process(folder):
    seen, before = [], torch.get_num_threads()

    def look(results):
        seen.append(torch.get_num_threads())
        return results

    dataset = build(folder, ['good.mp4'], steps=[look, *pipeline()])
    guard(dataset)
    try:
        torch.set_num_threads(before + 2)
        dataset[0]
    finally:
        torch.set_num_threads(before)
    assert seen == [before + 2]


def test_opencv_does_not_put_another_frame_in_place(folder):
    """It announces as many frames as the header of a damaged file does."""
    from mmcv import VideoReader
    read = VideoReader.get_frame
    dataset = build(folder, ['good.mp4'], steps=pipeline('opencv'),
                    test_mode=True)
    guard(dataset)
    try:
        VideoReader.get_frame = lambda self, i: None if i > 9 else read(
            self, i)
        with pytest.raises(RuntimeError, match='frame .* cannot be read'):
            dataset[0]
    finally:
        VideoReader.get_frame = read


def test_flagged_in_testing_on_request(folder):
    dataset = build(folder, ['bad.mp4', 'good.mp4'], test_mode=True)
    guard(dataset, on_error='flag')
    good, bad = dataset[1], dataset[0]
    assert not bad['inputs'].any() and good['inputs'].any()
    assert bad['inputs'].shape == good['inputs'].shape
    assert bad['data_samples'].gt_label.item() == 0
    assert 'Error' in meta(bad)['unreadable']
    assert meta(bad)['filename'] == str(folder / 'bad.mp4')
    assert 'unreadable' not in meta(good)


def test_nothing_to_flag_with(folder):
    dataset = build(folder, ['bad.mp4'], test_mode=True)
    guard(dataset, on_error='flag')
    with pytest.raises(RuntimeError, match='bad.mp4, nor the 10'):
        dataset[0]


def test_notes_what_this_process_reads(folder):
    notes, seen = str(folder / 'notes'), []

    def look(results):
        seen.append(read_note(notes, os.getpid()))
        return results

    os.mkdir(notes)
    dataset = build(folder, ['good.mp4'], steps=[look, *pipeline()],
                    test_mode=True)
    guard(dataset, notes=notes)
    good = str(folder / 'good.mp4')
    for _ in range(2):
        dataset[0]
        assert read_note(notes, os.getpid()) == ''
    shutil.rmtree(notes)
    dataset[0]
    assert seen == [good, good, '']
    # A second call does not guard it again, but has something to say.
    assert guard(dataset, given_up={good: 'it crashed'}) == 0
    with pytest.raises(RuntimeError, match='not tried again: it crashed'):
        dataset[0]


def test_guarded_dataset_goes_to_other_processes(folder):
    dataset = build(folder, ['good.mp4'])
    guard(dataset)
    want = dataset[0]['inputs']
    for other in (pickle.loads(pickle.dumps(dataset)),
                  copy.deepcopy(dataset)):
        assert torch.equal(other[0]['inputs'], want)


@pytest.mark.parametrize('option', [
    dict(on_error='ignore'), dict(max_failures=0), dict(timeout=0)], ids=str)
def test_rejects_option_out_of_range(folder, option):
    dataset = build(folder, ['good.mp4'])
    with pytest.raises(ValueError, match=next(iter(option))):
        guard(dataset, **option)


def test_random_numbers_are_those_without_a_guard(folder):
    """Loading is in another thread, which shares the generators."""

    def draw(results):
        results['imgs'] = [img + np.random.randint(99, dtype=np.uint8)
                           for img in results['imgs']]
        return results

    found = []
    for guarded in False, True:
        dataset = build(folder, ['good.mp4'], steps=pipeline('decord', draw))
        if guarded:
            guard(dataset)
        np.random.seed(0)
        found.append(dataset[0]['inputs'])
    assert torch.equal(*found)


@pytest.fixture
def logged():
    logger, records = MMLogger.get_current_instance(), []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def test_a_file_is_named_once(folder, logged):
    dataset = build(folder, ['bad.mp4', 'good.mp4'])
    guard(dataset)
    for _ in range(3):
        dataset[0]
    assert sum('Skipped' in line for line in logged) == 1
