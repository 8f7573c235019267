# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math

import pytest

from mmvidattn.datasets.annotations.formats import (
    VideoInfo,
    read_annotations,
    write_annotations,
)
from mmvidattn.datasets.annotations.video_segment import VideoSegment


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
    assert [(one.start, one.end, one.labels['action']) for one in result] == [
        (0, 1, 'x'), (1, 1, 'y'), (0, .4, 'x'), (0, .4, 'y'), (.8, 1.2, 'x'),
        (.8, 1.2, 'y')]
    assert result[0].frames == (1, 25)
    # Several labels and ranges are several segments.
    assert [one.id for one in result] == ['r'] + [
        f'r#{i}' for i in range(2, 7)]


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
        region('choices', choices=['left'], ranges=[dict(start=1, end=2)]),
        region('videorectangle', sequence=[]),
        ])).segments
    assert [(one.start, one.labels['action']) for one in result] == [
        (0, 'p'), (0, 'q'), (1.25, 'z')]
    assert math.isnan(result[0].end) and result[2].end == 2


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
    assert [s.labels['action'] for s in result.segments] == ['new']
    assert result.remarks[1:] == [
        '1 tasks have several annotations: the ground truth, or else the '
        'latest one was read']
    one['annotations'][0]['ground_truth'] = True
    assert read(tmp_path, one).segments[0].labels == dict(action='old')


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
    write_annotations([one], path, 'label-studio', videos={
        'day 1/a.mp4': VideoInfo(25.), 'http://host/b.mp4': VideoInfo(10.)})
    first, second = json.loads(path.read_text())
    assert first['data'] == dict(
        video='/data/local-files/?d=day%201/a.mp4', fps=25, subset='val')
    prediction, = first['predictions']
    assert prediction['score'] == prediction['result'][0]['score'] == 0.5
    assert prediction['result'][0]['value'] == dict(
        ranges=[dict(start=26, end=50)], timelinelabels=['x "<y>'])
    assert second == dict(data=dict(video='http://host/b.mp4', fps=10))
    config = (tmp_path / 'tasks_config.xml').read_text()
    assert '<Label value="x &quot;&lt;y&gt;" />' in config
    assert read_annotations(path).segments[0].video == 'day 1/a.mp4'
    # Without a score, segments are finished annotations.
    write_annotations([one._replace(score=None)], path, 'label-studio',
                      fps=25., url='http://host/')
    first, = json.loads(path.read_text())
    assert first['data']['video'] == 'http://host/day%201/a.mp4'
    assert [*first] == ['data', 'annotations']


def test_a_path_below_data_is_a_file(tmp_path):
    """Only two folders below /data are addresses of Label Studio."""
    path = tmp_path / 'a.json'
    names = ['/data/videos/day 1.mp4', '/data/upload/1/b.mp4']
    write_annotations([], path, 'label-studio', videos={
        name: VideoInfo(25.) for name in names})
    assert [task['data']['video'] for task in json.loads(path.read_text())] \
        == ['/data/local-files/?d=/data/videos/day%201.mp4', names[1]]
    assert [*read_annotations(path).videos] == names
