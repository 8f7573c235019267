# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""BORIS' files; the tables have the columns of versions 7 and 9."""
import json
import math

import pytest

from mmvidattn.datasets.annotations.formats import (
    VideoInfo,
    read_annotations,
    write_annotations,
)
from mmvidattn.datasets.annotations.video_segment import VideoSegment

KINDS = {'walk': 'State event', 'groom': 'State event', 'call': 'Point event'}


def project(events, videos=('a.mp4', ), lengths=(100., ), offset=0., **more):
    return dict(
        time_format='hh:mm:ss', project_name='x',
        project_format_version='7.0', subjects_conf={},
        behaviors_conf={str(i): dict(type=kind, key='k', code=code)
                        for i, (code, kind) in enumerate(KINDS.items())},
        observations={'day 1': dict(dict(
            {'file': {'1': list(videos), '2': ['other.mp4']},
             'type': 'MEDIA', 'time offset': offset, 'events': events,
             'media_info': dict(length=dict(zip(videos, lengths)),
                                fps={videos[0]: 25.0})}), **more)})


def read(tmp_path, content):
    path = tmp_path / 'a.boris'
    path.write_text(json.dumps(content, indent=1))
    return read_annotations(path)


def times(found):
    return [(one.video, one.labels['action'], one.start, str(one.end))
            for one in found.segments]


def test_states_are_paired_by_subject_and_modifier(tmp_path):
    found = read(tmp_path, project([
        [1.5, 'A', 'walk', '', ''], [2, 'B', 'walk', '', ''],
        [2.5, '', 'call', '', 'score=0.25'], [3, 'A', 'walk', '', 'x', 75],
        [4, 'B', 'walk', '', ''], [5, '', 'groom', 'ear', ''],
        [6, '', 'groom', 'leg', ''], [7, '', 'groom', 'ear', ''],
        [8, '', 'walk', '', ''], [8, '', 'walk', '', '']]))
    assert times(found) == [
        ('a.mp4', 'walk', 1.5, '3.0'), ('a.mp4', 'walk', 2., '4.0'),
        ('a.mp4', 'call', 2.5, '2.5'), ('a.mp4', 'groom', 5., '7.0'),
        ('a.mp4', 'groom', 6., 'nan'), ('a.mp4', 'walk', 8., '8.0')]
    assert [one.score for one in found.segments][2] == 0.25
    assert found.videos == {'a.mp4': VideoInfo(25., 100.)}


def test_a_queue_is_divided_into_its_videos(tmp_path):
    found = read(tmp_path, project([
        [12, '', 'walk', '', ''], [15, '', 'walk', '', ''],
        [105, '', 'walk', '', ''], [170, '', 'walk', '', ''],
        [165, '', 'call', '', ''], [175, '', 'walk', '', '']],
        ('a.mp4', 'b.mp4', 'c.mp4'), (100., 50., 9.), offset=10.))
    assert times(found) == [
        ('a.mp4', 'walk', 2., '5.0'), ('a.mp4', 'walk', 95., '100.0'),
        ('b.mp4', 'walk', 0., '50.0'), ('c.mp4', 'walk', 0., '10.0'),
        ('c.mp4', 'call', 5., '5.0'), ('c.mp4', 'walk', 15., 'nan')]


def test_observations_without_video_are_left_out(tmp_path):
    found = read(tmp_path, project([], type='LIVE'))
    assert found.remarks == ['1 observations without video left out']


def test_overlaps_get_subjects_and_points_their_own_kind(tmp_path):
    def one(start, end, label):
        return VideoSegment(f'{start}{end}{label}', 'a.mp4', start, end,
                            dict(action=label), '')

    path = tmp_path / 'a.boris'
    write_annotations([one(1, 3, 'x'), one(2, 4, 'x'), one(3, 5, 'x'),
                       one(3, 3, 'x'), one(6, math.nan, 'x'), one(1, 1, 'y')],
                      path)
    content = json.loads(path.read_text())
    assert {one['code']: one['type'] for one in content[
        'behaviors_conf'].values()} == {'x': 'State event', 'y': 'Point event'}
    assert [one['name'] for one in content['subjects_conf'].values()] == [
        'overlap 2']
    events = content['observations']['a.mp4']['events']
    assert [tuple(one[:3]) for one in events] == sorted(
        (tuple(one[:3]) for one in events), key=lambda one: one[0])
    assert len(events) == 10


