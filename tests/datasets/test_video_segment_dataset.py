# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Segments of long videos, compared with files cut from them."""
import csv
import json
import shutil

import cv2
import decord
import numpy as np
import pytest
import torch
from helpers import slow_down
from mmaction.registry import DATASETS, METRICS

# Start, end, class, first frame and frame after the last of each segment, at
# 25 fps.
SEGMENTS = [(0, 1, 0, 0, 25), (1, 2.4, 1, 25, 60), (1.2, 1.6, 0, 30, 40),
            ('0:02', '00:00:03.04', 1, 50, 76), (3.4, 4, 0, 85, 100),
            (0.4, 0.72, 1, 10, 18)]
SAMPLERS = [
    dict(type='SampleFrames', clip_len=8, frame_interval=2),
    dict(type='SampleFrames', clip_len=4, frame_interval=3, num_clips=3,
         test_mode=True),
    dict(type='SampleFrames', clip_len=8, frame_interval=1, target_fps=14),
    dict(type='DenseSampleFrames', clip_len=4, num_clips=2),
    dict(type='UniformSample', clip_len=8)]
OPEN, DECODE = dict(type='DecordInit'), dict(type='DecordDecode')


def write(path, frames, rate, fourcc):
    height, width, _ = frames[0].shape
    writer = cv2.VideoWriter(
        str(path), cv2.VideoWriter_fourcc(*fourcc), rate, (width, height))
    for frame in frames:
        writer.write(np.ascontiguousarray(frame[..., ::-1]))
    writer.release()


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Four-second clip with 100 different frames."""
    rng = np.random.default_rng(0)
    noise = cv2.resize(rng.integers(0, 255, (40, 60, 3), np.uint8), (600, 400))
    path = tmp_path_factory.mktemp('made') / 'long.mp4'
    write(path, [noise[i:i + 96, 3 * i:3 * i + 128] for i in range(100)], 25,
          'mp4v')
    return path


def write_root(video, folder):
    """Write a dataset with one video and its csv."""
    shutil.copy(video, folder / 'long.mp4')
    with (folder / 'segments.csv').open('w', newline='') as file:
        csv.writer(file).writerows(
            [('video', 'start', 'end', 'label')]
            + [('long', *row[:3]) for row in SEGMENTS])
    return folder


def build(root, pipeline, ann_file='segments.csv', **options):
    options = dict(type='VideoSegmentDataset', data_root=str(root)) | options
    return DATASETS.build(dict(
        ann_file=ann_file, pipeline=pipeline, **options))


def test_segments_have_the_frames_of_cut_files(made, tmp_path):
    path, root = made, write_root(made, tmp_path)
    reader = decord.VideoReader(str(path), num_threads=1)
    # Decode sequentially, without seeking.
    frames = [reader.next().asnumpy() for _ in range(len(reader))]
    lines = []
    for i, (_, _, label, first, stop) in enumerate(SEGMENTS):
        write(root / f'cut{i}.avi', frames[first:stop], 25, 'FFV1')
        lines.append(f'cut{i}.avi {label}')
    (root / 'cut.txt').write_text('\n'.join(lines))

    every = [OPEN, dict(type='SampleFrames', clip_len=60, frame_interval=1,
                        out_of_bound_opt='repeat_last', test_mode=True),
             DECODE]
    full = build(root, every)
    for i, (_, _, label, first, stop) in enumerate(SEGMENTS):
        sample = full[i]
        assert sample['label'] == label
        assert sample['total_frames'] == stop - first
        assert np.array_equal(sample['imgs'][:stop - first],
                              frames[first:stop])
    for sampler in SAMPLERS:
        pipeline = [OPEN, sampler, DECODE]
        of_segments = build(root, pipeline)
        of_files = build(root, pipeline, 'cut.txt', type='CheckedVideoDataset')
        assert len(of_segments) == len(of_files) == 6
        for i in 1, 3, 4:
            np.random.seed(i)
            result = of_segments[i]
            np.random.seed(i)
            assert np.array_equal(result['imgs'], of_files[i]['imgs'])


def test_frames_are_found_by_time_stamps(made, tmp_path):
    """Write a clip whose second half has half the frame rate."""
    slow_down(shutil.copy(made, tmp_path / 'long.mp4'), 50, 2)
    (tmp_path / 'segments.csv').write_text(
        'video,start,end,label\nlong,1,1.2,0\nlong,1.96,2.16,0\n'
        'long,4,4.4,0\n')
    dataset = build(tmp_path, [OPEN])
    results = [(dataset[i]['start_index'], dataset[i]['total_frames'])
               for i in range(3)]
    assert results == [(25, 5), (49, 3), (75, 5)]


def test_unit_frames(made, tmp_path):
    shutil.copy(made, tmp_path / 'long.mp4')
    (tmp_path / 'segments.csv').write_text(
        'video,start,end,label\nlong,30,40,0\nlong,90,200,0\n')
    dataset = build(tmp_path, [OPEN], unit='frames')
    assert [(dataset[i]['start_index'], dataset[i]['total_frames'])
            for i in range(2)] == [(30, 10), (90, 10)]


@pytest.mark.parametrize('rows, text', [
    (['long,1,2,0', 'long,3,2,0'], 'segments.csv, line 3: .*got 3 to 2'),
    (['long,1,2,2'], "line 2: label must be .*below 2, got '2'"),
    (['long,1,2,cut'], "line 2: label must be .* got 'cut'"),
    ([], 'lists no segments')], ids=str)
def test_rejects_invalid_list(made, tmp_path, rows, text):
    shutil.copy(made, tmp_path / 'long.mp4')
    (tmp_path / 'segments.csv').write_text(
        '\n'.join(['video,start,end,label', *rows]))
    with pytest.raises(ValueError, match=text):
        build(tmp_path, [OPEN], num_classes=2)


def test_rejects_contradicting_arguments(made, tmp_path):
    shutil.copy(made, tmp_path / 'long.mp4')
    (tmp_path / 'segments.csv').write_text(
        'video,start,end,verb,noun\nlong,1,2,1,9\n')
    parts = dict(multi_class=True, num_classes=12, num_nouns=10)
    assert build(tmp_path, [OPEN], **parts).get_data_info(
        0)['label'].nonzero().flatten().tolist() == [9, 11]
    for options, text in [
            (dict(num_nouns=10), 'num_nouns needs multi_class=True'),
            (parts | dict(num_nouns=9), 'line 2: noun must be in 0 to 8'),
            (parts | dict(num_nouns=11), 'line 2: verb must be in 0 to 0'),
            ({}, 'line 2: a segment must have a label .*got verb, noun')]:
        with pytest.raises(ValueError, match=text):
            build(tmp_path, [OPEN], **options)
    with pytest.raises(ValueError, match='with DecordInit.*got PyAV'):
        build(tmp_path, [dict(type='PyAVInit')], **parts)
    with pytest.raises(FileNotFoundError, match='1 of 1 videos .*/x_long.mp4'):
        build(tmp_path, [OPEN], filename_tmpl='x_{}', **parts)


def test_names_a_missing_video(made, tmp_path, logged):
    shutil.copy(made, tmp_path / 'long.mp4')
    # A byte order mark is ignored.
    (tmp_path / 'classes.txt').write_text('cut\nstir\n', 'utf-8-sig')
    (tmp_path / 'segments.csv').write_text(
        'video,start,end,label\nlong,1,2,cut\nlost,1,2,stir\ngone,1,2,cut\n',
        'utf-8-sig')
    dataset = build(tmp_path, [OPEN], metainfo=dict(
        classes=str(tmp_path / 'classes.txt')))
    assert [dataset.get_data_info(i)['label'] for i in range(2)] == [0, 1]
    text, = (line for line in logged if 'videos are missing' in line)
    assert 'lost.mp4' in text and 'gone.mp4' not in text


def test_segments_outside_of_their_video(made, tmp_path, logged):
    shutil.copy(made, tmp_path / 'long.mp4')
    pack = [OPEN, dict(type='UniformSample', clip_len=2), DECODE,
            dict(type='FormatShape', input_format='NCTHW'),
            dict(type='PackActionInputs')]
    (tmp_path / 'segments.csv').write_text(
        'video,start,end,label\nlong,3.8,9,zero\nlong,4,5,one\n'
        'long,1.01,1.03,one\nlost,1,2,one\n')
    tested = build(tmp_path, pack, test_mode=True, metainfo=dict(
        classes=['zero', 'one']))
    assert tested.get_data_info(1)['label'] == 1
    assert any('1 of 2 videos are missing, with 1 of 4 segments' in line
               for line in logged)
    assert tested[0]['inputs'].shape[2] == 2
    assert 'from 3.8 to 9 s is cut at the end of the video, 4 s (1 so far' \
        in logged[-1]
    # A segment is only counted once.
    tested[0]
    assert sum(' is cut at the end' in line for line in logged) == 1
    for i, text in [(1, 'from 4 to 5 s begins after the video, which has 4 s'),
                    (2, 'from 1.01 to 1.03 s contains no frame'),
                    (3, 'lost.mp4')]:
        with pytest.raises(RuntimeError, match=f'cannot load .*{text}'):
            tested[i]
    skipping = build(tmp_path, pack, test_mode=True, on_error='skip',
                     metainfo=dict(classes=['zero', 'one']))
    assert len(skipping) == 3
    # In training, another segment replaces it.
    (tmp_path / 'segments.csv').write_text(
        'video,start,end,label\nlong,3.8,9,0\nlong,4,5,1\n')
    trained = build(tmp_path, pack, max_failures=99)
    sample = trained[1]['data_samples']
    assert sample.gt_label == 0
    assert 'begins after' in sample.skipped_reasons[str(tmp_path / 'long.mp4')]


@pytest.mark.parametrize('labeled', [True, False])
def test_segment_ids_select_subsets_and_are_submitted(made, tmp_path, labeled):
    """A challenge does not publish labels."""
    rows = [('P01_11_0', 0, 25, 1, 2, 4), ('P02_3_7', 30, 60, 0, 1, 5)]
    (tmp_path / 'test.csv').write_text(''.join(
        ','.join(map(str, (row[0], 'long', *row[1:6 if labeled else 3])))
        + '\n' for row in rows))
    dataset = build(
        tmp_path, [OPEN, SAMPLERS[0], DECODE,
                   dict(type='FormatShape', input_format='NCTHW'),
                   dict(type='PackActionInputs')],
        'test.csv', data_prefix=dict(video=str(made.parent)),
        filename_tmpl=made.name, multi_class=True, num_nouns=3,
        num_classes=5, test_mode=True, fps=25)
    samples = []
    for i, (noun, verb) in enumerate([(2, 1), (0, 0)]):
        sample = dataset[i]['data_samples'].set_pred_score(
            torch.eye(3)[noun].tolist() + torch.eye(2)[verb].tolist())
        samples.append(sample.to_dict())
    metric = METRICS.build(dict(
        type='VerbNounAccuracy', num_nouns=3,
        subsets=dict(first=['P01'], second=['P02_3_7'])))
    metric.process(None, samples)
    result = metric.evaluate(2)
    if labeled:
        assert [result[f'acc/{key}'] for key in (
            'action', 'verb', 'noun', 'action_first', 'verb_second',
            'noun_second')] == [0.5, 1, 0.5, 1, 1, 0]
    else:
        assert result == {}
    metric = METRICS.build(dict(
        type='EpicSubmission', out_file=str(tmp_path / 'test.json'),
        num_nouns=3))
    metric.process(None, samples)
    metric.evaluate(2)
    sent = json.loads((tmp_path / 'test.json').read_text())['results']
    assert list(sent) == ['P01_11_0', 'P02_3_7']
    best = sent['P01_11_0']['action']
    assert max(best, key=best.get) == '1,2'


def test_merges_the_labels_of_a_segment(made, tmp_path):
    (tmp_path / 'train.csv').write_text(
        'video,start,end,label\nlong,0,1,2\nlong,1,2,0\nlong,0,1,0\n')
    dataset = build(tmp_path, [OPEN], 'train.csv', multi_class=True,
                    num_classes=3, data_prefix=dict(video=str(made.parent)))
    assert [dataset.get_data_info(i)['segment'][:2] for i in range(2)] == [
        (0, 1), (1, 2)]
    assert [dataset.get_data_info(i)['label'].tolist()
            for i in range(len(dataset))] == [[1, 0, 1], [1, 0, 0]]
    assert dataset.get_cat_ids(0) == [0, 2]
