# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
from made_videos import FPS, LENGTH, write_opencv

from mmvidattn.datasets.annotations.formats import (
    VideoFolder,
    VideoInfo,
    read_annotations,
)
from mmvidattn.datasets.annotations.formats.videos import VideoNames


@pytest.fixture
def folder(tmp_path):
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
def test_finds_videos_by_any_name(folder, name, found):
    assert VideoFolder(folder).find(name) == found


@pytest.mark.parametrize('name, found', [
    ('day/1.mp4', 'day/1.mp4'), ('day/1', 'day/1.mp4'),
    ('1.mp4', 'day/1.mp4'), ('1.avi', 'day/1.mp4'),
    ('/home/me/day/1.mp4', 'day/1.mp4'), ('night/1.mp4', None),
    ('C:\\x\\day\\1.mp4', 'day/1.mp4'), ('2.mp4', '2.mp4'),
    ('other/2.mp4', '2.mp4'), ('0a1b2c3d-1.mp4', 'day/1.mp4'),
    ('3.avi', '3.avi'), ('y/3', '3'), ('rtsp://yard/live', None),
    ('rtsp://door/live', 'rtsp://door/live')])
def test_names_of_other_folders_are_other_videos(name, found):
    videos = 'day/1.mp4', '2.mp4', 'x/3.mp4', '3.avi', '3', 'rtsp://door/live'
    assert VideoNames(videos).find(name) == found


def test_refuses_a_name_of_several_videos(folder):
    with pytest.raises(ValueError, match='a.mp4 matches several videos: '
                                         'day1/a.mp4, day2/a.mp4'):
        VideoFolder(folder).find('a.mp4')
    with pytest.raises(ValueError, match='matches several videos: p q.mp4, '):
        VideoFolder(folder).find('0a1b2c3d-p_q.mp4')
    with pytest.raises(ValueError, match='videos must be a folder, got x'):
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
    assert result.videos['a.mp4'] == VideoInfo(
        FPS, pytest.approx(LENGTH / FPS), 96, 64)
    (tmp_path / 'v/lost.mp4').write_bytes(b'x')
    with pytest.raises(ValueError, match='cannot read the video .*lost.mp4'):
        read_annotations(path, videos=tmp_path / 'v')
