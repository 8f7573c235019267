# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of lists of videos and segments; lines/ has published lines."""
import csv
import math
import pickle
from pathlib import Path

import pytest
from mmaction.registry import DATASETS

from mmvidattn.datasets import read_video_list
from mmvidattn.datasets.annotations import published
from mmvidattn.datasets.annotations.labeled_videos import (
    LabeledVideo,
    read_labeled_videos,
)
from mmvidattn.datasets.annotations.segment_csv import read_segment_file
from mmvidattn.datasets.annotations.video_segment import seconds, steps_of

# Lists of videos


@pytest.fixture
def read(tmp_path):
    path = tmp_path / 'list.txt'

    def read(data, **options):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return read_video_list(str(path), **options)

    return read


TEXT = 'a.mp4 1\nü ñ/with two spaces 视频.mp4 0\n'


def test_reads_every_form_of_text(read):
    for text in (TEXT, TEXT.replace('\n', '\r\n'), TEXT.replace('\n', '\r'),
                 '\ufeff' + TEXT, '\n \n' + TEXT + '\n\n', TEXT[:-1],
                 TEXT.replace('\n', ' \t\n')):
        assert read(text) == [
            ('a.mp4', 1), ('ü ñ/with two spaces 视频.mp4', 0)], repr(text)
    # Unicode's separators do not end a line.
    assert read('a\u2028b\x0bc.mp4 1\n') == [('a\u2028b\x0bc.mp4', 1)]


@pytest.mark.parametrize('text, error, options', [
    ('a 0\n\nb', "line 3: 'b': no label; expected '<path> <label>'", {}),
    ('a 0\nb x', "line 2: 'b x': the label must be .* from 0, got 'x'", {}),
    ('a 0\nb 2\nc 3', "line 2: .*0 to 1, got '2'.*1 other line also invalid$",
     dict(num_classes=2)),
    ('a -1', "line 1: .* from 0, got '-1'", {}),
    ('a 0\nb 1\na 1', "line 3: 'a 1': line 1 gives it the label 0", {}),
    ('x\n' * 12, '11 other lines also invalid$', {}),
    ('\n \n', 'lists no videos', {}),
    (b'a 0\n\xff\xfe 1', 'text in UTF-8, got the byte 0xff in line 2', {}),
    ('a 0\nb\0 1', 'line 2: .* zero byte', {}),
    (pickle.dumps(['a']), 'must be text in UTF-8', {}),
    ('a,0\nb 1', 'line 2.*no label', dict(delimiter=',')),
    ('a 1 0\nb', 'line 2.*<path> <label> ...', dict(multi_class=True))],
    ids=repr)
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
        with pytest.raises(ValueError, match=f'line 2: .*{name} leads out of'):
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


# Lists of segments


@pytest.mark.parametrize('read', [read_labeled_videos, read_segment_file])
@pytest.mark.parametrize('text, error', [
    ('video,start,end,label\na,0,1,Jump, high\na,2,3,Jump, low',
     r'line 2: expected 4 fields .*got 5: a, 0, 1, Jump, high'),
    ('video,start,end,label,label\na,0,1,x,y',
     'must have one column label, got 2: label, label'),
    ('file,video,start,end,label\na,b,0,1,x',
     'must have one column video, got 2: file, video'),
    ('video,start,stop,end,label\na,0,1,2,x',
     'must have one column end, got 2: stop, end'),
    (f'video,start,end,label\na,0,1,{"x" * 140_000}',
     'line 2: invalid CSV: field larger than'),
    ('video,start,end,label\na,0,1,"x\nb,0,1,y',
     'line 3: invalid CSV: unexpected end'),
    ('video,start,end,label\na,-0:30,1:00,x', "got '-0:30'"),
    ], ids=range(7))
def test_rejects_ambiguous_lines(tmp_path, read, text, error):
    path = tmp_path / 'own.csv'
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        read(path)


