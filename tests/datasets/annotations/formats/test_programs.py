# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of ELAN and Label Studio; pympi is another program for ELAN's."""
import json
import math

import pytest

from mmvidattn.datasets.annotations.formats import (
    VideoInfo,
    read_annotations,
    write_annotations,
)
from mmvidattn.datasets.annotations.video_segment import VideoSegment

# ELAN


HEAD = '''<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="" FORMAT="3.0" VERSION="3.0">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">{media}</HEADER>
<TIME_ORDER>
'''
MEDIA = ('<MEDIA_DESCRIPTOR MEDIA_URL="file:///C:/v/day%201.mp4" '
         'MIME_TYPE="video/mp4"/>')


def document(slots, *tiers, media=MEDIA):
    """Return a file; slots are times or None, and tiers are XML."""
    lines = [f'<TIME_SLOT TIME_SLOT_ID="ts{i}"' + (
        '' if time is None else f' TIME_VALUE="{time}"') + '/>'
        for i, time in enumerate(slots)]
    return '\n'.join([HEAD.format(media=media) + '\n'.join(lines),
                      '</TIME_ORDER>', *tiers, '</ANNOTATION_DOCUMENT>'])


def tier(name, *entries):
    return (f'<TIER TIER_ID="{name}" LINGUISTIC_TYPE_REF="x">'
            + ''.join(f'<ANNOTATION>{one}</ANNOTATION>' for one in entries)
            + '</TIER>')


def aligned(name, first, last, text='x'):
    return (f'<ALIGNABLE_ANNOTATION ANNOTATION_ID="{name}" TIME_SLOT_REF1='
            f'"ts{first}" TIME_SLOT_REF2="ts{last}"><ANNOTATION_VALUE>{text}'
            '</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION>')


def reference(name, parent, text, previous=None):
    more = '' if previous is None else f' PREVIOUS_ANNOTATION="{previous}"'
    return (f'<REF_ANNOTATION ANNOTATION_ID="{name}" ANNOTATION_REF="{parent}"'
            f'{more}><ANNOTATION_VALUE>{text}</ANNOTATION_VALUE>'
            '</REF_ANNOTATION>')


def times(found):
    return [(one.labels['action'], one.start, one.end)
            for one in found.segments]


def test_pympi_reads_what_we_write_and_we_what_it_writes(tmp_path):
    elan = pytest.importorskip('pympi').Elan
    spans = [('run', 0, 1500), ('run', 1000, 2000), ('run', 2000, 2001),
             ('run', 1250, 1750), ('a & "b"', 5, 99_999)]
    # The nearest millisecond is written.
    write_annotations([
        VideoSegment(str(i), 'v/a.mp4', max(0, first - .4) / 1000,
                     (last + (-.4, .4)[i % 2]) / 1000, dict(action=label), '')
        for i, (label, first, last) in enumerate(spans)], tmp_path / 'a.eaf')
    eaf = elan.Eaf(str(tmp_path / 'a.eaf'))
    assert sorted(eaf.get_tier_names()) == ['a & "b"', 'run', 'run (2)',
                                            'run (3)']
    tiers = [sorted(eaf.get_annotation_data_for_tier(name))
             for name in eaf.get_tier_names()]
    assert sorted((value, first, last) for tier in tiers
                  for first, last, value in tier) == sorted(spans)
    # No overlap within a tier.
    assert all(a[1] <= b[0] for tier in tiers for a, b in zip(tier, tier[1:]))
    assert eaf.get_linked_files()[0]['RELATIVE_MEDIA_URL'] == './v/a.mp4'
    eaf.add_annotation('run', 3000, 4000, '')
    eaf.add_annotation('run', 5000, 6000, 'Wert é <b>')
    eaf.to_file(str(tmp_path / 'b.eaf'))
    found = read_annotations(tmp_path / 'b.eaf')
    assert [*found.videos] == ['v/a.mp4']
    # An annotation without a value has the name of its tier.
    assert sorted((label, round(1000 * start), round(1000 * end))
                  for label, start, end in times(found)) == sorted(
        [*spans, ('Wert é <b>', 5000, 6000), ('run', 3000, 4000)])


OFFSET = (MEDIA.replace('MIME', 'TIME_ORIGIN="1500" MIME')
          + MEDIA.replace('day', 'other'))


