# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks: their threads, webhooks, clips of actions and folders of scores."""
import base64
import json
import os
import resource
import threading
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from live_fixtures import Hook, num_handles, wait_until

from mmvidattn.live import Detection, sinks
from mmvidattn.live.file_sinks import ScoreSink, SegmentSink
from mmvidattn.live.sinks import Sink, SinkThread, TryAgain, WebhookSink
from mmvidattn.online.frame_scores import read_frame_scores

NONE = np.zeros(0)


def step_of(step=0, events=()):
    return Detection(step, (step + 1) / 4, NONE, NONE, events, (), {})


class Recorder(Sink):
    name = 'recorder'
    queue_size = 4

    def __init__(self, wait=0., errors=()):
        self.wait, self.errors = wait, dict(errors)
        self.found, self.closed = [], False
        self.go = threading.Event()
        self.go.set()

    def write(self, detection):
        self.go.wait()
        time.sleep(self.wait)
        if detection.step in self.errors:
            raise self.errors[detection.step]
        self.found.append(detection.step)

    def close(self):
        self.closed = True


def test_blocked_sink_does_not_delay_the_run():
    sink, lines = Recorder(), []
    thread = SinkThread(sink, drop=True, log=lines.append)
    sink.go.clear()
    thread.put(map(step_of, range(40)))
    assert not sink.found
    # The sink has taken at most one item, and the latest four are queued.
    assert thread.dropped in (35, 36)
    sink.go.set()
    thread.close()
    assert sink.found[-4:] == [36, 37, 38, 39] and sink.closed
    assert len(sink.found) + thread.dropped == 40
    # The report of the run counts them.
    assert lines == []


def test_recording_waits_for_the_sink_and_each_error_is_logged_once():
    errors = {i: OSError(28, 'disk full', 'x.mp4') for i in range(20)}
    errors[30] = KeyError('x')
    sink, lines = Recorder(wait=0.002, errors=errors), []
    thread = SinkThread(sink, drop=False, log=lines.append)
    thread.put(map(step_of, range(40)))
    thread.close()
    assert sink.found == [*range(20, 30), *range(31, 40)] and sink.closed
    assert lines == ['recorder: x.mp4: disk full', 'recorder: x']
    assert thread.failed == 21


def test_hanging_sink_is_abandoned(monkeypatch):
    monkeypatch.setattr(sinks, 'CLOSE_SECONDS', 0.1)
    sink, lines = Recorder(), []
    thread = SinkThread(sink, drop=True, log=lines.append)
    sink.go.clear()
    thread.put([step_of(), step_of()])
    thread.close()
    assert lines == ['recorder hangs and was abandoned']
    assert thread.dropped == 2
    assert not sink.closed
    sink.go.set()


EVENT = {'id': 7, 'event': 'start', 'class': 'tänzen', 'start': 1.5}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(sinks, 'FIRST_DELAY', 0.01)
    monkeypatch.setattr(sinks, 'MAX_DELAY', 0.05)


def feed(web, *numbers, user=''):
    """Start a webhook with events, and return its thread and log."""
    lines = []
    thread = SinkThread(WebhookSink(f'http://{user}{web.host}/in', 'door'),
                        True, lines.append)
    thread.put({**EVENT, 'id': number} for number in numbers)
    return thread, lines


def test_webhook_posts_an_event(web):
    sink = WebhookSink(f'http://me:p%40ss@{web.host}/in?key=1', 'door')
    assert sink.name == f'http://{web.host}/in'
    sink.write(EVENT)
    (path, headers, data), = web.found
    assert path == '/in?key=1'
    assert json.loads(data) == {**EVENT, 'source': 'door'}
    assert headers['Content-Type'] == 'application/json'
    assert headers['Authorization'] == 'Basic ' + base64.b64encode(
        b'me:p@ss').decode()
    sink.close()


@pytest.mark.parametrize('answer', [
    (302, 'x'), (503, ''), b'no HTTP\r\n\r\n'], ids=str)
def test_webhook_is_repeated_until_it_is_delivered(web, quick, answer):
    """After anything except 2xx; redirects are not followed."""
    with closing(Hook()) as other:
        if not isinstance(answer, bytes):
            answer = answer[0], {'Location': f'http://me:secret@{other.host}/'
                                 } if answer[1] else {}
        web.answers += [answer] * 3
        thread, lines = feed(web, 7, 8, user='me:secret@')
        wait_until(lambda: len(web.found) == 5)
        thread.close()
        assert other.found == []
    assert [event['id'] for event in web.events] == [7, 7, 7, 7, 8]
    keys = web.headers('Idempotency-Key')
    assert len(set(keys)) == len({*keys[:4]}) + 1 == 2
    assert all('Authorization' in headers for _, headers, _ in web.found)
    assert (thread.dropped, thread.failed) == (0, 0)
    # The error is logged once.
    line, = lines
    assert line.startswith(f'http://{web.host}/in: ')
    assert 'secret' not in line
    if not isinstance(answer, bytes):
        assert f'status {answer[0]}' in line
        assert ('redirect' in line) == bool(answer[1])


def test_refused_event_is_skipped_and_counted(web, quick):
    web.answers.append((422, {}))
    thread, lines = feed(web, 7, 8)
    wait_until(lambda: len(web.found) == 2)
    thread.close()
    assert [event['id'] for event in web.events] == [7, 8]
    assert thread.failed == 1 and '422' in lines[0]


def test_delays_double(web):
    sink, delays = WebhookSink(f'http://{web.host}/', 'door'), []
    for status in [429] * 8 + [204, 500]:
        web.answers.append((status, {}))
        if status == 204:
            sink.write(EVENT)
            continue
        with pytest.raises(TryAgain, match=str(status)) as error:
            sink.write(EVENT)
        delays.append(error.value.seconds)
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 1]
    sink.close()


