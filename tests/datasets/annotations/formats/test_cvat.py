# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CVAT's files; the examples have the elements of its exports."""
import math

import pytest

from mmvidattn.datasets.annotations.formats import (
    VideoInfo,
    read_annotations,
    write_annotations,
)
from mmvidattn.datasets.annotations.formats.xml_file import read_xml
from mmvidattn.datasets.annotations.video_segment import VideoSegment

META = '''<?xml version="1.0" encoding="utf-8"?>
<annotations>
<version>1.1</version>
<meta><task><id>4</id><name>my task</name><size>100</size>
<mode>interpolation</mode><overlap>5</overlap><subset>Train</subset>
<start_frame>0</start_frame><stop_frame>99</stop_frame>
<frame_filter>{filter}</frame_filter>
<labels><label><name>run</name><attributes></attributes></label></labels>
<original_size><width>640</width><height>480</height></original_size>
<source>day 1.mp4</source></task><dumped>2024-01-01</dumped></meta>
'''


def box(frame, outside=0, attributes=''):
    return (f'<box frame="{frame}" outside="{outside}" occluded="0" '
            'keyframe="1" xtl="1.00" ytl="2.00" xbr="3.00" ybr="4.00" '
            f'z_order="0">{attributes}</box>')


def track(label, *shapes, number=0):
    return (f'<track id="{number}" label="{label}" source="manual">\n'
            + '\n'.join(shapes) + '\n</track>\n')


def document(*parts, filter=''):
    return META.format(filter=filter) + ''.join(parts) + '</annotations>\n'


def read(tmp_path, text, fps=10.):
    path = tmp_path / 'a.xml'
    path.write_text(text, encoding='utf-8')
    return read_annotations(path, fps=fps)


def times(found):
    return [(one.labels['action'], one.start, one.end)
            for one in found.segments]


def test_a_track_is_a_segment_each_time_it_is_visible(tmp_path):
    found = read(tmp_path, document(
        # All frames, as CVAT writes them; then a gap.
        track('run', *map(box, range(10, 20)), box(20, 1), box(25, 1),
              box(30), box(40, 1)),
        # Up to the last frame of the task.
        track('a &amp; b', *map(box, range(95, 100)), number=1),
        # A shape of one frame.
        track('run', box(5), box(6, 1), number=2)))
    assert times(found) == [('run', 1, 2), ('run', 3, 4), ('a & b', 9.5, 10),
                            ('run', 0.5, 0.6)]
    assert [one.id for one in found.segments] == [
        'track 0', 'track 0#2', 'track 1', 'track 2']
    assert found.videos == {'day 1.mp4': VideoInfo(None, None, 640, 480)}
    assert {one.subset for one in found.segments} == {'Train'}
    assert found.segments[0].frames == (10, 20)


def test_frames_of_a_task_may_have_a_step(tmp_path):
    found = read(tmp_path, document(track('run', box(90), box(95)),
                                    filter='step=5'))
    assert times(found) == [('run', 9, 10)]


def test_files_of_datumaro_are_equal(tmp_path):
    """Elements as Datumaro 1.13.12 writes them, without the key ``source``.

    It also read our file of six overlapping, point and open segments, with
    equal labels, frames and scores.
    """
    shapes = ''.join(
        f'<box frame="{frame}" occluded="0" outside="{frame // 6}" '
        'keyframe="1" xtl="0.00" ytl="0.00" xbr="9.00" ybr="9.00" '
        'z_order="0">\n</box>\n' for frame in range(2, 7))
    images = ''.join(
        f'<image id="{frame}" name="frame_{frame:06d}.jpg" width="64" '
        'height="48">\n' + '<tag label="run">\n</tag>\n' * (frame < 5)
        + '<tag label="jump">\n</tag>\n' * (frame == 3) + '</image>\n'
        for frame in range(2, 6))
    head = ('<annotations><version>1.1</version><meta><task><id></id>'
            '<name>default</name><mode>annotation</mode></task></meta>\n')
    assert times(read(tmp_path, head + f'<track id="7" label="run">\n{shapes}'
                      '</track></annotations>')) == [('run', .2, .6)]
    assert times(read(tmp_path, head + images + '</annotations>')) == [
        ('run', .2, .5), ('jump', .3, .4)]