def test_keeps_commas_in_quotes_and_ignores_padding(tmp_path):
    path = tmp_path / 'own.csv'
    # Separators of Unicode do not end a line.
    path.write_text('video,start,end,label,,\na,0,1, "Jump, high",,,,\n'
                    'b,0,1:00.5,"say ""go""\u2028\x85\x0b!",,\n')
    wanted = [('a', 'Jump, high', 1), ('b', 'say "go"\u2028\x85\x0b!', 60.5)]
    assert [(v.file, v.label, v.end)
            for v in read_labeled_videos(path)[1]] == wanted
    assert [(s.video, s.labels['action'], s.end)
            for s in read_segment_file(path)] == wanted


def test_reads_times():
    for word, value in {
            '1.5': 1.5, 2: 2, '-3': -3, '1e1': 10, '90:00': 5400, '1:05': 65,
            '00:01:02.25': 62.25, ' 0:30 ': 30, '100:00:01': 360001}.items():
        assert seconds(word, 'here') == value
    for word in ('-0:30', '0:-30', '+1:00', '-1:00:00', '1:60', '1:60:00',
                 '1:2:3:4', '0:1e1', ':30', '1:', '', 'soon', 'nan', 'inf',
                 '1_000', '1:nan', '9' * 5000, '9' * 5000 + ':00'):
        with pytest.raises(ValueError, match='here: expected seconds, mm:ss'):
            seconds(word, 'here')


