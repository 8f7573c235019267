# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks: their threads, webhooks, clips of actions and folders of scores."""
import base64
import os
import threading
import time
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import decord
import numpy as np
import pytest
from helpers import small_disk
from live_fixtures import Hook, wait_until

from mmvidattn.live import Detection, sinks
from mmvidattn.live.file_sinks import ScoreSink, SegmentSink
from mmvidattn.live.sinks import Sink, SinkThread, TryAgain, WebhookSink
from mmvidattn.online.frame_scores import read_frame_scores

NONE = np.zeros(0)


class Recorder(Sink):
    name = 'recorder'
    queue_size = 4

    def __init__(self, wait=0., errors=()):
        self.wait, self.errors = wait, dict(errors)
        self.found, self.closed = [], False
        self.go = threading.Event()
        self.go.set()

    def write(self, number):
        self.go.wait()
        time.sleep(self.wait)
        if number in self.errors:
            raise self.errors[number]
        self.found.append(number)

    def close(self):
        self.closed = True


def test_blocked_sink_does_not_delay_the_run():
    sink, lines = Recorder(), []
    thread = SinkThread(sink, drop=True, log=lines.append)
    sink.go.clear()
    thread.put(range(40))
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
    thread.put(range(40))
    thread.close()
    assert sink.found == [*range(20, 30), *range(31, 40)] and sink.closed
    assert lines == ['recorder: x.mp4: disk full', 'recorder: x']
    assert thread.failed == 21


def test_hanging_sink_is_abandoned(monkeypatch):
    monkeypatch.setattr(sinks, 'CLOSE_SECONDS', 0.1)
    sink, lines = Recorder(), []
    thread = SinkThread(sink, drop=True, log=lines.append)
    sink.go.clear()
    thread.put([0, 1])
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


@pytest.fixture
def sink(web):
    return WebhookSink(f'http://me:s%40cret@{web.host}/in?key=1', 'door')


def feed(sink, *numbers):
    """Start a webhook with events, and return its thread and log."""
    lines = []
    thread = SinkThread(sink, True, lines.append)
    thread.put({**EVENT, 'id': number} for number in numbers)
    return thread, lines


@pytest.mark.parametrize('status', [302, 503, None])
def test_webhook_is_repeated_until_it_is_delivered(web, sink, quick, status):
    """After anything except 2xx; redirects are not followed."""
    with closing(Hook()) as other:
        answer = b'no HTTP\r\n\r\n' if status is None else (status, {
            'Location': f'http://me:s%40cret@{other.host}/'})
        web.answers += [answer] * 3
        thread, lines = feed(sink, 7, 8)
        wait_until(lambda: len(web.found) == 5)
        thread.close()
        assert other.found == []
    assert web.events == [{**EVENT, 'id': i, 'source': 'door'}
                          for i in (7, 7, 7, 7, 8)]
    assert {path for path, _, _ in web.found} == {'/in?key=1'}
    assert {*web.headers('Content-Type')} == {'application/json'}
    assert {*web.headers('Authorization')} == {
        'Basic ' + base64.b64encode(b'me:s@cret').decode()}
    keys = web.headers('Idempotency-Key')
    assert len(set(keys)) == len({*keys[:4]}) + 1 == 2
    assert (thread.dropped, thread.failed) == (0, 0)
    # The error is logged once.
    line, = lines
    assert line.startswith(f'http://{web.host}/in: ')
    assert 'cret' not in line and f'{status or "HTTP"}' in line


def test_refused_event_is_skipped_and_counted(web, sink, quick):
    web.answers.append((422, {}))
    thread, lines = feed(sink, 7, 8)
    wait_until(lambda: len(web.found) == 2)
    thread.close()
    assert [event['id'] for event in web.events] == [7, 8]
    assert thread.failed == 1 and '422' in lines[0]


