# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Windows of features: the long memory, and augmentation with other clips."""
import json

import numpy as np
import pytest
from feature_set import PIPELINE, SEGMENTS, options, write_segments

from mmvidattn.datasets import FeatureStreamDataset
from mmvidattn.datasets.feature_windows import (
    dense_long_indices,
    long_padding_mask,
    training_long_indices,
)


@pytest.fixture(scope='session')
def golden_sampler(shared_dir):
    return json.loads(
        (shared_dir / 'goldens/testra/golden_sampler.json').read_text())


def check(found, number, num_masked, expected):
    """Compare indices; both ends of long lists are stored."""
    assert len(found) == number
    assert long_padding_mask(found).sum() == num_masked
    if len(expected) < number:
        half = len(expected) // 2
        found = [*found[:half], *found[-half:]]
    assert [*found] == expected


@pytest.mark.parametrize('name', [
    'thumos_testra_box_small', 'thumos_lstr_small', 'ek100_testra_box_small',
    'thumos_testra_box_full', 'ek100_testra_box_full'])
def test_dense_golden(golden_sampler, name):
    case = golden_sampler[name]
    assert len(case['rows']) > 10
    for row in case['rows']:
        result = dense_long_indices(row['work_start'], case['long_len'],
                                    case['rate'], 'lstr' not in name)
        check(result, case['n'], row['num_masked'],
              [i for i in row['long_indices'] if i != '...'])


def test_training_golden(golden_sampler):
    for row in golden_sampler['train_segment_sampler']:
        indices = training_long_indices(
            row['work_start'], row['long_len'], row['long_len'] // row['n'],
            row['repo'] == 'lstr')
        check(indices, row['n'], row['num_masked'], row['indices'])


# MixClip

NAMES = [*SEGMENTS]


def windows(root, transform, work_start=50, number=60, **kwargs):
    """Yield the window of video c that begins at ``work_start``."""
    dataset = FeatureStreamDataset(**options(
        root, long_steps=48, long_rate=1, pipeline=[transform, *PIPELINE],
        **kwargs))
    index = dataset.data_list.index(dict(video=2, work_start=work_start))
    for seed in range(number):
        np.random.seed(seed)
        yield dataset[index]


def is_original(item, num_long=48):
    """Return which rows of the long memory belong to video c."""
    return item['inputs']['rgb'][:num_long, 0].numpy() == 2


def class_of(video, step):
    for start, end, label in SEGMENTS[NAMES[int(video)]]:
        if start <= step < end:
            return label
    return 0


@pytest.mark.parametrize('kind', ['MixClip', 'MixClipPlusPlus'])
@pytest.mark.parametrize('mode', ['crop', 'single'])
def test_replaces_actions_by_the_same_class_of_other_videos(root, mode, kind):
    # Steps 2 to 50 of c: class 1 in 10 to 30, class 2 in 40 to 42.
    changed = set()
    for item in windows(root, dict(type=kind, prob=1, mode=mode)):
        long = item['inputs']['rgb'][:48].numpy()
        for step, (video, other, _) in zip(range(2, 50), long):
            if video == 2:
                assert other == step
                continue
            changed.add(step)
            assert class_of(video, other) == class_of(2, min(step, 41)) > 0
    if mode == 'crop':
        assert changed == {*range(10, 30), 40, 41}
    else:
        # Class 1 has no longer action. As released, one step more.
        assert changed == {40, 41, 42}


