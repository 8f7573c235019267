# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Plans of runs: splits of clips, and of events in long videos."""
import csv
import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from made_videos import write_gray

from mmvidattn.datasets.annotations.segment_csv import read_segment_csv
from mmvidattn.finetune import FineTuneOptions
from mmvidattn.finetune.plan import make_plan
from mmvidattn.finetune.split import find_copies

FPS, SECONDS = 5, 40


@pytest.fixture
def plan_of(capsys):
    """Function that returns a plan, and what it prints."""
    def plan(source, **options):
        made = make_plan(FineTuneOptions(
            source, quick=True, workers=1, **options))
        return made, ' '.join(capsys.readouterr().out.split())

    return plan


@pytest.fixture
def root(tmp_path):
    """Eight videos of two classes, each with a copy of another kind."""
    for i in range(8):
        path = tmp_path / f'mine/{"ab"[i % 2]}/{i}.mp4'
        write_gray(path, range(40 * (i % 4), 40 * (i % 4) + 40))
        # Videos of equal size differ, too.
        with open(path, 'ab') as file:
            file.write(b'%08d' % i)
        other = path.with_name(f'copy{i}.mp4')
        [shutil.copy, lambda a, b: b.symlink_to(a), os.link][i % 3](
            path, other)
    return tmp_path / 'mine'


def check_sides(root, plan):
    """Check that no content is in two splits; return the splits."""
    used = {name: {(root / file).resolve().read_bytes() for file in side}
            for name, side in plan.videos.items()}
    assert len(set().union(*used.values())) == sum(map(len, used.values()))
    return {name for name, side in used.items() if side}


def test_finds_copies_links_and_paths(root):
    first = {'a/0.mp4': ['./a/0.mp4', 'a/copy0.mp4', 'b/../a/0.mp4'],
             'b/1.mp4': ['b/copy1.mp4'], 'a/2.mp4': []}
    expected = {name: one for one, others in first.items()
                for name in [one, *others]}
    assert find_copies(root, expected) == expected


@pytest.mark.parametrize('seed', range(2))
def test_copies_stay_in_one_split(root, plan_of, seed):
    plan, printed = plan_of(root, seed=seed)
    assert check_sides(root, plan) == {'train', 'val'}
    assert plan.suffix == 'txt' and 'cut at the end' not in printed
    assert ('note: 8 videos with the content of another one, kept in its '
            'split: a/copy0.mp4 (a/0.mp4)') in printed


def test_copies_of_streams_stay_in_one_split(root, tmp_path, plan_of):
    # Copies without events are background.
    path = tmp_path / 'mine.json'
    path.write_text(json.dumps(dict(database={
        video.relative_to(root).as_posix(): dict(annotations=[
            dict(label=label, segment=[1, 3])
            for label in 'xy' * (video.stem not in ('copy2', 'copy5'))])
        for video in root.rglob('*.mp4')})))
    plan, printed = plan_of(path, stream=True, videos=root)
    assert check_sides(root, plan) == {'train', 'val', 'test'}
    assert sum(map(len, plan.videos.values())) == 16
    assert '8 videos with the content of another one' in printed


def test_similar_classes_and_copies_in_given_splits_are_reported(
        root, plan_of):
    shutil.copytree(root / 'a', root / 'A')
    plan, printed = plan_of(root)
    check_sides(root, plan)
    assert ('several names of a class differ only in blanks or case: '
            "'A' and 'a'") in printed
    path = root / 'mine.csv'
    path.write_text('file,label,split\na/0.mp4,x,train\na/copy0.mp4,x,val\n'
                    'b/1.mp4,y,train\nb/3.mp4,y,val\n')
    assert ('note: 1 video with the content of a video in another of the '
            'given splits, so scores will be too high: a/copy0.mp4 (a/0.mp4)'
            ) in plan_of(path)[1]


@pytest.fixture(scope='module')
def videos(tmp_path_factory):
    root = tmp_path_factory.mktemp('videos')
    for i in range(6):
        write_gray(root / f'room {i % 2}/day{i}.mp4',
                   range(8 * i, 8 * i + FPS * SECONDS), FPS)
    return root


