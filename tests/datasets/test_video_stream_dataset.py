# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames and targets of streams, compared with the numbers in the frames."""
import pickle

import numpy as np
import pytest
from made_videos import FPS, LENGTH, make, numbers_of, write_opencv
from mmaction.registry import DATA_SAMPLERS, DATASETS
from mmengine.dataset import pseudo_collate

PIPELINE = [
    dict(type='DecordInit'), dict(type='StreamSampleFrames'),
    dict(type='DecordDecode'), dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackStreamInputs')]
CLASSES = ['background', 'run', 'jump']
# 40 frames at 20 frames per second.
SEGMENTS = [('a', 0.25, 0.5, 'run'), ('a', 0.45, 1.0, 'jump'),
            ('a', 1.6, 1.9, 'run'), ('b', 0.0, 2.0, 'jump')]


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp('stream')
    for name in 'abc':
        write_opencv(root / f'{name}.mp4')
    (root / 'set.csv').write_text(
        'video,start,end,label\n'
        + ''.join(','.join(map(str, row)) + '\n' for row in SEGMENTS))
    (root / 'videos.txt').write_text('a\nb\nc\n')
    return root


def build(root, **options):
    return DATASETS.build({
        **dict(type='VideoStreamDataset', ann_file='set.csv',
               data_root=str(root), metainfo=dict(classes=CLASSES),
               pipeline=PIPELINE, frame_rate=20., clip_frames=16), **options})


def numbers(frames):
    return numbers_of(frames.permute(1, 2, 3, 0).numpy())


def truth(video, begin, end):
    """Targets of the steps from begin to end seconds each."""
    rows = np.zeros((len(begin), 3))
    for name, start, stop, label in SEGMENTS:
        here = (begin < stop - 1e-9) & (end > start + 1e-9) & (name == video)
        rows[here, CLASSES.index(label)] = 1
    rows[:, 0] = ~rows[:, 1:].any(axis=1)
    rows[begin >= LENGTH / FPS - 1e-9] = 0
    return rows


@pytest.mark.parametrize('rate', [50., 20., 10., 7.])
@pytest.mark.parametrize('ahead', [(0, 1), (4, 2)])
def test_clips_have_the_frames_and_targets_of_their_steps(root, rate, ahead):
    data = build(root, frame_rate=rate, clip_frames=5,
                 anticipation_steps=ahead[0], anticipation_rate=ahead[1])
    # All frames of a slow video are longer steps.
    elapsed, rate = max(rate / FPS, 1), min(rate, FPS)
    steps = int(LENGTH / FPS * rate)
    assert len(data) == 2 * (steps - 5 - ahead[0] + 1)
    for index in (0, 3, len(data) - 1):
        info = data.data_list[index]
        item = data[index]
        first = info['work_start']
        place = np.arange(first, first + 5)
        shown = ((place + 0.5) / rate * FPS).astype(int)
        assert numbers(item['inputs']['frames']) == shown.tolist()
        assert item['inputs']['elapsed'].tolist() == [elapsed] * 5
        sample = item['data_samples']
        place = np.r_[place, first + 5 + np.arange(0, *ahead)]
        want = truth('ab'[info['video']], place / rate, (place + 1) / rate)
        assert (sample.gt_action.numpy() == want).all()
        assert sample.video_name == 'ab'[info['video']]


def test_video_is_read_in_chunks(root):
    data = build(root, test_mode=True, clip_frames=16,
                 video_list=str(root / 'videos.txt'))
    # The last video has no segments.
    assert len(data) == 3 and data[2]['data_samples'].gt_action[:, 0].all()
    item = pseudo_collate([data[0]])
    video, = pickle.loads(pickle.dumps(item['inputs']['frames']))
    chunks = list(video)
    assert [len(numbers(chunk['frames'])) for chunk in chunks] == [16, 16, 8]
    assert sum([numbers(chunk['frames']) for chunk in chunks], []) == [
        *range(LENGTH)]
    sample, = item['data_samples']
    time = np.arange(LENGTH) / FPS
    assert (sample.gt_action.numpy() == truth('a', time, time + .05)).all()
    assert sample.is_whole_video and sample.video_length == LENGTH


def test_protocol_scores_the_step_before_each_segment(root):
    data = build(root, test_mode=True, protocol='strict',
                 anticipation_steps=21)
    sample = data[1]['data_samples']
    assert 'gt_action' not in sample
    assert sample.segment_labels == [dict(action=1)]
    sample = data[0]['data_samples']
    # One second before 1.6 s, the token 21 steps ahead sees up to step 10.
    assert sample.score_steps[2] == 32 - 21 and sample.score_rows[2] == [21]
    assert sample.score_rows[:2] == [[], []]


def test_reads_frames_of_segments_and_numbers_of_actions(root, tmp_path):
    (tmp_path / 'list.csv').write_text(
        '0, a, 5, 10, 1, 2, 0\n1, b, 20, 40, 0, 1, 1\n')
    data = build(root, ann_file=str(tmp_path / 'list.csv'), unit='frames',
                 metainfo=None, num_classes=3, num_verbs=3, num_nouns=4,
                 clip_frames=40)
    for item, columns, steps in ((data[0], (2, 3, 1), range(5, 10)),
                                 (data[1], (1, 2, 2), range(20, 40))):
        for key, column in zip(('verb', 'noun', 'action'), columns):
            targets = item['data_samples'].get(f'gt_{key}')
            assert targets.argmax(1).tolist() == [
                column * (step in steps) for step in range(40)]
            assert targets.sum() == 40


def test_frame_numbers_are_those_of_a_varying_rate(tmp_path):
    """20 frames per second in the first second, and then 5."""
    make('varying rate', tmp_path)
    (tmp_path / 'set.csv').write_text(
        'video,start,end,label\nvarying,20,30,run\n')
    data = build(tmp_path, unit='frames', frame_rate=10., clip_frames=48)
    # From 1 s to 3 s.
    assert data[0]['data_samples'].gt_action[:, 1].nonzero().flatten(
        ).tolist() == [*range(10, 30)]


def test_missing_and_broken_videos_are_left_out_of_training(root, tmp_path):
    (tmp_path / 'a.mp4').symlink_to(root / 'a.mp4')
    (tmp_path / 'b.mp4').write_bytes((root / 'b.mp4').read_bytes()[:3000])
    csv = str(root / 'set.csv')
    assert build(tmp_path, ann_file=csv).videos == ['a']
    with pytest.raises(RuntimeError, match='b.mp4'):
        build(tmp_path, ann_file=csv, test_mode=True)


@pytest.mark.parametrize('options, match', [
    (dict(metainfo=dict(classes=['background', 'run'])), "'jump'"),
    (dict(num_classes=4), 'num_classes'),
    (dict(metainfo=None), 'metainfo'),
    (dict(clip_frames=41), 'clip of 41 steps'),
    (dict(protocol='strict'), 'protocol'),
    (dict(protocol='strict', test_mode=True, anticipation_steps=4),
     'one second'),
    (dict(frame_rate=0), 'frame_rate'),
    (dict(ann_file='list.txt'), 'ann_file'),
    (dict(pipeline=[*PIPELINE[:3], dict(type='ThreeCrop', crop_size=64),
                    *PIPELINE[3:]], max_failures=1), 'one view')], ids=str)
def test_rejects_what_does_not_fit(root, options, match):
    with pytest.raises((ValueError, RuntimeError), match=match):
        build(root, **options)[0]


# Sampler


class Clips(list):
    test_mode = False


def sampler_of(lengths, batch_size, shuffle=False):
    """Sample clips of 8 steps, which begin at each step of videos."""
    clips = Clips(dict(video=i, work_start=start)
                  for i, length in enumerate(lengths)
                  for start in range(length - 7))
    clips.clip_stride, clips.data_list = 8, clips
    inner = DATA_SAMPLERS.build(dict(
        type='DefaultSampler', dataset=clips, shuffle=shuffle, seed=0))
    return DATA_SAMPLERS.build(dict(
        type='StatefulVideoSampler', sampler=inner, batch_size=batch_size))


def places(sampler, epoch=0):
    sampler.sampler.set_epoch(epoch)
    clips = sampler.sampler.dataset
    return [[(*clips[i].values(), ) for i in batch] for batch in sampler]


@pytest.mark.parametrize('epoch', range(3))
def test_rows_read_videos_in_order(epoch):
    lengths = [70, 33, 101, 8, 64, 50]
    sampler = sampler_of(lengths, 3, shuffle=True)
    batches = places(sampler, epoch)
    assert len(batches) == len(sampler) and {*map(len, batches)} == {3}
    for row in zip(*batches):
        for (video, start), (after, begin) in zip(row, row[1:]):
            if begin >= 8 or after == video and begin != row[0][1]:
                assert (after, begin) == (video, start + 8)
            else:
                # The video had no complete clip left, or the row repeats.
                assert start + 16 > lengths[video] or (after, begin) == row[0]
    assert places(sampler, epoch) == batches != places(sampler, epoch + 1)


def test_order_is_the_videos_without_shuffle():
    batches = places(sampler_of([16, 24, 8], 1))
    assert batches == [[(0, 0)], [(0, 8)], [(1, 0)], [(1, 8)], [(1, 16)],
                       [(2, 0)]]


def test_processes_read_different_videos(monkeypatch):
    results = []
    for rank in range(2):
        monkeypatch.setattr('mmvidattn.datasets.samplers.get_dist_info',
                            lambda: (rank, 2))
        results.append(places(sampler_of([40] * 8, 2)))
    videos = [{video for batch in batches for video, _ in batch}
              for batches in results]
    assert not videos[0] & videos[1] and len(videos[0] | videos[1]) == 8
    assert len(results[0]) == len(results[1]) == 10
