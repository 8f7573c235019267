# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Segments of long videos, and lists of frames."""
from itertools import combinations_with_replacement

import numpy as np
import pytest
from made_videos import numbers_of, slow_down, write_opencv
from mmaction.registry import DATASETS, TRANSFORMS

# Start, end, class, first frame and frame after the last, at 20 fps.
SEGMENTS = [(0, 1, 0, 0, 20), (1, 1.7, 1, 20, 34), (1.2, 1.4, 0, 24, 28),
            ('0:01', '00:00:01.55', 1, 20, 31), (1.5, 2, 0, 30, 40),
            (0.4, 0.7, 1, 8, 14)]
SAMPLERS = [
    dict(type='SampleFrames', clip_len=8, frame_interval=2),
    dict(type='SampleFrames', clip_len=4, frame_interval=3, num_clips=3),
    dict(type='SampleFrames', clip_len=8, frame_interval=1, target_fps=14),
    dict(type='UniformSample', clip_len=8)]
OPEN, DECODE = dict(type='DecordInit'), dict(type='DecordDecode')
FINISH = [DECODE, dict(type='FormatShape', input_format='NCTHW'),
          dict(type='PackActionInputs')]


@pytest.fixture
def write_list(tmp_path):
    """Write a video of two seconds, and function for rows below a header."""
    write_opencv(tmp_path / 'long.mp4')

    def write(*rows, header='video,start,end,label'):
        (tmp_path / 'segments.csv').write_text(
            '\n'.join([header, *rows]) + '\n', 'utf-8-sig')

    return write


@pytest.fixture
def build(tmp_path):
    def build(pipeline=(OPEN, ), ann_file='segments.csv', **options):
        return DATASETS.build(dict(
            type='VideoSegmentDataset', data_root=str(tmp_path),
            ann_file=ann_file, pipeline=list(pipeline)) | options)

    return build


@pytest.mark.parametrize('sampler', SAMPLERS, ids=str)
def test_segments_are_sampled_like_cut_files(write_list, build, sampler):
    write_list(*(f'long,{start},{end},{label}'
                 for start, end, label, *_ in SEGMENTS))
    dataset = build([OPEN, sampler, DECODE])
    for i, (_, _, label, first, stop) in enumerate(SEGMENTS):
        np.random.seed(i)
        sample = dataset[i]
        assert (sample['label'], sample['total_frames']) == (
            label, stop - first)
        np.random.seed(i)
        cut = TRANSFORMS.build(sampler)(dict(
            total_frames=stop - first, start_index=0, avg_fps=20.))
        assert numbers_of(np.array(sample['imgs'])) == [
            first + frame for frame in cut['frame_inds'].tolist()]


def places(dataset):
    """Return the first frame and number of frames of each segment."""
    return [(dataset[i]['start_index'], dataset[i]['total_frames'])
            for i in range(len(dataset))]


def test_frames_are_found_by_time_stamps(tmp_path, write_list, build):
    """The second half of the clip has half the frame rate."""
    write_list('long,0.5,0.7,0', 'long,0.95,1.2,0', 'long,2,2.4,0')
    slow_down(tmp_path / 'long.mp4', 20, 2)
    assert places(build()) == [(10, 4), (19, 3), (30, 4)]
    write_list('long,10,20,0', 'long,35,200,0')
    assert places(build(unit='frames')) == [(10, 10), (35, 5)]


PARTS = dict(multi_class=True, num_classes=12, num_nouns=10)
VERBS = 'video,start,end,verb,noun', 'long,1,2,1,9'
LABEL = 'video,start,end,label'


