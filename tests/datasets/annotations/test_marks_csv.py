# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.datasets.annotations.custom.marks_csv import (
    Mark,
    apply_marks,
    format_marks,
    known_spans,
    negatives,
    positives,
    read_marks,
)
from mmvidattn.datasets.annotations.custom.segment_csv import read_segment_csv
from mmvidattn.datasets.annotations.video_segment import VideoSegment

MARKS = [
    Mark('day/1.mp4', 1 / 3, 2.5, 'jump', 'right', 'jump', .91),
    Mark('day/1.mp4', 4., 5., 'run', 'wrong', 'run', .5),
    Mark('day/1.mp4', 7., 8., 'Jump, "high"', 'class', 'run', .25),
    Mark('day/1.mp4', 9., 1e4, 'run', 'missed'),
    Mark('rtsp://door/x', 9., 11., 'run', 'right', 'run', .75,
         '2026-11-25T07:00:00+00:00', 'clips/000012.mp4')]


def write(tmp_path, text):
    path = tmp_path / 'marks.csv'
    path.write_text(text, encoding='utf-8')
    return path


def segment(start, end, label='run', video='1'):
    return VideoSegment(f'{video} {start} {label}', video, start, end,
                        dict(action=label), 'here')


def spans(segments):
    return [(s.video, s.start, s.end, s.labels['action']) for s in segments]


def test_reads_what_it_writes(tmp_path):
    assert read_marks(write(tmp_path, format_marks(MARKS))) == MARKS


def test_reads_a_short_table(tmp_path):
    path = write(tmp_path, 'file,start,stop,label,mark\n'
                 'a,0:01,1:00.5,run,Right\na,2,3,run,missed\n')
    assert read_marks(path) == [
        Mark('a', 1., 60.5, 'run', 'right', 'run'),
        Mark('a', 2., 3., 'run', 'missed')]


@pytest.mark.parametrize('row, error', [
    ('a,1,2,run,good,', "line 3: mark must be one of right, .*got 'good'"),
    ('a,2,2,run,right,', 'line 3: a mark must have 0 <= start < end, got 2'),
    ('a,1,nan,run,right,', 'line 3: expected seconds'),
    ('a,1,2,,right,', 'line 3: video and label must not be empty'),
    (',1,2,run,right,', 'line 3: video and label must not be empty'),
    ('a,1,2,run,class,', 'line 3: the mark class needs the detected class'),
    ('a,1,2,run,class,run', 'another one than run'),
    ('a,1,2,run,wrong,jump', 'must be equal for the mark wrong'),
    ('a,1,2,run,missed,run', 'detected must be empty'),
    ('b,5,7,run,wrong,run', 'line 3: .*already marked in .*line 2')])
def test_names_the_line_of_an_invalid_row(tmp_path, row, error):
    with pytest.raises(ValueError, match=error):
        read_marks(write(tmp_path, 'video,start,end,label,mark,detected\n'
                         f'b,5,6,run,right,run\n{row}\n'))


def test_rejects_a_table_without_marks(tmp_path):
    with pytest.raises(ValueError, match='must have columns .*mark'):
        read_marks(write(tmp_path, 'video,start,end,label\na,1,2,run\n'))


def test_marks_are_positives_and_negatives():
    assert spans(positives(MARKS)) == [
        ('day/1.mp4', 1 / 3, 2.5, 'jump'),
        ('day/1.mp4', 7., 8., 'Jump, "high"'),
        ('day/1.mp4', 9., 1e4, 'run')]
    assert spans(negatives(MARKS)) == [
        ('day/1.mp4', 4., 5., 'run'), ('day/1.mp4', 7., 8., 'run')]


def test_annotation_readers_leave_out_wrong_events(tmp_path):
    read = read_segment_csv(write(tmp_path, format_marks(MARKS)))
    assert [s.labels['action'] for s in read] == [
        'jump', 'Jump, "high"', 'run', 'run']


def test_known_spans_are_merged():
    marks = [Mark('a', 5., 6., 'run', 'right', 'run'),
             Mark('a', 1., 3., 'run', 'wrong', 'run'),
             Mark('b', 1., 2., 'run', 'missed'),
             Mark('a', 2., 4., 'jump', 'right', 'jump')]
    assert known_spans(marks) == dict(a=[(1., 4.), (5., 6.)], b=[(1., 2.)])


