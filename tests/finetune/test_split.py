# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import random
from collections import Counter

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from mmvidattn.datasets.annotations.labeled_videos import LabeledVideo
from mmvidattn.finetune.split import split_videos


def labels(side):
    return Counter(video.label for video in side)


@pytest.mark.parametrize('share, expected', [
    (0.2, dict(a=4, b=2, c=1)), (0.5, dict(a=10, b=5, c=1)),
    (0.01, dict(a=1, b=1, c=1))])
def test_takes_share_of_each_class(share, expected):
    numbers = dict(a=20, b=10, c=2, lonely=1)
    videos = [LabeledVideo(f'{name}/{i}.mp4', name)
              for name, number in numbers.items() for i in range(number)]
    splits = split_videos(videos, share, seed=0)
    assert labels(splits['val']) == expected
    assert labels(splits['train']) + labels(splits['val']) == numbers
    assert splits == split_videos(videos, share, seed=0)
    assert splits != split_videos(videos, share, seed=1)
    assert {*splits['train']} | {*splits['val']} == {*videos}


def spread(splits):
    """Return the files and groups that are in both splits."""
    train, val = ({(name, getattr(video, name)) for video in splits.get(
        side, ()) for name in ('file', 'group')} for side in ('train', 'val'))
    return train & val - {('group', '')}


@pytest.mark.parametrize('share', [0.2, 0.5])
def test_no_further_class_could_be_validated(share):
    """Each unit of such a class is the last one of some class in training."""
    draw = random.Random(0)
    for _ in range(150):
        files, classes, groups = (draw.randint(1, n) for n in (9, 4, 4))
        videos = [LabeledVideo(
            f'{draw.randrange(files)}', f'{draw.randrange(classes)}', i, i + 1,
            group=draw.choice(['', f'{draw.randrange(groups)}']))
            for i in range(draw.randint(1, 12))]
        splits = split_videos(videos, share, 0)
        train, val = splits['train'], splits.get('val', [])
        assert not spread(splits)
        assert {*labels(train)} == {v.label for v in videos}
        # Videos that share a file or a group.
        graph = [[a.file == b.file or bool(a.group) and a.group == b.group
                  for b in videos] for a in videos]
        numbers = connected_components(np.array(graph))[1]
        units = [[video for video, j in zip(videos, numbers) if i == j]
                 for i in {*numbers}]
        left = [unit for unit in units if unit[0] in train]
        counts = Counter(label for unit in left for label in {*labels(unit)})
        files = {video.file for video in videos}
        room = max((len(files) - 1) // 2, int(share * len(files)))
        room -= len({video.file for video in val})
        assert room >= 0
        for unit in left:
            if (len({video.file for video in unit}) <= room
                    and {*labels(unit)} - {*labels(val)}):
                assert min(counts[label] for label in labels(unit)) == 1


@pytest.mark.parametrize('number, sizes', [
    (1, (1, 0, 0)), (2, (2, 0, 0)), (3, (2, 1, 0)), (4, (3, 1, 0)),
    (5, (3, 1, 1)), (6, (4, 1, 1)), (10, (7, 2, 1))])
def test_training_has_most_of_a_small_set(number, sizes):
    """Long videos that show both classes."""
    events = [LabeledVideo(f'{i}', label, 3 * k, 3 * k + 2)
              for i in range(number) for k, label in enumerate('xyxy')]
    for seed in range(3):
        splits = split_videos(events, .2, seed, with_test=True)
        assert tuple(len({one.file for one in splits.get(name, [])})
                     for name in ('train', 'val', 'test')) == sizes
    # Each class has its own videos, and one class has only one video.
    videos = [LabeledVideo(f'{i}', 'xxyyz'[i], i) for i in range(5)]
    splits = split_videos(videos, .2, number, with_test=True)
    assert {*labels(splits['train'])} == {*'xyz'}
    assert len(splits['train']) >= 3


@pytest.mark.parametrize('given, share, sizes', [
    (['test', 'train', 'val', 'train'], .5, dict(train=2, val=1, test=1)),
    # If no video has the split 'val', a share of the training videos is used.
    (['test', 'train', 'train', 'train'], .3, dict(train=2, val=1, test=1)),
    (['test', 'train', 'train', 'train'], 0, dict(train=3, test=1))])
def test_keeps_given_splits(given, share, sizes):
    splits = split_videos([LabeledVideo(f'{i}', 'x', split=name)
                           for i, name in enumerate(given)], share, 0)
    assert {name: len(side) for name, side in splits.items()} == sizes
    assert all(one.split in (name, 'train') and (
        'val' not in given or one.split == name)
        for name, side in splits.items() for one in side)
