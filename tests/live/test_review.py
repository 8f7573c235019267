# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Review of detected events in video files."""
import base64
import json
import shutil
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from live_fixtures import make_images

from mmvidattn.datasets.annotations.custom.marks_csv import Mark, read_marks
from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.live.marks import EventMarks

pytest.importorskip('fastapi')
from websockets.exceptions import ConnectionClosed  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from mmvidattn.commands.review import make_runs  # noqa: E402
from mmvidattn.live.review import ReviewPage, ReviewRun  # noqa: E402
from mmvidattn.live.server import UNEXPECTED  # noqa: E402


def segment(start, end, label, score=None):
    return VideoSegment('', 'clip.mp4', start, end, dict(action=label), '',
                        score=score)


@pytest.fixture
def run(clip):
    return ReviewRun(
        clip, 7., [segment(1., 2.5, 'run', .75), segment(3., 4., 'jump')],
        [segment(1.5, 3., 'swim')], ['jump', 'run', 'swim'])


@pytest.fixture
def websocket(run, tmp_path):
    marks = EventMarks(tmp_path / 'marks.csv', [run])
    with ReviewPage([run], port=0, token='sesam', marks=marks) as page:
        with connect(f'ws://{page.host}:{page.port}/live') as websocket:
            websocket.send('sesam')
            yield websocket


def ask(websocket, kind, **message):
    websocket.send(json.dumps(dict(message, source=0)))
    return receive(websocket, kind)


def receive(websocket, kind):
    while True:
        message = json.loads(websocket.recv(timeout=10))
        if message['type'] == kind:
            return message


def test_page_gets_detected_and_annotated_events(websocket):
    hello = receive(websocket, 'hello')
    source, = hello['sources']
    assert hello['review'] and source['length'] == 7.
    assert source['name'] == 'clip.mp4' and source['status'] == 'ended'
    assert [(one['class'], one['start'], one['end'], one.get('peak'))
            for one in source['events']] == [
        ('run', 1., 2.5, .75), ('jump', 3., 4., None)]
    assert [(one['class'], one['start'], one['end'])
            for one in source['annotated']] == [('swim', 1.5, 3.)]
    assert source['classes'] == ['jump', 'run', 'swim']
    assert [step['time'] for step in source['past']] == [0, 7.]


@pytest.mark.parametrize('start, end, first, last', [
    (3., 4., 12, 72), (1., 2.5, 0, 54), (6., 6.5, 48, 83), (8., 9., 72, 83),
    (20., 21., None, None)])
def test_pictures_show_the_seconds_around_an_event(websocket, start, end,
                                                   first, last):
    answer = ask(websocket, 'clip', type='clip', index=1, start=start,
                 end=end)
    assert (answer['index'], answer['start'], answer['video']) == (
        1, start, '')
    if first is None:
        assert answer['frames'] == []
        return
    assert np.multiply(answer['times'], 12) == pytest.approx(
        range(first, last + 1))
    images = make_images(84)
    for time, picture in zip(answer['times'], answer['frames']):
        picture = cv2.imdecode(np.frombuffer(
            base64.b64decode(picture), np.uint8), cv2.IMREAD_COLOR)
        wanted = images[round(12 * time)].astype(int)
        assert abs(picture - wanted).mean() < 6


def test_long_events_have_few_pictures(run, monkeypatch):
    monkeypatch.setattr('mmvidattn.live.review.MAX_PICTURES', 10)
    times = [time for time, _ in run.pictures(2., 5.)]
    assert len(times) == 10 and times[0] == 0.
    assert np.diff(times) == pytest.approx(9 / 12)


def test_marks_have_the_scores_of_events(websocket, run, tmp_path):
    for message in (
            {'mark': 'wrong', 'class': 'run', 'start': 1.},
            {'mark': 'class', 'class': 'jump', 'start': 3., 'label': 'swim'},
            dict(mark='missed', label='swim', start=5, end=6)):
        assert ask(websocket, 'marks', type='mark', **message)['error'] == ''
    path = str(run.path)
    assert read_marks(tmp_path / 'marks.csv') == [
        Mark(path, 1., 2.5, 'run', 'wrong', 'run', .75),
        Mark(path, 3., 4., 'swim', 'class', 'jump'),
        Mark(path, 5., 6., 'swim', 'missed')]


@pytest.mark.parametrize('message', [
    dict(type='clip', index=1, start=1.),
    dict(type='clip', index=1, start=-1., end=2.),
    dict(type='threshold', on=.5) | {'class': 'run'}])
def test_malformed_messages_close(websocket, message):
    with pytest.raises(ConnectionClosed) as error:
        ask(websocket, 'clip', **message)
    assert error.value.rcvd.code == UNEXPECTED


def runs_of(clip, tmp_path, found, true=None):
    folder = tmp_path / 'videos/day'
    folder.mkdir(parents=True)
    for name in 'a.mp4', 'b.mp4':
        shutil.copy(clip, folder / name)
    args = SimpleNamespace(predictions=tmp_path / 'found.csv',
                           annotations=None, videos=folder.parent)
    args.predictions.write_text('video,start,end,label,score\n' + found)
    if true is not None:
        args.annotations = tmp_path / 'true.csv'
        args.annotations.write_text('video,start,end,label\n' + true)
    return make_runs(args)


def test_reads_all_videos_of_both_files(clip, tmp_path):
    one, other = runs_of(clip, tmp_path, 'a,1,2,run,.5\n',
                         '/x/b.mp4,3,4,jump\n')
    assert one.path == tmp_path / 'videos/day/a.mp4'
    assert one.duration == other.duration == 7.
    assert one.classes == other.classes == ['jump', 'run']
    assert [event['peak'] for event in one.events.recent] == [.5]
    assert one.annotated == other.events.recent == []
    assert [event['class'] for event in other.annotated] == ['jump']


@pytest.mark.parametrize('found, error', [
    ('c.mp4,1,2,run,\n', 'videos lacks 1 videos of .*found.csv, such as c'),
    ('a.mp4,1,,run,\n', 'line 2'), ('', 'has no videos')])
def test_rejects_events_that_cannot_be_shown(clip, tmp_path, found, error):
    with pytest.raises(ValueError, match=error):
        runs_of(clip, tmp_path, found)