@pytest.mark.parametrize('text, wanted, remarks', [
    (document([1000, None, None, 4000, 5000, None],
              tier('a', aligned('a1', 0, 1, 'p'), aligned('a2', 1, 2, 'q'),
                   aligned('a3', 2, 3, 'r'), aligned('a4', 4, 5, 'open'))),
     [('p', 1, 2), ('q', 2, 3), ('r', 3, 4), ('open', 5, math.nan)], []),
    # Steps share the first and last slot of their phrase. A slot of another
    # tier is between their own.
    (document([1000, None, 1500, None, 4000],
              tier('phrase', aligned('a1', 0, 4, 'cook')),
              tier('steps', aligned('a2', 0, 1, 'cut'),
                   aligned('a3', 1, 3, 'mix'), aligned('a4', 3, 4, 'fry')),
              tier('other', aligned('a5', 2, 4, 'talk'))),
     [('cook', 1, 4), ('cut', 1, 2), ('mix', 2, 3), ('fry', 3, 4),
      ('talk', 1.5, 4)], []),
    (document([0, 3000], tier('c', reference('a5', 'a3', 'half')),
              tier('b', reference('a4', 'a1', 'third', 'a3'),
                   reference('a2', 'a1', 'first'),
                   reference('a3', 'a1', 'second', 'a2')),
              tier('a', aligned('a1', 0, 1, 'all'))),
     [('half', 1, 2), ('third', 2, 3), ('first', 0, 1), ('second', 1, 2),
      ('all', 0, 3)], []),
    (document([0, 1000], tier('a', aligned('a1', 0, 1)), media=OFFSET),
     [('x', 1.5, 2.5)], ['1 further media files left out']),
    (document([None, 1000, 2000], tier('a', aligned('a1', 0, 1, 'p'),
                                       aligned('a2', 1, 2, 'q'))),
     [('q', 1, 2)], ['1 annotation without a start left out'])],
    ids=['missing times', 'in each tier', 'references', 'offset', 'no start'])
def test_times_of_annotations(tmp_path, text, wanted, remarks):
    path = tmp_path / 'a.eaf'
    path.write_text(text)
    found = read_annotations(path)
    assert [*found.videos] == ['/C:/v/day 1.mp4']
    # As text, because nan is not equal to itself.
    assert str(times(found)) == str(
        [(label, float(start), float(end)) for label, start, end in wanted])
    assert found.remarks == remarks


def test_reads_only_the_named_tiers(tmp_path):
    path = tmp_path / 'a.eaf'
    path.write_text(document([0, 1000], tier('a', aligned('a1', 0, 1, 'p')),
                             tier('b', reference('a2', 'a1', 'q'))))
    assert times(read_annotations(path, tiers=['b'])) == [('q', 0, 1)]
    with pytest.raises(ValueError, match="no tier 'c', only 'a', 'b'"):
        read_annotations(path, tiers=['c'])


@pytest.mark.parametrize('text, error', [
    (document([0], tier('a', aligned('a1', 0, 7))), 'a1 has no time slot ts7'),
    (document([0, 1], tier('a', aligned('a1', 0, 1)),
              tier('b', aligned('a1', 0, 1))),
     'two annotations have the id a1'),
    (document([5, 1], tier('a', aligned('a1', 0, 1))),
     'annotation a1 of tier a: a segment must have 0 <= start < end, got 0'),
    (document([0], tier('a', reference('a1', 'a9', 'x'))), 'no parent a9'),
    (document([0], tier('a', reference('a1', 'a2', 'x'),
                        reference('a2', 'a1', 'x'))),
     'the annotation a1 refers to itself'),
    (document(['x'], tier('a')), "TIME_VALUE must be a number, got 'x'"),
    (document([0, 1], tier('a', aligned('a1', 0, 1)))[:-30],
     'invalid XML: .* line'),
    (document([0], '<TIER/>'), 'TIER  needs the attribute TIER_ID'),
    ('<!DOCTYPE a [<!ENTITY b "c">]>\n<ANNOTATION_DOCUMENT/>',
     'a document type .* is not allowed')])
def test_broken_file_names_the_annotation(tmp_path, text, error):
    path = tmp_path / 'a.eaf'
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        read_annotations(path, 'elan')


# Label Studio


def region(kind='timelinelabels', name='r', **value):
    return dict(id=name, type=kind, from_name='a', to_name='video',
                value=value)


def frames(first, last, *labels, **more):
    return dict(region(ranges=[dict(start=first, end=last)],
                       timelinelabels=list(labels)), **more)


def read(tmp_path, *tasks, **kwargs):
    path = tmp_path / 'export.json'
    path.write_text(json.dumps(tasks))
    return read_annotations(path, **kwargs)


def task(*results, key='annotations', video='a.mp4', **data):
    return {'data': dict(data, video=video),
            key: [dict(result=list(result)) for result in results]}


def test_frames_count_from_one_and_include_the_last(tmp_path):
    both = region(ranges=[dict(start=1, end=10), dict(start=21, end=30)],
                  timelinelabels=['x', 'y'])
    result = read(tmp_path, task(
        [frames(1, 25, 'x'), frames(26, 26, 'y'), both], fps=25)).segments
    # Several labels and ranges are several segments.
    assert [(one.id, one.start, one.end, one.label) for one in result] == [
        ('r', 0, 1, 'x'), ('r#2', 1, 1, 'y'), ('r#3', 0, .4, 'x'),
        ('r#4', 0, .4, 'y'), ('r#5', .8, 1.2, 'x'), ('r#6', .8, 1.2, 'y')]
    assert result[0].frames == (1, 25)


@pytest.mark.parametrize('data, option, end, source', [
    (dict(fps=25), 50, 2, '25 fps: data.fps'), ({}, 50, 1, '50 fps: --fps'),
    ({}, None, 50 / 24, "24 fps: Label Studio's default; --fps")])
