# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Round trips through all formats of annotation programs."""
import math
import random
from fractions import Fraction

import pytest
from made_videos import write_opencv

from mmvidattn.datasets.annotations.formats import (
    FORMATS,
    Annotations,
    VideoFolder,
    VideoInfo,
    read_annotations,
    summarize,
    write_annotations,
)
from mmvidattn.datasets.annotations.formats.videos import VideoNames
from mmvidattn.datasets.annotations.segment_csv import read_segment_csv
from mmvidattn.datasets.annotations.video_segment import VideoSegment

# NTSC's rate is not a round number.
FPS = {'a.mp4': 25., 'day 1/b é.mp4': float(Fraction(30000, 1001))}
LABELS = 'open door', 'run & "jump"', '<é>, 3; x'
NAN = math.nan


def segment(video, first, stop, label, subset='all', score=None):
    fps = FPS[video]
    return VideoSegment('here', video, first / fps, stop / fps,
                        dict(action=label), 'here', subset, score=score)


# Frames and number of the label: two labels, overlap within a class, equal
# segments, adjacent ones, points, and unknown ends.
SPANS = [(600, 640, 0), (600, 640, 1), (610, 630, 0), (700, 720, 0),
         (700, 720, 0), (720, 730, 0), (0, 2, 2), (650, 650, 0),
         (730, 730, 0), (0, 0, 1), (655, NAN, 1), (700, NAN, 1)]


def example(scores=False, subsets=False, points=True):
    """Draw segments, and add ``SPANS``."""
    rng = random.Random(0)
    results = []
    for video in FPS:
        drawn = [(first, first + rng.randrange(2, 90), rng.randrange(3))
                 for first in (rng.randrange(500) for _ in range(30))]
        results += [segment(
            video, first, stop, LABELS[label],
            'val' if subsets and video == 'a.mp4' else 'all',
            rng.random() if scores else None)
            for first, stop, label in drawn + SPANS
            if points or first != stop]
    return [one._replace(id=f's{i}') for i, one in enumerate(results)]


def contents(segments):
    """Return what must be equal, with times rounded to microseconds."""
    return sorted(
        (one.video, round(one.start, 6),
         'unknown' if math.isnan(one.end) else str(round(one.end, 6)),
         one.labels['action'], one.subset,
         None if one.score is None else round(one.score, 12))
        for one in segments)


def target(folder, name):
    return folder / ('out' if FORMATS[name].one_video
                     else f'out{FORMATS[name].suffix}')


VIDEOS = {video: VideoInfo(fps, 60., 96, 64) for video, fps in FPS.items()}


@pytest.mark.parametrize('scores', [False, True], ids=['truth', 'scores'])
@pytest.mark.parametrize('name', FORMATS)
def test_round_trip(tmp_path, name, scores):
    lacks = FORMATS[name].lacks
    # ActivityNet's files of results have no subsets.
    segments = example(
        scores and 'scores' not in lacks, 'subsets' not in lacks and (
            name, scores) != ('activitynet', True), 'points' not in lacks)
    if name == 'elan':
        segments = [one._replace(start=round(one.start, 3),
                                 end=round(one.end, 3)) for one in segments]
    path = target(tmp_path, name)
    assert write_annotations(segments, path, name, videos=VIDEOS) == []
    result = read_annotations(path)
    assert result.format == name
    assert contents(result.segments) == contents(segments)
    assert len({one.id for one in result.segments}) == len(segments)
    assert {*result.videos} == {*FPS}


def test_csv_has_optional_columns_and_exact_times(tmp_path):
    path = tmp_path / 'a.csv'
    plain = VideoSegment('x', 'a', 1 / 3, NAN, dict(action='b'), 'x')
    write_annotations([plain], path)
    assert path.read_text() == f'video,start,end,label\na,{1 / 3},,b\n'
    more = plain._replace(id='7', subset='val', score=0.1, end=0.5)
    write_annotations([plain, more], path)
    assert path.read_text().splitlines() == [
        'video,start,end,label,id,subset,score', f'a,{1 / 3},,b,,,',
        f'a,{1 / 3},0.5,b,7,val,0.1']
    result = read_annotations(path).segments
    assert result[1] == more._replace(where=f'{path}, line 3')
    with pytest.raises(ValueError, match='line 2: a segment must have an end'):
        read_segment_csv(path)
    verbs = [one._replace(labels=dict(verb=1, noun=2)) for one in result]
    write_annotations(verbs, path)
    assert read_annotations(path).segments[1].labels == dict(verb=1, noun=2)
    with pytest.raises(ValueError, match='only csv has verbs and nouns'):
        write_annotations(verbs, tmp_path / 'a.json', 'activitynet')