@pytest.mark.parametrize('length', [7, 8, 15, 4000, 111209])
def test_steps_match_the_released_code(length):
    for start in range(1, 120000, 997):
        end = start + length
        assert steps_of(start / 30, end / 30, 4) == (
            int(start / 30 * 4), -int(-(end / 30 * 4) // 1))


# Folders and lists of labeled videos


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
    assert read_labeled_videos(folder) == (folder, [
        LabeledVideo('cut été/a.mp4', 'cut été'),
        LabeledVideo('cut été/deep/b.MOV', 'cut été'),
        LabeledVideo('wash/a b.avi', 'wash')], [
        'the folder empty has no videos and is left out',
        '2 files without the suffix of a video left out: none.txt, notes.txt',
        f'1 video in {folder} itself, outside of the class folders, left '
        'out: stray.mp4'])


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
    found = read_labeled_videos(path)
    assert found == (tmp_path, [
        LabeledVideo('a b.mp4', 'cut, fine', 1.5, 62, 'train', 'anna'),
        LabeledVideo('c.mp4', 'wash', 0, math.inf, 'val'),
        LabeledVideo('d.mp4', 'wash', 3, math.inf, 'test', 'ben'),
        LabeledVideo('e.mp4', 'wash', split='test', group='anna')], [
        'unused columns: mood', 'left out: 1 repeated line',
        '1 group in more than one split, so scores will be too high: anna'])
    assert [one.is_whole for one in found[1]] == [False, True, False, True]
    # Any table, by the names of its columns.
    write(path, 'Clip;Begin;Stop;Behavior;Set', 'a.mp4;25;50;run;train',
          'b.mp4;;;jump;val')
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
    assert [(tmp_path / video.file, *video[1:4]) for video in videos] == [
        (tmp_path / name, *rest) for name, *rest in (
            ('a.mp4', 'x', 0, 1), ('b.mp4', 'y', 0, math.inf),
            ('a.mp4', 'z', 1, 2), ('more/c.mp4', 'y', 0, math.inf))]
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


# Published lists


LINES = Path(__file__).parent / 'lines'
EK100 = LINES / 'ek100'


@pytest.mark.parametrize('header', [
    '', '\ufeffid,video,start_frame,end_frame,verb,noun,action\n'])
def test_rulstm(tmp_path, header):
    path = tmp_path / 'training.csv'
    text = (EK100 / 'training.csv').read_text()
    path.write_text(header + text.replace('\n', '\r\n') + '\n', newline='')
    result = published.read_rulstm(path, num_classes=published.EK100_CLASSES)
    assert [one.id for one in result] == [
        'P01_01_0', 'P01_01_1', 'P01_01_10', 'P01_01_100']
    assert result[0][1:6] == (
        'P01_01', 4 / 30, 101 / 30, dict(verb=3, noun=3, action=2413),
        f'{path}, line {2 if header else 1}')


def test_actions_and_official_segments_of_epic_kitchens(tmp_path):
    path = tmp_path / 'actions.csv'
    for text in ('id,verb,noun,action\n0,3,7,take spoon\n',
                 '0, 3_7, take spoon\n'):
        path.write_text(text)
        assert published.read_rulstm_actions(path) == [('take spoon', 3, 7)]
    official = read_segment_file(EK100 / 'EPIC_100_validation.csv')[2]
    assert (official.start, official.frames[0]) == (330.62, 19837)


@pytest.mark.parametrize('line, error', [
    ('P01_01_1,P01_01,185,131,6,114,3331',
     'line 5: a segment must have 0 <= start < end, got 185 to 131 frames'),
    ('P01_01_2,P01_01,x,131,6,114,3331', 'line 5: expected id, video, start'),
    ('P01_01_2,P01_01,1,131,97,114,3331', 'verb must be in 0 to 96, got 97'),
    ('P01_01_2,P01_01,1,131,6,-1,3331', 'noun must be in 0 to 299, got -1'),
    ('P01_01_1,P01_01,1,131,6,114,3331',
     'line 5: the id P01_01_1 .* line 2')])
def test_rejects_invalid_segment(tmp_path, line, error):
    path = tmp_path / 'training.csv'
    path.write_text((EK100 / 'training.csv').read_text() + line + '\n')
    options = dict(num_classes=published.EK100_CLASSES)
    with pytest.raises(ValueError, match=error):
        published.read_rulstm(path, **options)
    if 'expected' not in error:
        faults = []
        result = published.read_rulstm(path, fault=faults.append, **options)
        assert len(result) == 4 and len(faults) == 1


def test_invalid_first_line_is_not_a_header(tmp_path):
    path = tmp_path / 'training.csv'
    for first in ('1,P01_01,4.5,101.5', '\ufeff1,P01_01,x1,101,3,3,2413',
                  'one,P01_01,4f,101f,3v,3n,2413a'):
        path.write_text(f'{first}\n2,P01_01,4,101,3,3,2413\n', 'utf-8')
        with pytest.raises(ValueError, match='line 1: expected id, video, st'):
            read_segment_file(path)


# Complete published files; the expected counts use only the csv module.


@pytest.mark.parametrize('name, number, classes', [
    ('ek100_rulstm/validation.csv', 9668, published.EK100_CLASSES),
    ('ek100_rulstm/test_timestamps.csv', 13092, None),
    ('egtea_rulstm/validation1.csv', 2022, published.EGTEA_CLASSES)])
def test_real_rulstm(real, name, number, classes):
    result = read_segment_file(real / name, num_classes=classes)
    with open(real / name, newline='') as file:
        rows = list(csv.reader(file))
    assert len(rows) == number
    assert [(*one[:2], one.labels.get('action')) for one in result] == [
        (*row[:2], int(row[6]) if len(row) > 6 else None) for row in rows]


def test_real_data_info(real):
    for name in 'testra', 'lstr':
        path = real / f'{name}_data_info.json'
        classes, train, test = published.read_data_info(path, 'THUMOS')
        assert tuple(classes[1:]) == published.THUMOS14
        assert (len(train), len(test)) == (200, 213)
        classes, train, test = published.read_data_info(path, 'TVSeries')
        assert tuple(classes[1:]) == published.TVSERIES
        assert dict(train=tuple(train), test=tuple(test)) == (
            published.TVSERIES_VIDEOS)
