# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import pytest

from mmvidattn.datasets.annotations.labeled_videos import (
    LabeledVideo,
    read_labeled_videos,
)


def make(root, *names):
    for path in map(root.joinpath, names):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def write(path, *lines):
    path.write_text('\n'.join(lines) + '\n', 'utf-8')
    return path


@pytest.fixture
def folder(tmp_path):
    """Two classes, a folder without videos, and a video outside of them."""
    return make(tmp_path / 'my videos', 'cut été/a.mp4', 'cut été/deep/b.MOV',
                'wash/a b.avi', 'wash/notes.txt', 'empty/none.txt',
                'stray.mp4', '.hidden/c.mp4')


def test_folder_name_is_the_class(folder):
    root, videos, remarks = read_labeled_videos(folder)
    assert root == folder
    assert videos == [LabeledVideo('cut été/a.mp4', 'cut été'),
                      LabeledVideo('cut été/deep/b.MOV', 'cut été'),
                      LabeledVideo('wash/a b.avi', 'wash')]
    assert all(video.is_whole for video in videos)
    assert remarks == [
        'the folder empty has no videos and is left out',
        '2 files without the suffix of a video left out: none.txt, notes.txt',
        f'1 video in {folder} itself, outside of the class folders, left '
        'out: stray.mp4']


def test_reads_folders_of_splits(tmp_path):
    make(tmp_path, 'Train/cut/a.mp4', 'valid/cut/a.mp4')
    assert read_labeled_videos(tmp_path) == (tmp_path, [
        LabeledVideo('Train/cut/a.mp4', 'cut', split='train'),
        LabeledVideo('valid/cut/a.mp4', 'cut', split='val')], [])
    (tmp_path / 'Train').rename(tmp_path / 'test')
    with pytest.raises(ValueError, match='no video has the split train'):
        read_labeled_videos(tmp_path)


def test_rejects_invalid_folder(tmp_path, folder):
    for source, error in (
            (tmp_path / 'none', 'no folder or CSV file .*none'),
            (folder / 'wash/notes.txt', 'or a CSV file with columns'),
            (folder / 'cut été/deep', 'no videos in folders of .*itself, '
             'such as b.MOV, belong to no class'),
            (make(folder, 'wash/c\n.mp4'), r"'wash/c\\n.mp4' must not")):
        with pytest.raises((ValueError, FileNotFoundError), match=error):
            read_labeled_videos(source)
    with pytest.raises(ValueError, match='columns needs a table'):
        read_labeled_videos(folder, columns=dict(video='a', label='b'))


def test_reads_a_csv(tmp_path):
    path = write(
        tmp_path / 'own.csv', 'file,label,start,stop,split,group,mood',
        'a b.mp4,"cut, fine",1.5,0:01:02,train,anna,bad',
        'a b.mp4,"cut, fine",1.5,0:01:02,train,anna,again',
        'c.mp4,wash,,,Validation,,', 'd.mp4,wash,3,,test,ben,',
        'e.mp4,wash,,,test,anna,')
    root, videos, remarks = read_labeled_videos(path)
    assert root == tmp_path
    assert videos == [
        LabeledVideo('a b.mp4', 'cut, fine', 1.5, 62, 'train', 'anna'),
        LabeledVideo('c.mp4', 'wash', 0, math.inf, 'val'),
        LabeledVideo('d.mp4', 'wash', 3, math.inf, 'test', 'ben'),
        LabeledVideo('e.mp4', 'wash', split='test', group='anna')]
    assert [video.is_whole for video in videos[:3]] == [False, True, False]
    assert remarks == [
        'unused columns: mood', 'left out: 1 repeated line',
        '1 group in more than one split, so scores will be too high: anna']


def test_columns_read_any_table(tmp_path):
    path = write(tmp_path / 'table.txt', 'Clip;Begin;Stop;Behavior;Set',
                 'a.mp4;25;50;run;train', 'b.mp4;;;jump;val')
    columns = dict(video='Clip', start='Begin', end='Stop', label='Behavior',
                   split='Set')
    assert read_labeled_videos(path, False, columns, 25.)[1] == [
        LabeledVideo('a.mp4', 'run', 1., 2., 'train'),
        LabeledVideo('b.mp4', 'jump', split='val')]


def test_merges_several_files(tmp_path):
    first = write(tmp_path / 'a.csv', 'file,label,start,stop', 'a.mp4,x,0,1',
                  'b.mp4,y,,')
    (tmp_path / 'more').mkdir()
    second = write(tmp_path / 'more/b.csv', 'video,label,start,end',
                   '../a.mp4,x,0,1', '../a.mp4,z,1,2', f'{tmp_path}/b.mp4,y,,',
                   'c.mp4,y,,')
    root, videos, remarks = read_labeled_videos(first, more=[second])
    assert root == tmp_path
    names = [(tmp_path / video.file, *video[1:4]) for video in videos]
    assert names == [
        (tmp_path / 'a.mp4', 'x', 0, 1),
        (tmp_path / 'b.mp4', 'y', 0, math.inf),
        (tmp_path / 'a.mp4', 'z', 1, 2),
        (tmp_path / 'more/c.mp4', 'y', 0, math.inf)]
    assert len({video.file for video in videos}) == 3
    assert remarks == [f'videos: 2 from {first}, 2 from {second}',
                       'left out: 2 repeated lines']
    write(second, 'file,label', '../b.mp4,x')
    with pytest.raises(ValueError, match='b.csv, line 2: b.mp4 has the label '
                       'x here and y in .*a.csv, line 3; several labels need '
                       '--multi-label'):
        read_labeled_videos(first, more=[second])
    _, videos, _ = read_labeled_videos(first, True, more=[second])
    assert [video[:2] for video in videos[1:]] == [
        ('b.mp4', 'y'), ('b.mp4', 'x')]
    with pytest.raises(ValueError, match='must be CSV files, got the folder'):
        read_labeled_videos(first, more=[tmp_path])


@pytest.mark.parametrize('lines, error', [
    (['name,label', 'a,b'],
     'must have columns video or file, label, got name'),
    ([''], 'got nothing'), (['file,label'], 'lists no videos'),
    (['file,label', 'a.mp4,'], 'line 2: file and label must not be empty'),
    (['file,label', 'a.mp4'], 'line 2: expected 2 fields'),
    (['file,label,start,stop', 'a,x,3,2'], 'line 2: .*got 3 to 2'),
    (['file,label,start,stop', 'a,x,soon,2'],
     "seconds, mm:ss or hh:mm:ss, got 'soon'"),
    (['file,label,split', 'a,x,tran'], "train, val or test, got 'tran'"),
    (['file,label,split', 'a,x,train', 'b,x,'], '1 of 2 lines have'),
    (['file,label,split', 'a,x,val'], 'no video has the split train')],
    ids=str)
def test_rejects_invalid_csv(tmp_path, lines, error):
    with pytest.raises(ValueError, match=error):
        read_labeled_videos(write(tmp_path / 'own.csv', *lines))
