# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

from mmvidattn.datasets.annotations.custom.marks_csv import Mark
from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.finetune.streams.continuation import (
    Lists,
    correct_lists,
    read_lists,
)

CLASSES = ['background', 'run', 'walk']


def event(video, start, end, label):
    where = f'{video} {start}'
    return VideoSegment(where, video, start, end, dict(action=label), where)


@pytest.fixture
def lists():
    return Lists(
        dict(train=['a/1.mp4'], val=['a/2.mp4'], test=['b/1.mp4']),
        dict(train=[event('a/1.mp4', 0, 10, 'run')],
             val=[event('a/2.mp4', 0, 10, 'run')],
             test=[event('b/1.mp4', 20, 30, 'walk')]), {})


@pytest.fixture
def root(tmp_path):
    for name in 'a/1.mp4', 'a/2.mp4', 'a/3.mp4', 'b/1.mp4':
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def spans_of(lists, split):
    return [(one.video, one.start, one.end, one.labels['action'])
            for one in lists.events[split]]


def test_marks_correct_the_split_of_their_video(lists, root):
    new = correct_lists(lists, [
        Mark('/x/a/1.mp4', 4, 6, 'run', 'wrong', 'run'),
        Mark('a/1.mp4', 20, 25, 'walk', 'missed'),
        Mark('a/2.mp4', 0, 9, 'run', 'right', 'run'),
        Mark('b/1.mp4', 20, 30, 'run', 'class', 'walk'),
        Mark('camera', 1, 2, 'run', 'right', 'run', began='2026-01-01')],
        root, CLASSES)
    assert new.videos == lists.videos and not new.spans
    assert sorted(spans_of(new, 'train')) == [
        ('a/1.mp4', 0, 4, 'run'), ('a/1.mp4', 6, 10, 'run'),
        ('a/1.mp4', 20, 25, 'walk')]
    assert new.events['val'] == lists.events['val']
    assert spans_of(new, 'test') == [('b/1.mp4', 20, 30, 'run')]


def test_new_videos_are_labeled_in_marked_parts_only(lists, root):
    marks = [Mark('a/3.mp4', 0, 4, 'run', 'right', 'run'),
             Mark('a/3.mp4', 3, 8, 'walk', 'wrong', 'walk')]
    new = correct_lists(lists, marks, root, CLASSES)
    assert new.videos['train'] == ['a/1.mp4', 'a/3.mp4']
    assert new.spans == {'a/3.mp4': [(0, 8)]}
    assert spans_of(new, 'train')[1:] == [('a/3.mp4', 0, 4, 'run')]
    # A third round adds further parts of this video.
    again = correct_lists(
        new, [Mark('3', 20, 24, 'walk', 'missed')], root, CLASSES)
    assert again.videos['train'] == new.videos['train']
    assert again.spans == {'a/3.mp4': [(0, 8), (20, 24)]}


def test_writes_and_reads_lists(lists, root, tmp_path):
    new = correct_lists(lists, [Mark('a/3.mp4', 0.5, 4, 'run', 'missed')],
                        root, CLASSES)
    new.write(tmp_path / 'out/data')
    found = read_lists(tmp_path / 'out')
    assert found.videos == new.videos and found.spans == new.spans
    assert all(spans_of(found, split) == spans_of(new, split)
               for split in new.videos)


@pytest.mark.parametrize('mark, error', [
    (Mark('a/1.mp4', 0, 1, 'swim', 'missed'), 'classes run, walk, got swim'),
    (Mark('a/9.mp4', 0, 1, 'run', 'missed'), 'a/9.mp4 is not a file')])
def test_rejects_unknown_classes_and_videos(lists, root, mark, error):
    with pytest.raises(ValueError, match=error):
        correct_lists(lists, [mark], root, CLASSES)
