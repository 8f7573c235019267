# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.

import pytest
from feature_set import options, write_set

from mmvidattn.datasets import FeatureStreamDataset, RandomOffsetSampler


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    root = write_set(tmp_path_factory.mktemp('features'))
    return FeatureStreamDataset(**options(
        root, anticipation_steps=2, pipeline=[]))


def draw(sampler, epoch):
    sampler.set_epoch(epoch)
    return list(sampler)


def test_windows_of_an_epoch_do_not_overlap(dataset):
    sampler = RandomOffsetSampler(dataset, seed=0)
    # Windows of 18 steps, in videos of 70, 55 and 90 steps.
    assert len(sampler) == round((53 + 38 + 73) / 18)
    for epoch in range(5):
        windows = draw(sampler, epoch)
        assert len(windows) == len(sampler)
        by_video = {}
        for index in windows:
            info = dataset.data_list[index]
            by_video.setdefault(info['video'], set()).add(info['work_start'])
        for starts in by_video.values():
            assert len({start % 18 for start in starts}) == 1


def test_small_stride_lets_windows_overlap(dataset):
    sampler = RandomOffsetSampler(dataset, seed=0, shuffle=False, stride=4)
    assert len(sampler) == round((53 + 38 + 73) / 4)
    assert len(RandomOffsetSampler(dataset, stride=10**6)) == 1
    for epoch in range(3):
        starts = {}
        for index in draw(sampler, epoch):
            info = dataset.data_list[index]
            starts.setdefault(info['video'], []).append(info['work_start'])
        # At the end of an epoch, windows may be repeated or left out.
        for one in list(starts.values())[:-1]:
            one = sorted(set(one))
            assert one == [*range(one[0], one[-1] + 1, 4)] and one[0] < 4


def test_epoch_depends_only_on_seed_and_number(dataset):
    one, two = (RandomOffsetSampler(dataset, seed=3) for _ in range(2))
    draw(one, 0)
    assert draw(one, 4) == draw(two, 4) != draw(two, 5)
    assert draw(two, 4) != draw(RandomOffsetSampler(dataset, seed=4), 4)
