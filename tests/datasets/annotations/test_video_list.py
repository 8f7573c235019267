# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pickle

import pytest
from mmaction.registry import DATASETS

from mmvidattn.datasets import read_video_list


@pytest.fixture
def read(tmp_path):
    path = tmp_path / 'list.txt'

    def read(data, **options):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return read_video_list(str(path), **options)

    return read


TEXT = 'a.mp4 1\nü ñ/with two spaces 视频.mp4 0\n'


@pytest.mark.parametrize('text', [
    TEXT, TEXT.replace('\n', '\r\n'), TEXT.replace('\n', '\r'),
    '\ufeff' + TEXT, '\n \n' + TEXT + '\n\n', TEXT[:-1],
    TEXT.replace('\n', ' \t\n')],
    ids=['plain', 'CRLF', 'CR', 'BOM', 'blank lines', 'no last line end',
         'spaces at line ends'])
def test_reads_every_form_of_text(read, text):
    assert read(text) == [('a.mp4', 1), ('ü ñ/with two spaces 视频.mp4', 0)]
    # Unicode's separators do not end a line.
    assert read('a\u2028b\x0bc.mp4 1\n') == [('a\u2028b\x0bc.mp4', 1)]


@pytest.mark.parametrize('text, error, options', [
    ('a 0\n\nb', "line 3: 'b': no label; expected '<path> <label>'", {}),
    ('a 0\nb x', "line 2: 'b x': the label must be .* from 0, got 'x'", {}),
    ('a 0\nb 2\nc 3', "line 2: .*0 to 1, got '2'.*1 other line also invalid$",
     dict(num_classes=2)),
    ('a -1', "line 1: .* from 0, got '-1'", {}),
    ('a 0\n 3', "line 2: ' 3': no label", {}),
    ('a 0\nb 1\na 1', "line 3: 'a 1': line 1 gives it the label 0", {}),
    ('\n'.join(['x'] * 12), '11 other lines also invalid$', {}),
    ('', 'lists no videos', {}), ('\n \n', 'lists no videos', {}),
    (b'a 0\n\xff\xfe 1', 'text in UTF-8, got the byte 0xff in line 2', {}),
    ('a 0\nb\0 1', 'line 2: .* zero byte', {}),
    (pickle.dumps(['a']), 'must be text in UTF-8', {}),
    ('a,0\nb 1', 'line 2.*no label', dict(delimiter=',')),
    ('a 1 0\nb', "line 2.*<path> <label> ...", dict(
        multi_class=True)),
], ids=repr)
def test_errors_name_the_line(read, text, error, options):
    with pytest.raises(ValueError, match=f'(?s)list.txt.*{error}'):
        read(text, **options)


def test_warns_of_repeated_video(read, logged):
    assert len(read('a 0\nb 1\n\na 0\nb 1\n')) == 4
    line, = [line for line in logged if 'more than once' in line]
    assert '2 videos' in line and 'such as a' in line
    # With multi_class, a video may have two labels.
    assert len(read('a 0\na 1', multi_class=True)) == 2


def test_paths_must_stay_in_the_folder(read, tmp_path):
    folder, outside = tmp_path / 'videos', tmp_path / 'videos2'
    for path in folder / 'b', outside:
        path.mkdir(parents=True)
    for path in outside, folder:
        (path / 'a.mp4').touch()
    (folder / 'link').symlink_to(outside)
    (folder / 'b/a.mp4').symlink_to('../../videos2/a.mp4')
    for name in ('../a.mp4', 'b/../../a.mp4', '/etc/passwd', 'link/a.mp4',
                 'b/a.mp4', 'videos2/../../videos2/a.mp4'):
        text = f'b/c.mp4 0\n{name} 1\n'
        assert len(read(text)) == 2
        with pytest.raises(ValueError,
                           match=f'line 2: .*{name} leads out of'):
            read(text, folder=str(folder))
    # Links within the folder are allowed, and the folder may be a link.
    (folder / 'link.mp4').symlink_to('a.mp4')
    (tmp_path / 'here').symlink_to('videos')
    text = (f'a.mp4 0\nlink.mp4 0\nb/../none.mp4 0\n{folder}/a.mp4 0\n')
    assert len(read(text, folder=str(tmp_path / 'here'))) == 4
    for folder in '', 's3://videos':
        with pytest.raises(ValueError, match='set data_root or data_prefix'):
            read(text, folder=folder)


@pytest.mark.parametrize('kind, list_file, text', [
    ('CheckedVideoDataset', 'list.txt', 'a.mp4 0\n../a.mp4 0\n'),
    ('VideoSegmentDataset', 'list.csv',
     'video,start,end,label\na,0,1,0\n../a,0,1,0\n'),
    ('FrameListDataset', 'list.csv', 'original_vido_id video_id frame_id path '
     'labels\nA 0 0 ../A/A-1.jpg "1"\n')])
def test_datasets_reject_paths_outside(tmp_path, kind, list_file, text):
    (tmp_path / list_file).write_text(text)
    for folder in tmp_path, tmp_path.parent, tmp_path / 'videos':
        folder.mkdir(exist_ok=True)
        (folder / 'a.mp4').touch()
    config = dict(type=kind, data_root=str(tmp_path), ann_file=list_file,
                  num_classes=5, pipeline=[dict(type='DecordInit')])
    assert len(DATASETS.build(config))
    for prefix in '', 'videos':
        prefix = {'img' if 'Frame' in kind else 'video': prefix}
        with pytest.raises(ValueError, match='line [23].* leads out of'):
            DATASETS.build(dict(config, allow_outside=False,
                                data_prefix=prefix))
