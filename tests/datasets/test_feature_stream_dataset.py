# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections import Counter

import numpy as np
import pytest
import torch
from feature_set import LENGTHS, SEGMENTS, options, write_segments, write_set
from mmaction.registry import DATASETS

from mmvidattn.datasets import FeatureStreamDataset, RandomOffsetSampler


def build(root, **kwargs):
    return FeatureStreamDataset(**options(root, **kwargs))


def test_packs_a_window(root):
    dataset = DATASETS.build(
        dict(type='FeatureStreamDataset', anticipation_steps=6,
             anticipation_rate=3, **options(root)))
    # Windows of 22 steps begin at each possible step; one video is too short.
    assert len(dataset) == sum(n - 21 for n in (70, 55, 90))
    item = dataset[30]
    inputs, sample = item['inputs'], item['data_samples']
    assert {k: (*v.shape, v.dtype) for k, v in inputs.items()} == dict(
        rgb=(22, 3, torch.float32), flow=(22, 2, torch.float32),
        padding_mask=(6, torch.bool))
    assert not inputs['padding_mask'].any()
    # Video a from step 30.
    assert (inputs['rgb'][:, 0] == 0).all()
    assert inputs['rgb'][6:, 1].tolist() == [*range(30, 46)]
    assert inputs['rgb'][0, 1] == 6 and inputs['rgb'][5, 1] == 29
    assert torch.equal(inputs['rgb'][:, 1], inputs['flow'][:, 0])
    truth = np.load(root / 'target_perframe/a.npy')
    expected = truth[[*range(30, 46), 46, 49]]
    assert sample.gt_action.tolist() == expected.tolist()
    assert sample.video_name == 'a' and sample.num_work == 16
    assert sample.horizons == [0.25, 1.0]


def test_whole_videos_have_the_dense_windows(root):
    """Windows, and the rows of a video, count each step once."""
    windows = build(root, test_mode=True, anticipation_steps=2)
    videos = build(root, test_mode=True, anticipation_steps=2,
                   windows='videos')
    assert len(videos) == 4
    seen = {name: [] for name in LENGTHS}
    # Iterating over a dataset does not end by itself.
    one_by_one = (windows[i] for i in range(len(windows)))
    for item in (videos[i] for i in range(4)):
        inputs, sample = item['inputs'], item['data_samples']
        assert sample.evaluation_mode == 'dense'
        for i, long in enumerate(inputs['long_indices']):
            window = next(one_by_one)
            rows = torch.cat([long, inputs['work_indices'][i]])
            for key in 'rgb', 'flow':
                assert torch.equal(inputs[key][rows], window['inputs'][key])
            assert torch.equal(inputs['padding_mask'][i],
                               window['inputs']['padding_mask'])
            one = window['data_samples']
            assert (sample.anticipation_steps[i] ==
                    one.anticipation_steps).all()
            for row, step in zip(one.score_rows, one.score_steps):
                assert window['inputs']['rgb'][6 + row, 1] == step
                seen[one.video_name].append(step)
        assert sample.gt_action.shape == (sample.video_length, 3)
    assert next(one_by_one, None) is None
    assert seen == {name: [*range(n)] for name, n in LENGTHS.items()}
    # The last window is longer than its video.
    sample, rgb = window['data_samples'], window['inputs']['rgb']
    assert sample.video_name == 'short' and sample.video_length == 10
    assert rgb[6:, 1].tolist() == [*range(10)] + [9] * 6
    assert not sample.gt_action[10:].any()
    # Only the steps of the video are scored.
    sample = build(root, test_mode=True)[-1]['data_samples']
    assert sample.score_rows == sample.score_steps == [*range(10)]


@pytest.fixture(params=[1, 2])
def build_segments(request, root, tmp_path):
    """Build a test set with segments at steps 0 to 59 of video a."""
    path = write_segments(tmp_path / 'segments.csv',
                          [('a', start, start + 2, 0) for start in range(60)])
    return lambda **kwargs: build(
        root, segment_file=path, anticipation_steps=8, anticipation_rate=4,
        test_mode=True, work_rate=request.param, **kwargs)


def released_places(steps, work, work_rate):
    """Return window and row of each step's score in the released code.

    It keeps all rows of the first windows, and the first token of every
    window as the score of the step after its last one. Later windows
    overwrite earlier ones.
    """
    places = {}
    for first in range(steps - work + 1):
        seen = [*range(first, first + work, work_rate)]
        if first < work_rate:
            places.update(
                (step, (first, row)) for row, step in enumerate(seen))
        places[seen[-1] + 1] = first, len(seen)
    return places