@pytest.mark.parametrize('lines, options, text', [
    ((LABEL, 'long,1,2,0', 'long,3,2,0'), {},
     'segments.csv, line 3: .*got 3 to 2'),
    ((LABEL, 'long,1,2,2'), {}, "line 2: label must be .*below 2, got '2'"),
    ((LABEL, 'long,1,2,cut'), {}, "line 2: label must be .* got 'cut'"),
    ((LABEL, ), {}, 'lists no segments'),
    (VERBS, dict(num_nouns=10), 'num_nouns needs multi_class=True'),
    (VERBS, PARTS | dict(num_nouns=9), 'line 2: noun must be in 0 to 8'),
    (VERBS, PARTS | dict(num_nouns=11), 'line 2: verb must be in 0 to 0'),
    (VERBS, {}, 'line 2: a segment must have a label .*got verb, noun'),
    (VERBS, PARTS | dict(pipeline=[dict(type='PyAVInit')]),
     'with DecordInit.*got PyAV'),
    (VERBS, PARTS | dict(filename_tmpl='x_{}'),
     '1 of 1 videos .*/x_long.mp4')], ids=str)
def test_rejects_invalid_lists_and_options(write_list, build, lines, options,
                                           text):
    write_list(*lines[1:], header=lines[0])
    with pytest.raises((ValueError, FileNotFoundError), match=text):
        build(**dict(num_classes=2) | options)


def test_names_a_missing_video(tmp_path, logged, write_list, build):
    # A byte order mark is ignored, in the list, too.
    (tmp_path / 'classes.txt').write_text('cut\nstir\n', 'utf-8-sig')
    write_list('long,1,2,cut', 'lost,1,2,stir', 'gone,1,2,cut')
    dataset = build(metainfo=dict(classes=str(tmp_path / 'classes.txt')))
    assert [dataset.get_data_info(i)['label'] for i in range(2)] == [0, 1]
    text, = (line for line in logged if 'videos are missing' in line)
    assert '2 of 3 videos are missing, with 2 of 3 segments' in text
    assert 'lost.mp4' in text


def test_segments_outside_of_their_video(tmp_path, logged, write_list, build):
    pack = [OPEN, dict(type='UniformSample', clip_len=2), *FINISH]
    write_list('long,1.8,9,0', 'long,2,3,1', 'long,1.01,1.03,1', 'lost,1,2,1')
    tested = build(pack, test_mode=True)
    assert tested[0]['inputs'].shape[2] == 2
    tested[0]
    # Only one segment is named.
    cut, = (line for line in logged if ' is cut at the end' in line)
    assert 'from 1.8 to 9 s is cut at the end of the video, 2 s; o' in cut
    for i, text in [(1, 'from 2 to 3 s begins after the video, which has 2 s'),
                    (2, 'from 1.01 to 1.03 s contains no frame'),
                    (3, 'lost.mp4')]:
        with pytest.raises(RuntimeError, match=f'cannot load .*{text}'):
            tested[i]
    assert len(build(pack, test_mode=True, on_error='skip')) == 3
    # In training, another segment replaces it.
    write_list('long,1.8,9,0', 'long,2,3,1')
    sample = build(pack, max_failures=99)[1]['data_samples']
    assert sample.gt_label == 0
    assert 'begins after' in sample.skipped_reasons[str(tmp_path / 'long.mp4')]


@pytest.mark.parametrize('labeled', [True, False])
def test_samples_have_an_id_a_noun_and_a_verb(write_list, build, labeled):
    """A challenge does not publish labels."""
    rows = ['P01_11_0,long,0,20,1,2,4', 'P02_3_7,long,24,38,0,1,5']
    write_list(*rows[1:], header=rows[0])
    if not labeled:
        write_list(rows[1][:-6], header=rows[0][:-6])
    dataset = build(
        [OPEN, SAMPLERS[0], *FINISH], filename_tmpl='long.mp4',
        multi_class=True, num_nouns=3, num_classes=5, test_mode=True, fps=20)
    for i, classes in enumerate([[0, 0, 1, 0, 1], [0, 1, 0, 1, 0]]):
        sample = dataset[i]['data_samples']
        assert sample.segment_id == ('P01_11_0', 'P02_3_7')[i]
        assert sample.gt_label.tolist() == (classes if labeled else [0] * 5)