def label_studio(span, label='x'):
    """Return a file with one range of frames."""
    return ('[{"data": {"video": "a.mp4"}, "annotations": [{"result": ['
            '{"type": "timelinelabels", "value": {"ranges": [%s], '
            '"timelinelabels": ["%s"]}}]}]}]' % (span, label))


BROKEN = {
    'csv': [
        ('video,start,end,label\na,1,2,\n', 'line 2: names of videos, .* got'),
        ('video,start,end,label\na,2,1,x\n', 'line 2: .* got 2 to 1 s'),
        ('video,start,end,label,score\na,1,2,x,high\n',
         "line 2: score must be a number, got 'high'"),
        ('video,start,end,label,id\na,1,2,x,5\na,3,4,y,5\n',
         'line 3: the id 5 is already used')],
    'elan': [(f'<?xml version="1.0" encoding="{name}"?>\n'
              '<ANNOTATION_DOCUMENT></ANNOTATION_DOCUMENT>', 'invalid XML')
             for name in ('klingon', 'shift_jis')],
    'activitynet': [
        ('{"database": {"a": {"annotations": [{"segment": [1, "x"],'
         '"label": "b"}]}}}',
         r'database.a.annotations\[0\].segment\[1\]: expected a number'),
        ('{"results": {"a": [{"segment": [1, 2, 3], "label": "b"}]}}',
         r'results.a\[0\].segment: expected \[start, end\], got a list'),
        ('{"database": {"a": {"annotations": [{"segment": [1, 2]}]}}}',
         r"database.a.annotations\[0\]: expected .*'label', got segm"),
        ('{"database": {"a": {"annotations": []}, "a": {"annotations": []}}}',
         "the key 'a' is used twice"),
        ('{"database": {"a": {"duration": -1, "annotations": []}}}',
         'a.duration: expected a positive number, got -1'),
        ('{"database": {"a": {"annotations": [\n', 'must be JSON: .* line 2'),
        ('{"database": {"a": 5}}', 'database.a: expected an object, got 5'),
        ('{"database": ' + '[' * 5000 + ']' * 5000 + '}', 'too deeply'),
        ('{"database": {"a": {"duration": ' + '9' * 5000 + '}}}', 'JSON')],
    'label-studio': [
        ('[{"data": {"text": "a"}}]', r'\[0\].data: expected the address'),
        ('[{"data": {"video": "a.mp4", "fps": 0}}]',
         r'data.fps: expected a positive number, got 0'),
        (label_studio('{"start": 9, "end": 5}'),
         r'ranges\[0\]: expected frames start <= end, got 9 to 5'),
        (label_studio('{"start": 1.5, "end": 5}'),
         r'ranges\[0\]: expected frames start <= end, got 1.5'),
        (label_studio('{"start": 1, "end": 5}', label=''),
         r'timelinelabels\[0\]: expected a text that is not empty')]}


@pytest.mark.parametrize('name, text, error', [
    pytest.param(name, *case, id=f'{name}-{i}')
    for name, cases in BROKEN.items() for i, case in enumerate(cases)])
def test_broken_file_names_the_entry(tmp_path, name, text, error):
    path = tmp_path / f'broken{FORMATS[name].suffix}'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(ValueError, match=f'^{path}.*{error}'):
        read_annotations(path, name)


TABLE = '''Observation id;Media file;Behavior;Start (s);Stop (s);Comment
1;day/a.mp4;run;12.5;0:00:15;x
1;day/a.mp4;jump;20;NA;
2;b.mp4;run;3;3;
'''
COLUMNS = dict(video='Media file', start='Start (s)', end='Stop (s)',
               label='Behavior')


def test_columns_read_any_table(tmp_path):
    path = tmp_path / 'events.txt'
    for text, fps, times, remarks in (
            (TABLE, None, (12.5, 15., 20., NAN, 3., 3.), []),
            (TABLE.replace('0:00:15', '15'), 25.,
             (.5, .6, .8, NAN, .12, .12),
             [f'{path}: start and end are frame numbers at 25 fps'])):
        path.write_text(text)
        found = read_annotations(path, columns=COLUMNS, fps=fps)
        assert [(one.video, one.labels['action'])
                for one in found.segments] == [
            ('day/a.mp4', 'run'), ('day/a.mp4', 'jump'), ('b.mp4', 'run')]
        assert [time for one in found.segments for time in one[2:4]] == (
            pytest.approx(times, nan_ok=True))
        assert found.remarks == remarks