@pytest.mark.parametrize('protocol', ['testra', 'strict'])
def test_windows_and_streams_score_segments_in_time(build_segments, protocol):
    dataset = build_segments(windows='segments', protocol=protocol)
    stream = build_segments(windows='stream', protocol=protocol)[0][
        'data_samples']
    assert stream.evaluation_mode == f'{protocol}_stream'
    assert stream.segment_id == [str(i) for i in range(60)]
    assert stream.segment_labels == [dict(action=0, verb=0, noun=1)] * 60
    assert 'gt_action' not in stream
    work_rate = dataset.shape.work_rate
    places = released_places(70, 16, work_rate)
    for start in range(60):
        item = dataset[start]
        sample = item['data_samples']
        assert sample.evaluation_mode == protocol
        found = [(sample.work_indices[0], row) for row in sample.score_rows]
        if protocol == 'testra':
            # The released code scores zeros before step 8.
            assert found == [places[start]] * (start >= 8)
        else:
            assert len(found) == (start > 4)
        if not found:
            assert stream.score_rows[start] == []
            continue
        row = found[0][1]
        token = row - sample.num_work
        if protocol == 'strict':
            # The second token anticipates by one second. Features of a step
            # are available at its end.
            assert sample.anticipation_steps[token] == start
            seen = int(item['inputs']['rgb'][:, 1].max())
            assert seen == max(0, start - 4 - work_rate)
        last = sample.work_indices[min(row, sample.num_work - 1)]
        assert (stream.score_steps[start], stream.score_rows[start]) == (
            max(0, last), [max(0, token + 1)])


def test_evaluates_segments_without_labels(root, tmp_path):
    """Segments of a challenge have neither labels nor targets."""
    path = tmp_path / 'segments.csv'
    path.write_text('P01_101_0,a,100,120\nP01_101_1,a,200,260\n')
    kwargs = dict(segment_file=str(path), anticipation_steps=8,
                  anticipation_rate=4)
    test = dict(test_mode=True, data_prefix=dict(rgb='rgb', gt_action=None))
    dataset = build(root, windows='segments', **kwargs, **test)
    samples = [dataset[i]['data_samples'] for i in range(2)]
    assert [(s.segment_id, s.segment_labels) for s in samples] == [
        ('P01_101_0', {}), ('P01_101_1', {})]
    stream = build(root, windows='stream', **kwargs, **test)[0]
    assert stream['data_samples'].segment_id == ['P01_101_0', 'P01_101_1']
    with pytest.raises(ValueError, match='segment P01_101_0 lacks labels'):
        build(root, windows='segments', **kwargs)


def test_files_of_a_video_may_differ_by_a_step(tmp_path):
    write_set(tmp_path)
    # Blanks of the list do not matter.
    (tmp_path / 'videos.txt').write_text(' a\r\n\t\nb  \nc\n \nshort')
    flow = np.load(tmp_path / 'flow/b.npy')
    np.save(tmp_path / 'flow/b.npy', flow[:-1])
    targets = np.load(tmp_path / 'target_perframe/c.npy')
    # An action that ends after the features.
    targets[80:] = [0, 1, 0]
    targets = np.concatenate([targets, targets[-1:]])
    np.save(tmp_path / 'target_perframe/c.npy', targets)
    dataset = build(tmp_path, windows='videos', test_mode=True)
    assert dataset.streams.lengths == [70, 54, 90, 10]
    for i, length in enumerate(dataset.streams.lengths):
        item = dataset[i]
        assert {len(item['inputs'][k]) for k in ('rgb', 'flow')} == {length}
        assert len(item['data_samples'].gt_action) == length
    assert [s.end for s in dataset.segments.of_video[2]
            if s.start >= 80] == [90]


def test_training_windows_precede_segments(root, tmp_path):
    dataset = build(
        root, windows='segments', anticipation_steps=8, anticipation_rate=4,
        segment_file=write_segments(tmp_path / 'segments.csv', [
            *((video, start, end, label - 1) for video in SEGMENTS
              for start, end, label in SEGMENTS[video]),
            ('b', 16, 30, 0), ('b', 17, 30, 0)]))
    # Segments whose start, moved by at most 7 steps, is after 24 steps.
    assert len(dataset) == 6
    ends = Counter()
    for seed in range(200):
        np.random.seed(seed)
        sample = dataset[0]['data_samples']
        work = sample.work_indices
        assert sample.segment_labels == dict(action=1, verb=0, noun=1)
        assert work[-1] < sample.anticipation_steps[0] == work[-1] + 1
        ends[work[-1] + 1 + 8] += 1
    # The segment from 20 to 26 moves by 4 to 7 steps, so that its window
    # starts at 0 or later, but not after its end.
    assert ends == {24: pytest.approx(50, abs=25),
                    25: pytest.approx(50, abs=25),
                    26: pytest.approx(100, abs=30)}


