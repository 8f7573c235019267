# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest

from mmvidattn.datasets.annotations.formats import (
    read_annotations,
    write_annotations,
)

ATTRIBUTES = {
    '1': dict(aname='action', anchor_id='FILE1_Z2_XY0', type=4, desc='',
              options={'a': 'run', 'b': 'jump'}, default_option_id=''),
    '2': dict(aname='what', anchor_id='FILE1_Z2_XY0', type=2, desc='',
              options={'0': 'left', '1': 'right'}, default_option_id=''),
    '3': dict(aname='note', anchor_id='FILE1_Z2_XY0', type=1, desc='',
              options={}, default_option_id='')}


def project(metadata, **changes):
    """Return a project with two videos, as VIA 3 saves it."""
    return dict(dict(
        project=dict(pid='__VIA_PROJECT_ID__', pname='x', created=1,
                     data_format_version='3.1.1', vid_list=['1', '2']),
        config=dict(file=dict(loc_prefix={'1': '', '2': ''}), ui={}),
        attribute=ATTRIBUTES,
        file={'1': dict(fid='1', fname='a.mp4', type=4, loc=1, src=''),
              '2': dict(fid=2, fname='b', type=4, loc=2,
                        src='http://host/b.mp4')},
        view={'1': dict(fid_list=['1']), '2': dict(fid_list=[2])},
        metadata=metadata), **changes)


def entry(*times, vid='1', xy=(), **values):
    return dict(vid=vid, flg=0, z=list(times), xy=list(xy),
                av={key.strip('n'): value for key, value in values.items()})


def read(tmp_path, content):
    path = tmp_path / 'a.json'
    path.write_text(json.dumps(content, indent=1))
    return read_annotations(path)


def test_each_attribute_is_a_label(tmp_path):
    found = read(tmp_path, project({
        '1_x': entry(1.5, 2.25, n1='a', n2='0,1', n3=' some  text '),
        '2_y': entry(3, vid='2', n1='b'),
        '1_z': entry(4, 5, n1='typed', n2='', n3=''),
        '1_empty': entry(4, 5, n1=''),
        '1_box': entry(4, xy=[2, 1, 1, 5, 5], n1='a'),
        '1_file': entry(n1='a')}))
    assert [(one.video, one.start, one.end, one.labels['action'])
            for one in found.segments] == [
        ('a.mp4', 1.5, 2.25, 'run'), ('a.mp4', 1.5, 2.25, 'left'),
        ('a.mp4', 1.5, 2.25, 'right'), ('a.mp4', 1.5, 2.25, 'some text'),
        ('http://host/b.mp4', 3, 3, 'jump'), ('a.mp4', 4, 5, 'typed')]
    assert [one.id for one in found.segments][:2] == ['1_x', '1_x#2']
    assert found.remarks == [
        '2 regions and labels of entire files left out',
        '1 segments without a label left out']


def test_written_project_opens_in_via(tmp_path):
    """VIA finds views by text, and reads these fields of a project."""
    path = tmp_path / 'p.json'
    write_annotations(read(tmp_path, project({
        '1_x': entry(1.5, 2.25, n1='a'), '2_y': entry(3, vid='2', n1='b')})
    ).segments, path, 'via')
    written = json.loads(path.read_text())
    assert {*written} == {'project', 'config', 'attribute', 'file', 'view',
                          'metadata'}
    assert {*written['project']} == {
        'pid', 'rev', 'rev_timestamp', 'pname', 'creator', 'created',
        'data_format_version', 'vid_list'}
    assert written['project']['vid_list'] == [*written['view']] == ['1', '2']
    assert [one['vid'] for one in written['metadata'].values()] == ['1', '2']


@pytest.mark.parametrize('content, error', [
    (project({'1_x': entry(1, 'x', n1='a')}),
     r'line \d+, metadata.1_x.z\[1\]: expected a number, got "x"'),
    (project({'1_x': entry(1, 2, vid='9', n1='a')}),
     r'line \d+, metadata.1_x.vid: no view has the number 9'),
    (project({'1_x': entry(1, 2, n9='a')}),
     r'line \d+, metadata.1_x.av.9: no attribute has the number 9'),
    (project({'1_x': entry(2, 1, n1='a')}),
     r'line \d+, metadata.1_x: a segment must have 0 <= start < end'),
    (project({}, view={'1': dict(fid_list=['7'])}),
     r'line \d+, view.1.fid_list\[0\]: no file has the number 7'),
    (dict(project({}), metadata=[]), r'line \d+, metadata: expected an obj'),
    ], ids=['time', 'view', 'attribute', 'reversed', 'file', 'list'])
def test_broken_file_names_the_line(tmp_path, content, error):
    with pytest.raises(ValueError, match=error):
        read(tmp_path, content)