@pytest.mark.parametrize('text, options, error', [
    (TABLE, dict(columns=COLUMNS | dict(label='Class')),
     'must have columns Media file, .*, Class, got Observation id, Media'),
    (TABLE, dict(columns=dict(video='Media file')),
     'columns must name video, start, end, label, and .*; got video'),
    (TABLE, dict(columns=COLUMNS | dict(lable='x')), 'got video, .*, lable'),
    (TABLE, dict(columns=COLUMNS, format='elan'), 'for csv, not for elan'),
    (TABLE, dict(tiers=['a'], format='csv'), 'for elan, not for csv'),
    (TABLE, dict(columns=COLUMNS, fps=25.),
     "line 2: end must be a frame number at 25 fps, got '0:00:15'"),
    (' \n', {}, 'is empty'),
    ('Name,From,To\na,1,2\n', {},
     'no format recognized in .*Name,From.* csv, elan, label-studio, activity'
     '.* video, start, end and label; --columns .* mmvidattn prepare'),
    ('Video,start,to,label\na,1,2,x\n', {}, 'no column end in .*to'),
    ('a.mp4,1,2,run\n', {}, 'no format recognized .* header with the columns'),
    ('{"id": 0, "event": "start"}\n', {}, '--events, .* predict --segments'),
    ('video,id,tl,annotator,annotation_id\na.mp4,1,x,2,3\n', {},
     'export of Label Studio.*: export as JSON')])
def test_a_table_that_does_not_fit_is_refused(tmp_path, text, options, error):
    path = tmp_path / 'table.csv'
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        read_annotations(path, **options)


def test_reads_csv_of_spreadsheets(tmp_path):
    """Decimal commas, backslashes and headers with capitals."""
    path = tmp_path / 'a.csv'
    for text, encoding in (
            ('video;start;end;label\nday\\a.mp4;1,5;3,25;"run; é"\n'
             'b.mp4;0:01,5;0:04;a,b\n', 'utf-8-sig'),
            ('Video\tSTART\tStop\tLabel\r\nday/a.mp4\t1.5\t3.25\t"run; é"\r\n'
             'b.mp4\t0:01.5\t4\ta,b\r\n', 'utf-16')):
        path.write_bytes(text.encode(encoding))
        assert [one[1:5] for one in read_annotations(path).segments] == [
            ('day/a.mp4', 1.5, 3.25, dict(action='run; é')),
            ('b.mp4', 1.5, 4., dict(action='a,b'))]


@pytest.mark.parametrize('kwargs, error', [
    (dict(path='x.json'), r'give the format of x.json \(--to\): one of label'),
    (dict(path='x.csv', format='xls'), "one of csv, .*, got 'xls'.*colu"),
    (dict(path='x.json', format='label-studio'),
     'Label Studio counts frames, and the frame rate of a.mp4 is unknown')])
def test_rejects_what_cannot_be_written(kwargs, error):
    with pytest.raises(ValueError, match=error):
        write_annotations([segment('a.mp4', 0, 5, 'x')], **kwargs)


@pytest.mark.parametrize('field, value', [
    ('video', ' a'), ('video', ''), ('labels', dict(action='a\nb')),
    ('labels', dict(action='')), ('subset', 'x\0')])
def test_rejects_names_that_files_cannot_keep(tmp_path, field, value):
    one = segment('a.mp4', 0, 5, 'x')._replace(**{field: value})
    for name in FORMATS:
        with pytest.raises(ValueError, match='here: names of videos, classes'):
            write_annotations([one], target(tmp_path, name), name,
                              videos=VIDEOS, fps=25.)


def test_reads_names_of_videos_with_blanks(tmp_path):
    path = tmp_path / 'a.json'
    path.write_text('{"results": {" a": [{"segment": [1, 2], "label": "b"}]}}')
    assert read_annotations(path).segments[0].video == ' a'


def test_reports_what_is_lost(tmp_path):
    one = segment('a.mp4', 1, 2, 'x')
    two = one._replace(id='2', end=7.013, subset='val')
    assert write_annotations([one, two], tmp_path / 'x.json', 'label-studio',
                             fps=25.) == [
        'Label Studio: 1 videos with several subsets get the first one',
        'Label Studio: 1 segments of one frame become point events']
    assert write_annotations([one], tmp_path / 'x.csv', videos=VIDEOS) == [
        'csv: 1 videos without segments left out']


def test_summary_counts_overlaps_but_no_touching_segments():
    spans = (0, 20), (5, 6), (10, 12), (20, 30), (600, NAN)
    found = Annotations([segment('a.mp4', *span, 'x') for span in spans])
    assert summarize(found)[-1].startswith('2 segments start')