def test_waiting_events_are_bounded_and_get_a_last_attempt(web, monkeypatch):
    monkeypatch.setattr(WebhookSink, 'queue_size', 5)
    monkeypatch.setattr(sinks, 'FIRST_DELAY', 60)
    web.answers.append((500, {}))
    thread, _ = feed(web, 7)
    wait_until(lambda: web.found)
    thread.put({**EVENT, 'id': number} for number in range(8, 28))
    thread.close()
    assert [event['id'] for event in web.events[1:]] == [*range(23, 28)]
    assert thread.dropped == 16


RUN = SimpleNamespace(source=SimpleNamespace(fps=8.), rate=4.)


def brightness(number):
    """Brightness of a frame, different from the previous frame."""
    return 37 * number % 200 + 20


def frames_of(step, events=(), num=2, since=None):
    images = [np.full((64, 480, 3), brightness(2 * step + i), np.uint8)
              for i in range(num)]
    return Detection(step, (step + 1) / 4, NONE, NONE, events, images, {},
                     since)


def end(start, stop, start_id=3):
    return {'event': 'end', 'class': 'jump', 'start': start, 'end': stop,
            'start_id': start_id}


def check_frames(path, numbers):
    """Check that a clip has these frames."""
    np.testing.assert_allclose(
        shown(path), [brightness(number) for number in numbers], atol=6)


def shown(path):
    """Return the brightness of a clip's frames below the caption."""
    video, result = cv2.VideoCapture(str(path)), []
    assert video.get(cv2.CAP_PROP_FPS) == 8
    while True:
        is_read, image = video.read()
        if not is_read:
            return result
        result.append(image[-48:].mean())


def test_clip_has_the_action_and_its_margins(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=.5, after=1.)
    for step in range(40):
        sink.write(frames_of(step, [end(4., 5.)] * (step == 20),
                             since=4. if 16 <= step < 20 else None))
        # The clip is written when the second after the action has passed.
        assert sink.path(3).exists() == (step >= 23)
    sink.close()
    assert sink.path(3).name == '000003.mp4'
    # The clip lasts from 3.5 s to 6 s, at 8 frames per second.
    check_frames(sink.path(3), range(28, 48))
    assert [path.name for path in tmp_path.iterdir()] == ['000003.mp4']


def test_close_writes_the_last_actions(tmp_path):
    sink = SegmentSink(tmp_path, RUN)
    for step in range(8):
        sink.write(frames_of(step, [end(.5, 1.5, 0)] * (step == 6),
                             since=.5 if step < 6 else 1.))
    for last in sink.finish([end(1., 2., 1)]):
        sink.write(last)
    sink.close()
    check_frames(sink.path(0), range(16))
    check_frames(sink.path(1), range(16))


def test_earlier_frame_replaces_missing_frames(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=0, after=0)
    for step in 0, 1, 2, 6, 7:
        sink.write(frames_of(step, [end(0., 2.)] * (step == 7),
                             since=None if step == 7 else 0.))
    check_frames(sink.path(3), [*range(6), *[5] * 6, *range(12, 16)])


def test_buffer_is_bounded_and_keeps_the_latest_frames(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=0, after=0, max_bytes=60_000)
    for step in range(100):
        sink.write(frames_of(step, [end(0., 25.)] * (step == 99), since=0.))
        assert sink._num_bytes == sum(
            data.nbytes for _, data in sink._frames) <= 60_000
    number = len(shown(sink.path(3)))
    assert 2 < number < 100
    check_frames(sink.path(3), range(200 - number, 200))


def noisy(step, events=()):
    """Make a detection whose clip is larger than any buffer."""
    images = np.random.default_rng(step).integers(
        0, 255, (2, 96, 480, 3), np.uint8)
    return replace(frames_of(step, events, since=step / 4), images=[*images])


@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'),
                    reason='counts open files in /proc')
def test_failed_write_leaves_no_file_and_no_handle(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=0, after=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = num_handles()
    for number, size in enumerate((0, 9_000, 30_000)):
        sink.write(noisy(2 * number))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with pytest.raises(OSError):
                sink.write(noisy(2 * number + 1, [
                    end(number / 2, number / 2 + .5, number)]))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not list(tmp_path.iterdir()), size
        assert num_handles() == before, size
    sink.write(noisy(8))
    sink.write(noisy(9, [end(2., 2.5, 4)]))
    assert [path.name for path in tmp_path.iterdir()] == ['000004.mp4']
    assert len(shown(sink.path(4))) == 4


def write(folder, name, steps):
    sink = ScoreSink(folder, SimpleNamespace(
        source=SimpleNamespace(name=name), rate=4.,
        classes=['background', 'jump'], ignore={0}))
    for step in steps:
        scores = np.array([1 - step / 8, step / 8], np.float32)
        sink.write(replace(step_of(step), scores=scores))
    sink.close()


def test_sources_share_a_folder_and_missing_steps_are_filled(tmp_path):
    folder = tmp_path / 'x'
    write(folder, 'a.mp4', [0, 1, 2])
    write(folder, 'b.mp4', [2, 3, 6])
    write(folder, 'empty.mp4', [])
    found = read_frame_scores(folder)
    assert (found.classes, found.ignore) == (['background', 'jump'], {0})
    assert {name: (each.scores[:, 1] * 8).tolist()
            for name, each in found.videos.items()} == {
                'a.mp4': [0, 1, 2], 'b.mp4': [2, 2, 2, 3, 3, 3, 6]}
    write(folder, 'a.mp4', [5])
    assert len(read_frame_scores(folder).videos['a.mp4'].scores) == 6