def test_consecutive_frames_with_a_tag_are_a_segment(tmp_path):
    def image(frame, *labels):
        tags = ''.join(f'<tag label="{label}" source="manual"></tag>'
                       for label in labels)
        shape = '<box label="run" occluded="0"></box>' if frame == 7 else ''
        return (f'<image id="{frame}" name="frame_{frame:06d}" width="640" '
                f'height="480">{tags}{shape}</image>\n')

    found = read(tmp_path, document(
        image(3, 'p'), image(4, 'p', 'q'), image(5, 'p'), image(6),
        image(7, 'q'), image(8, 'p')))
    assert sorted(times(found)) == [
        ('p', 0.3, 0.6), ('p', 0.8, 0.9), ('q', 0.4, 0.5), ('q', 0.7, 0.8)]
    assert found.remarks == ['1 shapes of single frames left out: only tags '
                             'and tracks are segments']


def test_written_file_has_what_cvat_imports(tmp_path):
    path = tmp_path / 'a.xml'
    write_annotations([
        VideoSegment('1', 'a.mp4', 1., 2., dict(action='x "y"'), '',
                     score=0.5),
        VideoSegment('2', 'a.mp4', 3., 3., dict(action='z'), ''),
        VideoSegment('3', 'a.mp4', 4., math.nan, dict(action='z'), '')],
        path, videos={'a.mp4': VideoInfo(25., 10., 640, 480)})
    root = read_xml(path, 'annotations')
    assert root.words('version') == '1.1'
    task = root.find('meta/task')
    assert [task.words(name) for name in ('mode', 'size', 'source')] == [
        'interpolation', '250', 'a.mp4']
    assert [label.words('name') for label in task.find('labels').children
            ] == ['x "y"', 'z']
    tracks = list(root.all('track'))
    assert [one['label'] for one in tracks] == ['x "y"', 'z', 'z']
    boxes = [[(b.natural('frame'), b['outside'], b['xbr'], b['ybr'])
              for b in one.all('box')] for one in tracks]
    assert boxes[0] == [(25, '0', '640.00', '480.00'),
                        (50, '1', '640.00', '480.00')]
    assert [b[:2] for b in boxes[1]] == [(75, '0'), (76, '1')]
    # An export of CVAT lacks the rate, and attributes that are not declared.
    text = path.read_text().replace('<fps>25.0</fps>', '')
    plain = '\n'.join(line for line in text.splitlines()
                      if '<attribute name' not in line)
    assert times(read(tmp_path, plain, 25.)) == [
        ('x "y"', 1, 2), ('z', 3, 3.04), ('z', 4, 4.04)]
    with pytest.raises(ValueError, match='a.xml: the frame rate of a.mp4'):
        read(tmp_path, plain, None)


@pytest.mark.parametrize('text, error', [
    (document(track('run', box('x'))), "line 12: frame must be a number, got "
     "'x'"),
    (document(track('run', box(-1))), 'line 12: frame must be a frame number'),
    (document(track('run', box(9), box(9))), 'line 13: frame 9 must come '
     'after frame 9'),
    (document(track('run', box(9, 2))), "line 12: outside must be 0 or 1, got "
     "'2'"),
    (document('<track id="0">', box(1), '</track>'),
     'line 11: <track> needs the attribute label'),
    (document(track(' ', box(1))), 'line 11: the label is empty'),
    (document(track('run', box(1, attributes='<attribute name="score">high'
                               '</attribute>'))),
     "line 12: score must be a number, got 'high'"),
    (document(track('run', box(1)))[:-20], 'line 13: invalid XML: '),
    ('<a/>', 'line 1: expected <annotations>, got <a>'),
    ('<?xml version="1.0"?>\n<!DOCTYPE annotations [<!ENTITY a "b">]>\n'
     '<annotations>&a;</annotations>', 'line 2: a document type '),
    ], ids=['word', 'negative', 'twice', 'outside', 'no-label', 'empty-label',
            'score', 'cut', 'root', 'entity'])
def test_broken_file_names_the_line(tmp_path, text, error):
    path = tmp_path / 'a.xml'
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        read_annotations(path, 'cvat', fps=10.)
