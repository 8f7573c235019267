# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from itertools import combinations_with_replacement

import numpy as np
import pytest
from mmaction.registry import DATASETS, TRANSFORMS

HEAD = 'original_vido_id video_id frame_id path labels\n'
# Classes of the frames of two videos.
LABELS = dict(A1=['', '3', '3,0', '0', '', '3'], B=['', '', '', ''])


def _write(folder, text=None):
    lines = [f'{video} {number} {i} {video}/{video}-{i + 1:06}.jpg "{classes}"'
             for number, (video, frames) in enumerate(LABELS.items())
             for i, classes in enumerate(frames)]
    (folder / 'train.csv').write_text(
        HEAD + '\n'.join(lines) + '\n' if text is None else text)


def _dataset(folder, pipeline=(), **kwargs):
    return DATASETS.build(dict(
        type='FrameListDataset', data_root=str(folder), ann_file='train.csv',
        data_prefix=dict(img='rgb'), num_classes=5, pipeline=list(pipeline),
        **kwargs))


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig'])
def test_reads_videos_frames_and_segments(tmp_path, encoding):
    _write(tmp_path)
    path = tmp_path / 'train.csv'
    path.write_text(path.read_text(), encoding)
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
    _write(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        _dataset(tmp_path)[0]