def test_background_and_ambiguous_have_no_segments(root):
    for ignored in None, 2:
        segments = build(root, ignore_index=ignored).segments
        assert [s[2:4] + (s.labels['action'], ) for s in segments] == [
            one for video in SEGMENTS for one in sorted(
                SEGMENTS[video], key=lambda one: one[2])
            if one[2] != ignored]


def test_verbs_and_nouns(root, tmp_path):
    widths = dict(gt_verb=4, gt_noun=5)
    for part, width in widths.items():
        (tmp_path / part).mkdir()
        for video, length in LENGTHS.items():
            np.save(tmp_path / part / f'{video}.npy',
                    np.eye(width, dtype=np.uint8)[np.arange(length) % width])
    item = build(root, data_prefix=dict(
        rgb='rgb', gt_action='target_perframe',
        **{part: str(tmp_path / part) for part in widths}))[3]
    for part, width in widths.items():
        assert item['data_samples'].get(part).argmax(1).tolist() == [
            t % width for t in range(3, 19)]
    assert set(item['inputs']) == {'rgb', 'padding_mask'}


def test_windows_may_begin_before_the_video(root):
    dataset = build(root, long_steps=0, pad_start=True)
    # Each step is the last of a window, even in a video shorter than one.
    assert len(dataset) == sum(LENGTHS.values())
    truth = np.load(root / 'target_perframe/a.npy')
    for last in 0, 3, 14, 15, 40:
        item = dataset[last]
        rows = item['inputs']['rgb'][:, 1].tolist()
        padded = max(0, 15 - last)
        assert rows == [0] * padded + [*range(max(0, last - 15), last + 1)]
        targets = item['data_samples'].gt_action.numpy()
        assert not targets[:padded].any()
        assert (targets[padded:] == truth[max(0, last - 15):last + 1]).all()
    # The padding is zeros, and not copies of the first row, which contains the
    # number of the video (2).
    first = sum(LENGTHS[video] for video in 'ab')
    assert dataset[first]['inputs']['rgb'][:, 0].tolist() == [0] * 15 + [2]


def test_future_targets_begin_two_steps_after_the_window(root):
    kwargs = dict(anticipation_steps=4, future_steps=6)
    dataset = build(root, **kwargs)
    truth = np.load(root / 'target_perframe/a.npy')
    for start in 0, 40, 50:
        sample = dataset[start]['data_samples']
        steps = [min(start + 16 + 1 + i, 69) for i in range(6)]
        assert sample.gt_future_action.tolist() == truth[steps].tolist()
        assert len(sample.gt_action) == 16 + 4
    tested = build(root, windows='dense', test_mode=True, **kwargs)
    assert 'gt_future_action' not in tested[0]['data_samples']


def save(name, array, **options):
    return lambda root: np.save(root / name, array, **options)


def write(name, text):
    return lambda root: (root / name).write_text(text)