V7 = '''Observation id\tday 1\t\t\t\t\t\t\t
\t\t\t\t\t\t\t\t
Media file(s)\t\t\t\t\t\t\t\t
Player #1\ta.mp4\t\t\t\t\t\t\t
Time offset (s)\t0.0\t\t\t\t\t\t\t
\t\t\t\t\t\t\t\t
Time\tMedia file path\tTotal length\tFPS\tSubject\tBehavior\t\
Behavioral category\tComment\tStatus
3.300\ta.mp4\t359.960\t25.0\tA\twalk\t\t\tSTART
4.000\ta.mp4\t359.960\t25.0\t\tcall\t\tscore=0.5\tPOINT
7.750\ta.mp4\t359.960\t25.0\tA\twalk\t\t\tSTOP
9.000\ta.mp4\t359.960\t25.0\tA\twalk\t\t\tSTART
'''
V9 = '''Observation id,Observation date,Observation type,Source,\
Time offset (s),Media duration (s),FPS,Subject,Behavior,Behavioral category,\
Modifier #1,Behavior type,Time,Media file name,Image index,Comment
o,2024-01-01,Media file(s),player #1:a.mp4;b.mp4|player #2:c.mp4,5.0,\
100.000;50.000|9.000,25.000;30.000|10.000,A,walk,,m,START,8.5,a.mp4,NA,
o,2024-01-01,Media file(s),player #1:a.mp4;b.mp4|player #2:c.mp4,5.0,\
100.000;50.000|9.000,25.000;30.000|10.000,A,walk,,m,STOP,115.5,b.mp4,NA,
'''
AGGREGATED = '''Observation id\tMedia file\tTotal length\tFPS\tSubject\t\
Behavior\tModifiers\tBehavior type\tStart (s)\tStop (s)\tDuration (s)\t\
Comment start\tComment stop
o\ta.mp4\t180.000\t25.0\tA\twalk\t\tSTATE\t1.800\t8.125\t6.325\t\t
o\ta.mp4\t180.000\t25.0\tA\tcall\t\tPOINT\t32.825\t32.825\tNA\tscore=1e-1\t
o\ta.mp4\t180.000\t25.0\tA\tcall\t\tPOINT\t33\tNA\tNA\t\t
'''


@pytest.mark.parametrize('text, wanted, videos', [
    (V7, [('a.mp4', 'walk', 3.3, '7.75'), ('a.mp4', 'call', 4., '4.0'),
          ('a.mp4', 'walk', 9., 'nan')], {'a.mp4': VideoInfo(25., 359.96)}),
    (V9, [('a.mp4', 'walk', 3.5, '100.0'), ('b.mp4', 'walk', 0., '10.5')],
     {'a.mp4': VideoInfo(25., 100.), 'b.mp4': VideoInfo(30., 50.)}),
    (AGGREGATED, [('a.mp4', 'walk', 1.8, '8.125'),
                  ('a.mp4', 'call', 32.825, '32.825'),
                  ('a.mp4', 'call', 33., '33.0')],
     {'a.mp4': VideoInfo(25., 180.)})], ids=['v7', 'v9', 'aggregated'])
def test_reads_tables(tmp_path, text, wanted, videos):
    path = tmp_path / 'a.tsv'
    path.write_text(text)
    found = read_annotations(path)
    assert found.format == 'boris'
    assert times(found) == wanted
    assert found.videos == videos


@pytest.mark.parametrize('text, error', [
    (V7.replace('STOP', 'END'), "line 10: the type of an event must be START, "
     "STOP or POINT, got 'END'"),
    (V7.replace('START\n4', 'STOP\n4'), 'line 8: a STOP of walk without'),
    (V7.replace('7.750', 'soon'), "line 10: expected seconds, .* got 'soon'"),
    (V7.replace('Behavior\t', 'B\t'), 'lacks a line with the columns'),
    (AGGREGATED.replace('o\ta.mp4\t180.000\t25.0\tA\tcall',
                        'o\tb.mp4\t180.000\t25.0\tA\tcall'),
     'line 3: the observation o has several videos, and this table lacks'),
    (AGGREGATED.replace('walk', ''), 'line 2: the behavior is empty'),
    (AGGREGATED + 'o\ta.mp4\n', 'line 5: expected 13 fields, got 2'),
    ], ids=['kind', 'stop', 'time', 'header', 'queue', 'empty', 'short'])
def test_broken_table_names_the_line(tmp_path, text, error):
    path = tmp_path / 'a.tsv'
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        read_annotations(path, 'boris')


@pytest.mark.parametrize('content, error', [
    (project([['x', '', 'walk', '', '']]),
     r'line \d+, observations.day 1.events\[0\]\[0\]: expected a number'),
    (project([[1, '', 'fly', '', '']]),
     r'events\[0\]: no behavior fly in behaviors_conf'),
    (project([[1, '']]), r'events\[0\]: expected \[time, subject, .* got 2 '),
    (project([[1, '', 'call', '', '']], offset=2.),
     r'events\[0\]: a segment must have 0 <= start < end, got -1 to -1'),
    (project([], ('a', 'b'), ()), 'observations.day 1: the length of a is '
     'unknown, and other videos follow'),
    (dict(project([]), observations=5),
     'observations: expected an object, got 5'),
    ], ids=['time', 'behavior', 'fields', 'offset', 'length', 'number'])
def test_broken_project_names_the_line(tmp_path, content, error):
    with pytest.raises(ValueError, match=error):
        read(tmp_path, content)