def write_rows(path, rows, *more):
    with open(path, 'w', newline='') as file:
        csv.writer(file).writerows([
            ('video', 'start', 'end', 'label', *more), *rows])
    return path


@pytest.fixture
def events_of(plan_of, videos, tmp_path):
    """Function that returns the plan of events, and what it prints."""
    def plan(rows, *columns, **options):
        if not isinstance(rows, Path):
            rows = write_rows(tmp_path / 'mine.csv', rows, *columns)
        return plan_of(rows, stream=True, videos=videos, **options)

    return plan


def days(number=6):
    return [(f'day{i}', 2 + 10 * k, 6 + 10 * k, label)
            for i in range(number) for k, label in enumerate(('walk', 'run'))]


def test_splits_videos_and_writes_lists(events_of, tmp_path):
    plan, printed = events_of(days() + [
        ('day5', 30, 99, 'run'), ('day5', 60, 61, 'run'),
        ('day0', 3, 3, 'run'), ('day1', 5, '', 'x')])
    assert {name: len(side) for name, side in plan.videos.items()} == dict(
        train=4, val=1, test=1)
    assert plan.classes == ['background', 'run', 'walk']
    files = {f'day{i}': f'room {i % 2}/day{i}.mp4' for i in range(6)}
    assert sorted(video for side in plan.videos.values() for video in side
                  ) == sorted(files.values())
    plan.write_lists(tmp_path)
    assert (tmp_path / 'classes.txt').read_text() == 'background\nrun\nwalk\n'
    for name, side in plan.videos.items():
        lines = (tmp_path / f'{name}_videos.txt').read_text().splitlines()
        assert lines == side
    rows = sorted((files[name], *rest) for name, *rest in days() + [
        ('day5', 30, SECONDS, 'run')])
    assert rows == sorted(
        (one.video, one.start, one.end, one.labels['action'])
        for name in plan.splits
        for one in read_segment_csv(tmp_path / f'{name}.csv'))
    for words in ('13 events in 6 videos of 4.0 minutes',
                  '1 cut at the end of room 1/day5.mp4, 1 dropped after',
                  'note: 2 events without a length or an end left out: '
                  'room 0/day0.mp4 at 3 s, room 1/day1.mp4 at 5 s'):
        assert words in printed