def test_wrong_events_are_cut_out():
    segments = [segment(0., 10.), segment(0., 10., 'jump'),
                segment(0., 10., video='2')]
    marks = [Mark('1', 4., 5., 'run', 'wrong', 'run'),
             Mark('1', 8., 12., 'run', 'wrong', 'run'),
             Mark('2', 0., 10., 'run', 'wrong', 'run')]
    result = apply_marks(segments, marks)
    assert spans(result) == [
        ('1', 0., 4., 'run'), ('1', 5., 8., 'run'), ('1', 0., 10., 'jump')]
    assert len({one.id for one in result}) == 3
    assert segments == [segment(0., 10.), segment(0., 10., 'jump'),
                        segment(0., 10., video='2')]


def test_known_events_are_not_added_again():
    segments = [segment(0., 10.), segment(20., 30.)]
    marks = [Mark('1', 1., 9., 'run', 'right', 'run'),
             # Half of the shorter one, and a bit less.
             Mark('1', 15., 25., 'run', 'missed'),
             Mark('1', 26., 34.1, 'run', 'missed'),
             Mark('1', 1., 9., 'jump', 'missed')]
    assert spans(apply_marks(segments, marks)) == [
        ('1', 0., 10., 'run'), ('1', 20., 30., 'run'),
        ('1', 26., 34.1, 'run'), ('1', 1., 9., 'jump')]


def test_corrected_class_replaces_the_detected_one():
    marks = [Mark('1', 0., 10., 'jump', 'class', 'run')]
    assert spans(apply_marks([segment(0., 10.)], marks)) == [
        ('1', 0., 10., 'jump')]


@pytest.mark.parametrize('seed', range(20))
def test_frames_match_a_brute_force_twin(seed):
    """On frames of a second: cut the negatives, then add the positives."""
    random = np.random.default_rng(seed)
    classes = 'run', 'jump', 'swim'

    def draw():
        start, length = random.integers(0, 30), random.integers(1, 9)
        return float(start), float(start + length)

    segments = [segment(*draw(), str(random.choice(classes)))
                for _ in range(6)]
    marks = []
    for _ in range(8):
        label, other = random.permutation(classes)[:2].tolist()
        kind = str(random.choice(['right', 'wrong', 'class', 'missed']))
        marks.append(Mark('1', *draw(), label, kind, {
            'class': other, 'missed': ''}.get(kind, label)))

    def frames(segments):
        return {(t, s.labels['action']) for s in segments
                for t in range(int(s.start), int(s.end))}

    expected = frames(segments)
    for mark in marks:
        if mark.mark in ('wrong', 'class'):
            expected -= {(t, mark.detected)
                         for t in range(int(mark.start), int(mark.end))}
    got = frames(apply_marks(segments, marks))
    # No other frames are removed, and added frames belong to a positive mark.
    assert expected <= got
    assert got - expected <= frames(positives(marks))
    # Each positive mark, or a segment inside of it, is in the result.
    for positive in positives(marks):
        mine = frames([positive])
        assert mine & got
    # Applying the marks again changes nothing, unless marks contradict each
    # other.
    if not {*frames(negatives(marks))} & {*frames(positives(marks))}:
        assert frames(apply_marks(apply_marks(segments, marks), marks)) == got


def test_videos_match_by_the_end_of_their_paths():
    mark = Mark('../videos/day/1.mp4', 1., 2., 'run', 'missed')

    def video_of(*videos):
        return apply_marks([segment(5., 6., video=v) for v in videos],
                           [mark])[-1].video

    assert video_of('day/1') == 'day/1'
    assert video_of('1.avi', 'night/1') == '1.avi'
    assert video_of('night/1', '11') == '../videos/day/1.mp4'
    assert video_of('1', '../videos/day/1.mp4') == '../videos/day/1.mp4'
    assert video_of('1.mp4', 'day/1') == 'day/1'
    with pytest.raises(ValueError, match='several videos: 1, 1.avi'):
        video_of('1', '1.avi')


def test_live_sources_have_no_segments():
    assert apply_marks([], MARKS[-1:]) == []
    assert known_spans(MARKS[-1:]) == {}