def test_the_rate_of_the_program_that_counted(tmp_path, data, option, end,
                                              source):
    found = read(tmp_path, task([frames(1, 50, 'x')], **data), fps=option)
    assert found.segments[0].end == pytest.approx(end)
    remark, = found.remarks
    assert f'frames of 1 video are counted at {source}' in remark


def test_choices_label_the_video_and_audio_labels_have_seconds(tmp_path):
    result = read(tmp_path, task([
        region('choices', choices=['p', 'q']),
        region('labels', start=1.25, end=2, channel=0, labels=['z']),
        region('choices', choices=['left'], ranges=[dict(start=1, end=2)])]))
    assert str(times(result)) == str(
        [('p', 0., math.nan), ('q', 0., math.nan), ('z', 1.25, 2.)])


def test_finds_the_video_of_a_task(tmp_path):
    for key in 'video', 'video_url', 'url', 'clip':
        # Addresses under any other key need the suffix of a video.
        video = 'http://host/watch?id=7' + '.mp4' * (key == 'clip')
        given = task([frames(1, 25, 'x')], fps=25, note='of a camera')
        del given['data']['video']
        given['data'][key] = video
        assert [one.video for one in read(tmp_path, given).segments] == [video]


def test_reports_regions_that_are_left_out(tmp_path):
    result = read(tmp_path, task([
        region('videorectangle', sequence=[]),
        region('videorectangle', sequence=[]),
        dict(type='relation', from_id='r', to_id='s', labels=[]),
        region(ranges=[dict(start=1, end=2)]), frames(0, 10, 'x'),
        frames(0, 0, 'y'), frames(-1, 25, 'z')], fps=10))
    assert [one[2:5] for one in result.segments] == [
        (0, 1, dict(action='x')), (0, 2.5, dict(action='z'))]
    assert result.remarks[1:] == [
        '2 ranges begin before frame 1, and are cut there',
        '1 range before frame 1 left out', '1 relation left out',
        '1 unlabeled region left out', '2 videorectangle regions left out']


def test_reads_the_latest_annotation_or_the_ground_truth(tmp_path):
    one = task([frames(1, 5, 'old')], [frames(1, 5, 'new')],
               [frames(1, 5, 'skipped')], fps=25)
    for i, entry in enumerate(one['annotations']):
        entry['updated_at'] = f'2024-01-0{i + 1}T00:00:00Z'
    one['annotations'][2]['was_cancelled'] = True
    result = read(tmp_path, one)
    assert [s.label for s in result.segments] == ['new']
    assert result.remarks[1:] == [
        '1 tasks have several annotations: the ground truth, or else the '
        'latest one was read']
    one['annotations'][0]['ground_truth'] = True
    assert read(tmp_path, one).segments[0].label == 'old'


def test_reads_predictions_if_there_are_no_annotations(tmp_path):
    guess = task([frames(1, 5, 'x', score=0.25)], key='predictions', fps=25)
    assert read(tmp_path, guess).segments[0].score == 0.25
    done = task([frames(1, 9, 'y')], video='b.mp4', fps=25)
    result = read(tmp_path, guess, done)
    assert [one.video for one in result.segments] == ['b.mp4']
    assert [*result.videos] == ['a.mp4', 'b.mp4']
    assert result.remarks[1:] == [
        '1 predictions left out, because the file has annotations']


def test_writes_predictions_a_config_and_tasks_to_label(tmp_path):
    path = tmp_path / 'tasks.json'
    one = VideoSegment('7', 'day 1/a.mp4', 1, 2, dict(action='x "<y>'), '',
                       'val', score=0.5)
    # Only two folders below /data are addresses of Label Studio.
    names = ['day 1/a.mp4', 'http://host/b.mp4', '/data/videos/day 1.mp4',
             '/data/upload/1/b.mp4']
    write_annotations([one], path, 'label-studio', videos=dict(
        zip(names, map(VideoInfo, (25., 10., 10., 10.)))))
    first, second, *others = json.loads(path.read_text())
    assert first['data'] == dict(
        video='/data/local-files/?d=day%201/a.mp4', fps=25, subset='val')
    prediction, = first['predictions']
    assert prediction['score'] == prediction['result'][0]['score'] == 0.5
    assert prediction['result'][0]['value'] == dict(
        ranges=[dict(start=26, end=50)], timelinelabels=['x "<y>'])
    assert second == dict(data=dict(video='http://host/b.mp4', fps=10))
    config = (tmp_path / 'tasks_config.xml').read_text()
    assert '<Label value="x &quot;&lt;y&gt;" />' in config
    assert [task['data']['video'] for task in others] == [
        '/data/local-files/?d=/data/videos/day%201.mp4', names[3]]
    found = read_annotations(path)
    assert [*found.videos] == names and found.segments[0].video == names[0]
    # Without a score, segments are finished annotations.
    write_annotations([one._replace(score=None)], path, 'label-studio',
                      fps=25., url='http://host/')
    first, = json.loads(path.read_text())
    assert first['data']['video'] == 'http://host/day%201/a.mp4'
    assert [*first] == ['data', 'annotations']