# Options, or a function that damages a file.
@pytest.mark.parametrize('given, error', [
    (dict(pad_start=True, long_steps=0, test_mode=True),
     'pad_start is only for training'),
    (dict(long_steps=10), 'long_steps must be a multiple .* got 10'),
    (dict(windows='segments'), 'needs segment_file'),
    (dict(windows='stream'), "'stream' is only for evaluation"),
    (dict(windows='stream', test_mode=True, work_rate=2), 'needs work_rate=1'),
    (dict(windows='stream', test_mode=True, segment_file='segments.csv'),
     "windows='stream' needs anticipation_steps to score segments"),
    (dict(windows='segments', test_mode=True, segment_file='segments.csv',
          protocol='strict', anticipation_steps=4), 'one second ahead'),
    (dict(data_prefix=dict(rgb='rgb')), 'must have the folders of gt_action'),
    (dict(ann_file='none.txt'), 'ann_file not found: .*none.txt'),
    (dict(metainfo=dict(classes='none.txt')),
     'file of classes not found: none.txt'),
    (dict(metainfo=dict(classes=['a', 'b'])),
     'target_perframe/a.npy must have rows of 2, as in the .* got 3'),
    (dict(feature_dims=dict(flow=9)), 'flow/a.npy must have rows of 9'),
    (dict(work_steps=160), 'no video has a window of 160 steps'),
    *((write('segments.csv', f'0, a, {line}\n'), error) for line, error in (
        ('30, 20, 0, 0, 0', r'line 1: .* 0 <= start < end'),
        ('3, 20, 0, 0', 'line 1: expected id, video, start_frame'),
        ('3, 20, 0, 0, 2', 'action must be below 2, got 2'),
        ('525, 530, 0, 0, 1', 'begins in step 70, but a has 70'))),
    (lambda r: (r / 'flow/b.npy').unlink(), 'no file .*flow/b.npy'),
    (save('flow/b.npy', np.zeros((53, 2))), 'b: all files must have the same '
     '.*rgb/b.npy with 55, .*flow/b.npy with 53'),
    (save('flow/b.npy', np.zeros((55, 4))),
     'flow/b.npy must have rows of 2, as in .*flow/a.npy, got 4'),
    (lambda r: [np.save(path, np.load(path).T)
                for path in (r / 'rgb').glob('*.npy')],
     r'rgb/\w+.npy must have the shape .* transposition .* fits: np.save'),
    (save('flow/b.npy', np.zeros(55)),
     r'flow/b.npy must be numbers of shape \(steps, width\)'),
    (save('flow/b.npy', np.array([{}]), allow_pickle=True),
     'flow/b.npy must be .* no unpickling'),
    (write('flow/b.npy', 'PK\x03\x04 cut'), 'flow/b.npy must be a'),
    (save('rgb/a.npy', np.full((70, 3), np.nan)),
     'rgb/a.npy must be finite, got nan or infinity in step'),
    (save('target_perframe/a.npy', np.full((70, 3), 0.5)),
     'target_perframe/a.npy must have targets of 0 or 1, got 0.5 in step'),
    (lambda r: [np.save(r / f / 'short.npy', np.zeros((0, w)))
                for f, w in (('rgb', 3), ('flow', 2), ('target_perframe', 3))],
     'short: .* is empty'),
    (write('videos.txt', 'a\n\n b \nc\nb\na\na\n'),
     'each video once, got a, b twice$'),
    (write('videos.txt', ' \n\n'),
     'must list each video once, got no videos$')])
def test_rejects_invalid_options_and_files(tmp_path, given, error):
    write_set(tmp_path)
    if callable(given):
        given(tmp_path)
        path = tmp_path / 'segments.csv'
        given = dict(segment_file=str(path)) if path.exists() else {}
    with pytest.raises(ValueError, match=error):
        build(tmp_path, **given)[0]


# Sampler


@pytest.fixture(scope='module')
def dataset(root):
    return build(root, anticipation_steps=2, pipeline=[])


def draw(sampler, epoch):
    sampler.set_epoch(epoch)
    return list(sampler)


@pytest.mark.parametrize('stride, shuffle', [(None, True), (4, False)])
def test_windows_of_an_epoch_follow_each_other(dataset, stride, shuffle):
    sampler = RandomOffsetSampler(dataset, shuffle, 0, stride)
    # Windows of 18 steps, in videos of 70, 55 and 90 steps.
    stride, different = stride or 18, 0
    assert len(sampler) == round((53 + 38 + 73) / stride)
    for epoch in range(4):
        windows, starts = draw(sampler, epoch), {}
        assert len(windows) == len(sampler)
        assert not shuffle or windows != sorted(windows)
        for index in windows:
            info = dataset.data_list[index]
            starts.setdefault(info['video'], set()).add(info['work_start'])
        # Each video has its own offset.
        offsets = [{start % stride for start in starts[i]} for i in range(3)]
        assert all(len(one) == 1 for one in offsets)
        different += offsets[0] != offsets[1]
        # At the end of an epoch, windows may be repeated or left out.
        for one in [*starts.values()][:-1] * (not shuffle):
            assert one == {*range(min(one), max(one) + 1, 4)} and min(one) < 4
    assert different
    assert len(RandomOffsetSampler(dataset, stride=10**6)) == 1


def test_epoch_depends_only_on_seed_and_number(dataset, monkeypatch):
    one, two = (RandomOffsetSampler(dataset, seed=3) for _ in range(2))
    draw(one, 0)
    assert draw(one, 4) == draw(two, 4) != draw(two, 5)
    assert draw(two, 4) != draw(RandomOffsetSampler(dataset, seed=4), 4)
    # Two processes share the windows.
    parts = []
    for rank in range(2):
        monkeypatch.setattr('mmvidattn.datasets.samplers.get_dist_info',
                            lambda: (rank, 2))
        parts.append(draw(RandomOffsetSampler(dataset, seed=3), 4))
    assert len(parts[0]) == len(parts[1])
    assert {*parts[0], *parts[1]} == {*draw(one, 4)}
    assert len({*parts[0]} & {*parts[1]}) <= 1
