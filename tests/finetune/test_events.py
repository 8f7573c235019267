# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Plans of runs on events in long videos."""
import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from mmvidattn.datasets.annotations.segment_csv import read_segment_csv
from mmvidattn.finetune import FineTuneOptions
from mmvidattn.finetune.plan import make_plan

FPS, SECONDS = 5, 40


@pytest.fixture(scope='module')
def videos(tmp_path_factory, write_gray):
    root = tmp_path_factory.mktemp('videos')
    for i in range(6):
        write_gray(root / f'room {i % 2}/day{i}.mp4',
                   range(8 * i, 8 * i + FPS * SECONDS), FPS)
    return root


def write_rows(path, rows, header=('video', 'start', 'end', 'label')):
    with open(path, 'w', newline='') as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def plan_of(videos, tmp_path):
    def plan(rows, *header, **options):
        path = write_rows(tmp_path / 'mine.csv', rows, *header)
        return make_plan(FineTuneOptions(
            path, stream=True, videos=videos, workers=1, quick=True,
            **options))

    return plan


def events_of(number=6, every=('walk', 'run')):
    return [(f'day{i}', 2 + 10 * k, 6 + 10 * k, label)
            for i in range(number) for k, label in enumerate(every)]


def test_splits_videos_and_writes_lists(plan_of, tmp_path, capsys):
    rows = events_of() + [('day5', 30, 99, 'run'), ('day5', 60, 61, 'run')]
    plan = plan_of(rows)
    assert {name: len(side) for name, side in plan.videos.items()} == dict(
        train=4, val=1, test=1)
    assert plan.classes == ['background', 'run', 'walk']
    everything = [video for side in plan.videos.values() for video in side]
    assert sorted(everything) == [
        f'room {i}/day{j}.mp4' for i in (0, 1) for j in range(i, 6, 2)]
    plan.write_lists(tmp_path)
    assert (tmp_path / 'classes.txt').read_text() == 'background\nrun\nwalk\n'
    for name, side in plan.videos.items():
        lines = (tmp_path / f'{name}_videos.txt').read_text().splitlines()
        assert lines == side
    read = [(one.video, one.start, one.end, one.labels['action'])
            for name in plan.splits
            for one in read_segment_csv(tmp_path / f'{name}.csv')]
    files = {Path(video).stem: video for video in everything}
    assert sorted(read) == sorted(
        [(files[name], *rest) for name, *rest in rows[:-2]]
        + [(files['day5'], 30, SECONDS, 'run')])
    printed = capsys.readouterr().out
    assert '13 events in 6 videos of 4.0 minutes' in printed
    assert '1 cut at the end of the video, 1 dropped after' in printed