def test_keeps_given_subsets(events_of):
    names = ['train', 'Training', 'validation', 'val', 'test', 'testing']
    plan, _ = events_of([(*row, names[i // 2])
                         for i, row in enumerate(days())], 'subset')
    for name, one, two in ('train', 0, 1), ('val', 2, 3), ('test', 4, 5):
        assert plan.videos[name] == [
            f'room 0/day{one}.mp4', f'room 1/day{two}.mp4']


def test_groups_stay_together_and_train_keeps_each_class(events_of):
    for seed in range(3):
        plan, _ = events_of([(*row, f'room {i // 4}') for i, row in
                             enumerate(days())], 'group', seed=seed)
        # Most videos are for training, so that no group is left to test.
        assert {name: len(side) for name, side in plan.videos.items()} == dict(
            train=4, val=2)
        for side in plan.videos.values():
            numbers = {int(Path(video).stem[3:]) for video in side}
            assert {n ^ 1 for n in numbers} == numbers
        assert {one.label for one in plan.splits['train']} == {'walk', 'run'}


def test_reads_other_formats_and_videos_without_events(events_of, tmp_path):
    """A video of an ActivityNet file without events is background."""
    path = tmp_path / 'mine.json'
    path.write_text(json.dumps(dict(database={name: dict(
        subset=subset, annotations=[dict(label='x', segment=[3, 9])] * events)
        for name, subset, events in (
            ('day0', 'training', 1), ('day1', 'training', 0),
            ('day2', 'validation', 1), ('day3', 'validation', 0),
            ('day4', 'testing', 0), ('day9', 'training', 1))})))
    plan, printed = events_of(path)
    assert plan.videos == dict(train=['room 0/day0.mp4', 'room 1/day1.mp4'],
                               val=['room 0/day2.mp4', 'room 1/day3.mp4'])
    assert {name: [one.file for one in side] for name, side in
            plan.splits.items()} == {name: side[:1] for name, side in
                                     plan.videos.items()}
    assert 'note: 1 annotated video left out, because' in printed
    assert 'note: room 0/day4.mp4 left out: no video of the subset testing ' \
        'has events' in printed


def test_merges_several_files(events_of, tmp_path):
    """Also of different formats, and videos with different names."""
    first = days(4)
    more = write_rows(tmp_path / 'more.csv', [
        ('room 0/day0.mp4', 2, 6, 'walk'), ('day0', 2, 6, 'run'),
        ('day4', 1, 9, 'jump'), ('day5', 1, 9, 'jump'), ('day9', 1, 2, 'run')])
    third = tmp_path / 'third.json'
    third.write_text(json.dumps(dict(database=dict(day5=dict(
        annotations=[dict(label='jump', segment=[20, 30])])))))
    plan, printed = events_of(first, more=(more, third))
    assert Counter((Path(one.file).stem, *one[2:4], one.label)
                   for side in plan.splits.values() for one in side
                   ) == Counter([
                       *first, ('day0', 2, 6, 'run'), ('day4', 1, 9, 'jump'),
                       ('day5', 1, 9, 'jump'), ('day5', 20, 30, 'jump')])
    assert plan.classes == ['background', 'jump', 'run', 'walk']
    assert (f'events: 8 from {tmp_path / "mine.csv"}, 3 from {more}, 1 from '
            f'{third}; left out: 1 repeated event') in printed
    assert '1 annotated video left out' in printed
    write_rows(more, [('day4', 1, 9, 'walk', 'train')], 'subset')
    with pytest.raises(ValueError, match='1 of 9 events have a subset'):
        events_of(first, more=(more, ))


@pytest.mark.parametrize('subsets, splits, note', [
    (['train', 'val'], ['train', 'val'],
     'nothing is left to test: the metrics are of'),
    (['train'], ['train'],
     'no validation videos: the last checkpoint is kept instead of the best '
     'one, and thresholds are not tuned, and there are no metrics')], ids=str)
def test_notes_missing_splits(events_of, subsets, splits, note):
    plan, printed = events_of([
        (*row, subsets[i // 2]) for i, row in enumerate(days(len(subsets)))],
        'subset')
    assert [*plan.splits] == splits and f'note: {note}' in printed


@pytest.mark.parametrize('column, rows, error', [
    ('', [], 'mine.csv lacks events to learn$'),
    ('', [('day0', 1, 2, '')], 'line 2: names of videos, .* got'),
    ('', [('day0', 3, 3, 'x')], 'to learn: 1 event without a length'),
    ('', [('day0', 1, 2, 'background')], "other than 'background'"),
    ('', [('day9', 1, 2, 'x')], 'lacks events to learn: .* lacks day9$'),
    ('', [('day0', 90, 92, 'x')], 'no event starts within a readable'),
    ('group', [('day0', 1, 2, 'x', 'anna'), ('day0', 2, 3, 'x', 'bob')],
     'line 3: the group of .*day0.mp4 must be anna, got bob'),
    ('subset', [('day0', 1, 2, 'a', 'train'), ('day1', 1, 2, 'b', 'val')],
     r'1 class without training events: b \(all in val\); add'),
    ('subset', [('day0', 1, 2, 'a', 'train'), ('day1', 1, 2, 'a', 'vla')],
     "line 3: subset must be train, val or test, got 'vla'"),
    ('subset', [('day0', 1, 2, 'a', 'val')], 'no video has the subset train'),
    ('subset', [('day0', 1, 2, 'a', 'train'), ('day0', 4, 5, 'a', 'test')],
     'must have one subset')], ids=str)
def test_rejects_bad_annotations(events_of, column, rows, error):
    with pytest.raises(ValueError, match=error):
        events_of(rows, *[column] * bool(column))