def test_delays_double(web, sink):
    web.answers += [(status, {}) for status in [429] * 8 + [204, 500]]
    delays = []
    for _ in range(10):
        try:
            sink.write(EVENT)
        except TryAgain as error:
            delays.append(error.seconds)
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 1]
    sink.close()


def test_waiting_events_are_bounded_and_get_a_last_attempt(web, sink,
                                                           monkeypatch):
    monkeypatch.setattr(WebhookSink, 'queue_size', 5)
    monkeypatch.setattr(sinks, 'FIRST_DELAY', 60)
    web.answers.append((500, {}))
    thread, _ = feed(sink, 7)
    wait_until(lambda: web.found)
    thread.put({**EVENT, 'id': number} for number in range(8, 28))
    thread.close()
    assert [event['id'] for event in web.events[1:]] == [*range(23, 28)]
    assert thread.dropped == 16


RUN = SimpleNamespace(source=SimpleNamespace(fps=8.), rate=4.)


def brightness(number):
    """Brightness of a frame, different from the previous frame."""
    return 37 * number % 200 + 20


def frames_of(step, events=(), since=None):
    images = [np.full((64, 480, 3), brightness(2 * step + i), np.uint8)
              for i in range(2)]
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
    video = decord.VideoReader(str(path))
    assert video.get_avg_fps() == 8
    return [image[-48:].mean() for image in video.get_batch(
        range(len(video))).asnumpy()]


def test_clip_has_the_action_and_its_margins(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=.5, after=1.)
    # An earlier frame replaces the frames of two missing steps.
    for step in (*range(16), *range(18, 40)):
        sink.write(frames_of(step, [end(4., 5.)] * (step == 20), {
            18: 4., 19: 4., **dict.fromkeys(range(36, 40), 9.)}.get(step)))
        # The clip is written when the second after the action has passed.
        assert sink.path(3).exists() == (step >= 23)
    # The action from 9 s has not ended.
    for last in sink.finish([end(9., 10., 4)]):
        sink.write(last)
    sink.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        '000003.mp4', '000004.mp4']
    # The clip lasts from 3.5 s to 6 s, at 8 frames per second.
    check_frames(sink.path(3), [*range(28, 32), *[31] * 4, *range(36, 48)])
    check_frames(sink.path(4), range(68, 80))


def test_buffer_is_bounded_and_keeps_the_latest_frames(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=0, after=0, max_bytes=60_000)
    for step in range(100):
        sink.write(frames_of(step, [end(0., 25.)] * (step == 99), since=0.))
        assert sink._num_bytes == sum(
            data.nbytes for _, data in sink._frames) <= 60_000
    number = len(shown(sink.path(3)))
    assert 2 < number < 100
    check_frames(sink.path(3), range(200 - number, 200))


@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'), reason='needs /proc')
def test_full_disk_leaves_no_file_and_no_handle(tmp_path):
    sink = SegmentSink(tmp_path, RUN, before=0, after=0)
    handles = os.listdir('/proc/self/fd')
    for number, size in enumerate((0, 9_000, 30_000, None)):
        start = number / 2
        for step, events in (0, ()), (1, [end(start, start + .5, number)]):
            images = [*np.random.default_rng(step).integers(
                0, 255, (2, 96, 480, 3), np.uint8)]
            one = replace(frames_of(2 * number + step, events, start),
                          images=images)
            if step and size is not None:
                with small_disk(size), pytest.raises(OSError):
                    sink.write(one)
            else:
                sink.write(one)
        assert len(os.listdir('/proc/self/fd')) == len(handles), size
        assert len([*tmp_path.iterdir()]) == (size is None)
    assert len(shown(sink.path(3))) == 4


def write(folder, name, steps):
    sink = ScoreSink(folder, SimpleNamespace(
        source=SimpleNamespace(name=name), rate=4.,
        classes=['background', 'jump'], ignore={0}))
    for step in steps:
        scores = np.array([1 - step / 8, step / 8], np.float32)
        sink.write(Detection(step, step / 4, scores, NONE, (), (), {}))
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