def test_keeps_given_subsets_and_groups(plan_of):
    names = ['train', 'Training', 'validation', 'val', 'test', 'testing']
    rows = [(*row, names[i // 2]) for i, row in enumerate(events_of())]
    plan = plan_of(rows, ('file', 'start', 'stop', 'label', 'subset'))
    assert plan.videos == dict(
        train=['room 0/day0.mp4', 'room 1/day1.mp4'],
        val=['room 0/day2.mp4', 'room 1/day3.mp4'],
        test=['room 0/day4.mp4', 'room 1/day5.mp4'])


def test_groups_stay_together_and_train_keeps_each_class(plan_of):
    rows = [(*row, f'room {i // 4}') for i, row in enumerate(events_of())]
    for seed in range(3):
        plan = plan_of(rows, ('video', 'start', 'end', 'label', 'group'),
                       seed=seed)
        # Most videos are for training, so that no group is left to test.
        assert {name: len(side) for name, side in plan.videos.items()} == dict(
            train=4, val=2)
        for side in plan.videos.values():
            numbers = {int(Path(video).stem[3:]) for video in side}
            assert {n ^ 1 for n in numbers} == numbers
        assert {one.label for one in plan.splits['train']} == {'walk', 'run'}


def test_reads_other_formats_and_videos_without_events(
        plan_of, videos, tmp_path, capsys):
    """A video of an ActivityNet file without events is background."""
    path = tmp_path / 'mine.json'
    path.write_text(json.dumps(dict(database={name: dict(
        subset=subset, annotations=[dict(label='x', segment=[3, 9])] * events)
        for name, subset, events in (
            ('day0', 'training', 1), ('day1', 'training', 0),
            ('day2', 'validation', 1), ('day3', 'validation', 0),
            ('day4', 'testing', 0), ('day9', 'training', 1))})))
    plan = make_plan(FineTuneOptions(
        path, stream=True, videos=videos, workers=1, quick=True))
    assert plan.videos == dict(train=['room 0/day0.mp4', 'room 1/day1.mp4'],
                               val=['room 0/day2.mp4', 'room 1/day3.mp4'])
    assert {name: [one.file for one in side] for name, side in
            plan.splits.items()} == {name: side[:1] for name, side in
                                     plan.videos.items()}
    printed = capsys.readouterr().out
    assert 'note: 1 annotated video left out, because' in printed
    assert 'note: room 0/day4.mp4 left out: no video of the subset testing ' \
        'has events' in printed


def test_merges_several_files(plan_of, tmp_path, capsys):
    """Also of different formats, and videos with different names."""
    first = events_of(4)
    more = write_rows(tmp_path / 'more.csv', [
        ('room 0/day0.mp4', 2, 6, 'walk'), ('day0', 2, 6, 'run'),
        ('day4', 1, 9, 'jump'), ('day5', 1, 9, 'jump'), ('day9', 1, 2, 'run')])
    third = tmp_path / 'third.json'
    third.write_text(json.dumps(dict(database=dict(day5=dict(
        annotations=[dict(label='jump', segment=[20, 30])])))))
    plan = plan_of(first, more=(more, third))
    found = Counter((Path(one.file).stem, one.start, one.end, one.label)
                    for side in plan.splits.values() for one in side)
    assert found == Counter([
        *first, ('day0', 2, 6, 'run'), ('day4', 1, 9, 'jump'),
        ('day5', 1, 9, 'jump'), ('day5', 20, 30, 'jump')])
    assert plan.classes == ['background', 'jump', 'run', 'walk']
    printed = capsys.readouterr().out
    assert (f'events: 8 from {tmp_path / "mine.csv"}, 3 from {more}, 1 from '
            f'{third}; left out: 1 repeated event\n') in printed
    assert '1 annotated video left out' in printed
    write_rows(more, [('day4', 1, 9, 'walk', 'train')],
               ('video', 'start', 'end', 'label', 'subset'))
    with pytest.raises(ValueError, match='1 of 9 events have a subset'):
        plan_of(first, more=(more, ))


def test_notes_missing_splits(plan_of, capsys):
    rows = events_of(2)
    plan = plan_of([(*row, 'train') for row in rows[:2]]
                   + [(*row, 'val') for row in rows[2:]],
                   ('video', 'start', 'end', 'label', 'subset'))
    assert Counter(plan.splits.keys()) == Counter(['train', 'val'])
    assert 'note: nothing is left to test: the metrics are of' in (
        capsys.readouterr().out)
    plan_of(events_of(1))
    assert ('note: no validation videos: the last checkpoint is kept instead '
            'of the best one, and thresholds are not tuned, and there are no '
            'metrics') in capsys.readouterr().out


@pytest.mark.parametrize('column, rows, error', [
    ('group', [], 'lists no events'),
    ('group', [('day0', 1, 2, '')], 'line 2: names of videos, .* got'),
    ('group', [('day0', 3, 3, 'x')], 'mine.csv: no event has a length'),
    ('group', [('day0', 1, 2, 'background')], "other than 'background'"),
    ('group', [('day0', 1, 2, 'x', 'anna'), ('day0', 2, 3, 'x', 'bob')],
     'line 3: the group of .*day0.mp4 must be anna, got bob'),
    ('group', [('day9', 1, 2, 'x')], 'none of the 1 annotated videos, such a'),
    ('group', [('day0', 90, 92, 'x')], 'no event starts within a readable'),
    ('subset', [('day0', 1, 2, 'a', 'train'), ('day1', 1, 2, 'b', 'val')],
     r'1 class without training events: b \(all in val\); add'),
    ('subset', [('day0', 1, 2, 'a', 'val')], 'no video has the subset train'),
    ('subset', [('day0', 1, 2, 'a', 'train'), ('day0', 4, 5, 'a', 'test')],
     'must have one subset')], ids=str)
def test_rejects_bad_annotations(plan_of, column, rows, error):
    header = 'video', 'start', 'end', 'label', column
    with pytest.raises(ValueError, match=error):
        plan_of(rows, header[:len(rows[0])] if rows else header[:4])


def test_events_without_a_length_are_left_out(plan_of, capsys):
    plan = plan_of(events_of() + [('day0', 3, 3, 'run'), ('day1', 5, '', 'x')])
    assert sum(map(len, plan.splits.values())) == 12
    assert plan.classes[1:] == ['run', 'walk']
    assert ('note: 2 events without a length or an end left out: '
            'room 0/day0.mp4 at 3 s, room 1/day1.mp4 at 5 s'
            ) in capsys.readouterr().out