SPELLINGS = 'a b', 'a  b', 'a\xa0b', 'A b', 'c'


@pytest.mark.parametrize('name', FORMATS)
def test_labels_stay_and_similar_ones_are_reported(tmp_path, name):
    path = tmp_path / f'a{FORMATS[name].suffix}'
    write_annotations([
        segment('a.mp4', 10 * i, 10 * i + 10, label)._replace(id=str(i))
        for i, label in enumerate(SPELLINGS)], path, name, fps=25.)
    text = path.read_text('utf-8')
    # Blanks at the ends of a label are not a part of it.
    for quote in '"{}"', '>{}<':
        text = text.replace(quote.format('c'), quote.format(' c '))
    path.write_text(text, 'utf-8')
    found = read_annotations(path)
    assert {one.labels['action'] for one in found.segments} == {*SPELLINGS}
    remark, = [one for one in found.remarks if 'blanks or case' in one]
    assert "'A b' and 'a  b' and 'a b' and 'a\\xa0b'" in remark


# Names of videos


@pytest.fixture
def videos_of_days(tmp_path):
    for name in ('day1/a.mp4', 'day2/a.mp4', 'day2/b c.mp4', 'day2/a.avi',
                 'day2/b c (2).mp4', 'day2/x.mp4', 'v_y.mkv', 'p q.mp4',
                 'p_q.mp4'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / 'notes.txt').touch()
    return tmp_path


@pytest.mark.parametrize('name, found', [
    ('day1/a.mp4', 'day1/a.mp4'), ('/home/me/day2/a.mp4', 'day2/a.mp4'),
    ('C:\\videos\\day2\\a.avi', 'day2/a.avi'), ('b c.mp4', 'day2/b c.mp4'),
    ('http://host/x/b%20c.mp4?t=1', 'day2/b c.mp4'),
    ('/data/upload/3/0a1b2c3d-b%20c.mp4', 'day2/b c.mp4'),
    ('/data/upload/3/0a1b2c3d-b_c_2.mp4', 'day2/b c (2).mp4'),
    ('v_x', 'day2/x.mp4'), ('y', 'v_y.mkv'),
    ('b c', 'day2/b c.mp4'), ('day1/a', 'day1/a.mp4'), ('c.mp4', None),
    ('notes.txt', None), ('', None)])
def test_finds_videos_by_any_name(videos_of_days, name, found):
    assert VideoFolder(videos_of_days).find(name) == found


@pytest.mark.parametrize('name, found', [
    ('day/1', 'day/1.mp4'), ('1.avi', 'day/1.mp4'),
    ('/home/me/day/1.mp4', 'day/1.mp4'), ('night/1.mp4', None),
    ('other/2.mp4', '2.mp4'), ('0a1b2c3d-1.mp4', 'day/1.mp4'),
    ('3.avi', '3.avi'), ('y/3', '3'), ('rtsp://yard/live', None),
    ('rtsp://door/live', 'rtsp://door/live')])
def test_names_of_other_folders_are_other_videos(name, found):
    videos = 'day/1.mp4', '2.mp4', 'x/3.mp4', '3.avi', '3', 'rtsp://door/live'
    assert VideoNames(videos).find(name) == found


def test_refuses_a_name_of_several_videos(videos_of_days):
    with pytest.raises(ValueError, match='a.mp4 matches several videos: '
                                         'day1/a.mp4, day2/a.mp4'):
        VideoFolder(videos_of_days).find('a.mp4')
    with pytest.raises(ValueError, match='matches several videos: p q.mp4, '):
        VideoFolder(videos_of_days).find('0a1b2c3d-p_q.mp4')
    with pytest.raises(ValueError, match='folder of videos x does not exist'):
        VideoFolder('x')


def test_annotations_get_names_and_facts_of_videos(tmp_path):
    (tmp_path / 'v').mkdir()
    write_opencv(tmp_path / 'v/a.mp4')
    path = tmp_path / 'a.csv'
    path.write_text('video,start,end,label\n/elsewhere/a.mp4,0,1,x\n'
                    'lost.mp4,0,1,x\n')
    result = read_annotations(path, videos=tmp_path / 'v')
    assert [one.video for one in result.segments] == ['a.mp4', 'lost.mp4']
    assert result.missing == ['lost.mp4']
    assert result.videos['a.mp4'] == VideoInfo(20, pytest.approx(2), 96, 64)
    (tmp_path / 'v/lost.mp4').write_bytes(b'x')
    with pytest.raises(ValueError, match='cannot read the video .*lost.mp4'):
        read_annotations(path, videos=tmp_path / 'v')