def test_crops_longer_and_pads_shorter_actions(root):
    crops, pads = set(), set()
    for item in windows(root, dict(type='MixClip', prob=1)):
        rgb = item['inputs']['rgb'].numpy()
        video, steps = rgb[38, 0], rgb[38:40, 1].tolist()
        start = SEGMENTS[NAMES[int(video)]][{0: 1, 1: 0}[int(video)]][0]
        assert steps[1] == steps[0] + 1
        crops.add((video, steps[0] - start))
        video, steps = rgb[8, 0], rgb[8:28, 1].tolist()
        start, end = next(s[:2] for s in SEGMENTS[NAMES[int(video)]]
                          if s[0] <= steps[0] < s[1])
        expected = [min(t, end - 1) for t in range(start, start + 20)]
        assert steps == expected
        pads.add((video, start))
    # All crops of 2 of the 6 steps in a and of the 10 in b, and all actions of
    # class 1 in other videos.
    assert crops == {(0, i) for i in range(5)} | {(1, i) for i in range(9)}
    assert pads == {(0, 5), (0, 60), (1, 30), (3, 2)}


def test_prob_applies_to_each_action(root):
    replaced = ~np.array([is_original(item)[[10, 38]] for item in windows(
        root, dict(type='MixClip', prob=0.3), number=150)])
    assert np.abs(replaced.mean(axis=0) - 0.3).max() < 0.09
    assert abs(replaced.all(axis=1).mean() - 0.09) < 0.05


@pytest.mark.parametrize('end, stays', [(68, False), (70, False), (72, True)])
def test_replaces_actions_that_end_before_the_segment(
        root, tmp_path, end, stays):
    """An action may end in the work memory, between window and segment."""
    path = write_segments(tmp_path / 'segments.csv', [
        ('c', 30, end, 0), ('c', 70, 71, 1), ('a', 5, 12, 0)])
    dataset = FeatureStreamDataset(**options(
        root, long_steps=48, long_rate=1, segment_file=path,
        pipeline=[dict(type='MixClip', prob=1), *PIPELINE],
        windows='segments', anticipation_steps=8))
    index, = (i for i, info in enumerate(dataset.data_list)
              if dataset.segments[info['segment']].start == 70)
    item = dataset[index]
    first = item['data_samples'].work_indices[0]
    assert 30 < first < 68
    steps = np.arange(first - 48, first)
    assert {*steps[~is_original(item)]} == (
        set() if stays else {*range(30, first)})


@pytest.mark.parametrize('segments, prob, replaced', [
    ([('c', 60, 64, 0), ('a', 5, 9, 0)], 1, 0),
    ([('c', 60, 64, 0), ('a', 5, 10, 0)], 1, 5),
    ([('c', 2, 5, 0), ('c', 7, 10, 0), ('c', 60, 64, 0), ('a', 5, 10, 0)],
     0.5, 0)], ids=['equal length', 'longer', 'fraction in the memory'])
def test_released_choice(root, tmp_path, segments, prob, replaced):
    # The memory has steps 22 to 70.
    for item in windows(
            root, dict(type='MixClip', prob=prob, mode='single'), 70, 20,
            segment_file=write_segments(tmp_path / 'segments.csv', segments)):
        assert (~is_original(item)).sum() == replaced


def test_plus_plus_blends_work_memory_and_targets(root):
    # Steps 30 to 46 of c have class 2 in 40 to 42.
    blended, labels = 0, set()
    transform = dict(type='MixClipPlusPlus', prob=1, weight=0.25)
    for item in windows(root, transform, work_start=30):
        rgb = item['inputs']['rgb'][48:].numpy()
        targets = item['data_samples'].gt_action.numpy()
        assert (rgb[:10, 0] == 2).all() and (rgb[12:, 0] == 2).all()
        for row in (10, 11):
            if rgb[row, 0] == 2:
                assert targets[row].tolist() == [0, 0, 1]
                continue
            blended += 1
            # 0.75 from video 2 and 0.25 from the other video.
            other = round(4 * (rgb[row, 0] - 1.5))
            step = 4 * (rgb[row, 1] - 0.75 * (30 + row))
            label = class_of(other, round(float(step)))
            labels.add(label)
            expected = [0, 0, 0.75]
            expected[label] += 0.25
            assert targets[row].tolist() == pytest.approx(expected)
    assert blended > 20 and labels == {1, 2}