def test_merges_the_labels_of_a_segment(write_list, build):
    write_list('long,0,1,2', 'long,1,2,0', 'long,0,1,0')
    dataset = build(multi_class=True, num_classes=3)
    infos = [dataset.get_data_info(i) for i in range(2)]
    assert [(*info['segment'][:2], info['label'].tolist()) for info in infos
            ] == [(0, 1, [1, 0, 1]), (1, 2, [1, 0, 0])]
    assert dataset.get_cat_ids(0) == [0, 2]
    write_list(VERBS[1], header=VERBS[0])
    assert build(**PARTS).get_cat_ids(0) == [9, 11]


# Lists of frames


HEAD = 'original_vido_id video_id frame_id path labels\n'
# Classes of the frames of two videos.
LABELS = dict(A1=['', '3', '3,0', '0', '', '3'], B=['', '', '', ''])


def _write(folder, mark=''):
    (folder / 'train.csv').write_text(mark + HEAD + ''.join(
        f'{video} {number} {i} {video}/{video}-{i + 1:06}.jpg "{classes}"\n'
        for number, (video, frames) in enumerate(LABELS.items())
        for i, classes in enumerate(frames)))


def _dataset(folder, pipeline=(), **kwargs):
    return DATASETS.build(dict(
        type='FrameListDataset', data_root=str(folder), ann_file='train.csv',
        data_prefix=dict(img='rgb'), num_classes=5, pipeline=list(pipeline),
        **kwargs))


@pytest.mark.parametrize('mark', ['', '\ufeff'])
def test_reads_videos_frames_and_segments(tmp_path, mark):
    _write(tmp_path, mark)
    first, second = (_dataset(tmp_path).get_data_info(i) for i in range(2))
    path = first['frame_dir'] + '/' + first['filename_tmpl'].format(
        first['offset'])
    assert path == str(tmp_path / 'rgb/A1/A1-000001.jpg')
    assert (first['total_frames'], second['total_frames']) == (6, 4)
    assert first['segments'] == [[3, 1, 2], [0, 2, 3], [3, 5, 5]]
    assert first['label'].tolist() == [1, 0, 0, 1, 0]
    assert second['label'].tolist() == [0] * 5 and not second['segments']


def test_clip_has_the_classes_of_its_frames(tmp_path):
    _write(tmp_path)
    dataset = _dataset(tmp_path)
    for first, last in combinations_with_replacement(range(6), 2):
        info = dataset.get_data_info(0)
        info['frame_inds'] = np.array([first, last])
        got = TRANSFORMS.build(dict(type='ClipLabels'))(info)['label']
        want = {int(c) for frame in LABELS['A1'][first:last + 1]
                for c in frame.split(',') if c}
        assert got.tolist() == [float(c in want) for c in range(5)]


@pytest.mark.parametrize('text, message', [
    ('A 0 0 A/A-1.jpg "1"\n', 'not a frame list.*original_vido_id'),
    (HEAD + 'A 0 0 A/A-1.jpg "5"\n', 'line 2.*below 5.*"5"'),
    (HEAD + 'A 0 0 A/A-1.jpg "x"\n', 'line 2.*"x"'),
    (HEAD + 'A 0 A/A-1.jpg "1"\n', 'line 2'),
    (HEAD + '\n', 'line 2'),
    (HEAD + 'A 0 0 A/A.jpg "1"\n', 'A.jpg must end with a number'),
    (HEAD + 'A 0 0 A/A-1.jpg ""\nA 0 1 A/A-3.jpg ""\n',
     'frame after A/A-1.jpg, got A/A-3.jpg')])
def test_rejects_invalid_line(tmp_path, text, message):
    (tmp_path / 'train.csv').write_text(text)
    with pytest.raises(ValueError, match=message):
        _dataset(tmp_path)[0]
