# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import base64
import json
import socket
import threading
import time
import urllib.request
from types import SimpleNamespace
from urllib.error import HTTPError

import cv2
import numpy as np
import pytest
from live_fixtures import FakeRun, Script, wait_until

from mmvidattn.live import (
    Detection,
    FeatureStreamModel,
    StreamRun,
    event_frames,
)
from mmvidattn.live import run as live_run
from mmvidattn.live.event_frames import EventFrames

pytest.importorskip('fastapi')
from websockets.exceptions import (  # noqa: E402
    ConnectionClosed,
    InvalidStatus,
)
from websockets.sync.client import connect  # noqa: E402

from mmvidattn.live import server  # noqa: E402
from mmvidattn.live.server import LivePage, is_loopback  # noqa: E402

CLASSES = ['background', *(f'class {i}' for i in range(1, 20))]


def make_run(name='clip'):
    return FakeRun(name, CLASSES)


def image_of(text):
    """Decode a picture of a message."""
    data = np.frombuffer(base64.b64decode(text), np.uint8)
    return cv2.imdecode(data, cv2.IMREAD_COLOR)


def detection(step, scores=None, side=64, events=()):
    scores = np.linspace(0, 1, 20) if scores is None else scores
    image = np.full((side, 2 * side, 3), (200, 0, 0), np.uint8)
    return Detection(step, (step + 1) / 4, scores, scores[None], events,
                     [image], {})


START = {'event': 'start', 'class': 'class 3', 'index': 3, 'start': 1.5,
         'time': 2.}
END = dict(START, event='end', end=3., peak=.9, time=3.25)


def client(page, token='', **kwargs):
    address = f'ws://{page.host}:{page.port}/live'
    websocket = connect(address, max_size=2 ** 22, **kwargs)
    websocket.send(token)
    return websocket


def receive(websocket, kind):
    while True:
        message = json.loads(websocket.recv(timeout=10))
        if message['type'] == kind:
            return message


@pytest.fixture
def page():
    with LivePage([make_run('a'), make_run('b')], port=0) as page:
        yield page


def test_page_loads_nothing_from_other_hosts(page):
    with urllib.request.urlopen(page.url) as answer:
        text = answer.read().decode()
        policy = answer.headers['Content-Security-Policy']
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    with urllib.request.urlopen(f'{page.url}page.js') as answer:
        script = answer.read().decode()
        assert answer.headers['Content-Security-Policy'] == policy
    assert text.count('src="') == text.count('src="page.js"') == 1
    assert '://' not in text and '@import' not in text
    # The only other address is the SVG name space.
    assert script.count('://') == script.count(
        'http://www.w3.org/2000/svg') + script.count('ws${secure}://') == 2


def test_step_has_scores_events_and_a_picture(page):
    with client(page) as websocket:
        hello = receive(websocket, 'hello')
        assert [s['name'] for s in hello['sources']] == ['a', 'b']
        page.publish(1, detection(7, events=[START]))
        message = receive(websocket, 'step')
        assert (message['source'], message['time']) == (1, 2.)
        assert message['events'] == [START]
        # The best classes without the background.
        assert list(message['scores']) == [
            f'class {i}' for i in range(19, 11, -1)]
        image = image_of(message['picture'])
        assert image.shape == (64, 128, 3)
        assert image[0, 0].tolist() == pytest.approx([0, 0, 200], abs=4)
        page.publish(1, detection(8, side=2000))
        message = receive(websocket, 'step')
        assert image_of(message['picture']).shape == (320, 640, 3)
        assert receive(websocket, 'state')['status'] == 'running'


def test_new_clients_get_past_steps(page):
    for step in range(300):
        page.publish(0, detection(step))
    with client(page) as websocket:
        a, b = receive(websocket, 'hello')['sources']
    # The last minute.
    assert [s['time'] for s in a['past']] == [
        (t + 1) / 4 for t in range(60, 300)]
    assert b['past'] == []
    # Also after the source has ended.
    assert image_of(a['picture']).shape == (64, 128, 3)


def closed(websocket):
    with pytest.raises(ConnectionClosed) as error:
        # An open connection never stops sending.
        for _ in range(20):
            websocket.recv(timeout=10)
    return error.value.rcvd.code


def test_wrong_or_missing_token_closes_the_connection(monkeypatch):
    monkeypatch.setattr(server, 'TOKEN_SECONDS', 0.2)
    with LivePage([make_run()], port=0, token='sesam') as page:
        assert page.url.endswith('/#token=sesam')
        for token in '', 'wrong', 'sesam ', 'é', None:
            with connect(f'ws://127.0.0.1:{page.port}/live') as websocket:
                if token is not None:
                    websocket.send(token)
                assert closed(websocket) == server.WRONG_TOKEN
        wait_until(lambda: page._connected == 0)
        with client(page, 'sesam') as websocket:
            receive(websocket, 'hello')
    # An environment variable may contain any bytes.
    with pytest.raises(ValueError, match='surrogates'):
        LivePage([make_run()], port=0, token='\udcff')


def test_number_of_clients_is_limited(monkeypatch):
    """Also if two of them connect before either sends its token."""
    monkeypatch.setattr(server, 'MAX_CLIENTS', 2)
    with LivePage([make_run()], port=0) as page:
        address = f'ws://127.0.0.1:{page.port}/live'
        with client(page) as one, connect(address) as two, connect(
                address) as late:
            receive(one, 'hello')
            two.send(''), receive(two, 'hello')
            late.send('')
            assert closed(late) == server.TOO_MANY
            with connect(address) as three:
                assert closed(three) == server.TOO_MANY
        wait_until(lambda: page._connected == 0)
        with client(page) as again:
            receive(again, 'hello')


@pytest.mark.parametrize('headers', [
    'Host: 127.0.0.1\r\nOrigin: http://[\r\n',
    'Origin: http://127.0.0.1\r\n', 'no header\r\n',
    # Another site can make its host name resolve to this machine.
    'Host: evil.example\r\nOrigin: http://evil.example\r\n'])
def test_malformed_requests_are_refused(page, caplog, headers):
    request = (f'GET /live HTTP/1.1\r\n{headers}Connection: Upgrade\r\n'
               'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
               'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')
    with socket.create_connection(('127.0.0.1', page.port), 10) as connection:
        connection.sendall(request.encode())
        answer = connection.recv(4096)
    assert answer.split()[1] in (b'400', b'403')
    assert not caplog.records


def test_publishing_after_the_end_does_nothing():
    with LivePage([make_run()], port=0) as page:
        page.publish(0, detection(0))
    page.publish(0, detection(1))


def test_page_does_not_reveal_folders():
    run = make_run('/home/me/secret/clip.mp4')
    run.status = f'failed: {run.name} breaks off'
    with LivePage([run, make_run('http://host/x/y')], port=0) as page:
        with client(page) as websocket:
            text = websocket.recv(timeout=10)
            one, other = json.loads(text)['sources']
            text += websocket.recv(timeout=10)
    assert (one['name'], other['name']) == ('clip.mp4', 'http://host/x/y')
    assert one['status'] == 'failed: clip.mp4 breaks off'
    assert 'secret' not in text


@pytest.mark.parametrize('message', [
    'hello', '[1]', '[' * 1000, '{}', dict(type='threshold', source=2),
    dict(type='threshold', source=True), dict(type='stop', source=0),
    *({'type': 'threshold', 'source': 0, 'class': name, 'on': on}
      for name, on in (('background', .5), ([], .5), ('class 1', 0),
                       ('class 1', '0.5'), ('class 1', float('nan')))),
    dict(type='clip', source=0, index=[], start=1.),
    dict(type='clip', source=0, index=1)], ids=lambda m: str(m)[:60])
def test_invalid_message_closes_the_connection(page, message):
    with client(page) as websocket:
        receive(websocket, 'hello')
        websocket.send(
            message if isinstance(message, str) else json.dumps(message))
        assert closed(websocket) == server.UNEXPECTED
    assert page._runs[0].event_detector.thresholds()['changed'] == {}


def test_thresholds_change_for_all_clients(page):
    with client(page) as one, client(page) as other:
        assert receive(one, 'hello')['sources'][1]['thresholds'] == dict(
            on=.5, off=.3, changed={}, tuned={})
        receive(other, 'hello')
        one.send(json.dumps({'type': 'threshold', 'source': 1,
                             'class': 'class 3', 'on': .8}))
        while not (state := receive(other, 'state'))['source'] or not (
                state['thresholds']['changed']):
            pass
        assert state['thresholds']['changed'] == {
            'class 3': [.8, pytest.approx(.48)]}
    first, second = (run.event_detector.thresholds()['changed']
                     for run in page._runs)
    assert second and not first


def test_read_only_page_rejects_thresholds():
    with LivePage([make_run()], port=0, read_only=True) as page:
        with client(page) as websocket:
            assert receive(websocket, 'hello')['read_only'] is True
            assert ask_clip(websocket)['frames'] == []
            websocket.send(json.dumps({'type': 'threshold', 'source': 0,
                                       'class': 'class 3', 'on': .8}))
            assert closed(websocket) == server.UNEXPECTED
        assert page._runs[0].event_detector.thresholds()['changed'] == {}


def ask_clip(websocket, **kwargs):
    websocket.send(json.dumps(dict(
        dict(type='clip', source=0, index=3, start=1.5), **kwargs)))
    return receive(websocket, 'clip')


def test_clip_has_pictures_of_an_event(page):
    for step in range(20):
        page.publish(0, detection(
            step, side=1000, events={7: [START], 12: [END]}.get(step, ())))
    with client(page) as websocket:
        clip = ask_clip(websocket)
        assert (clip['index'], clip['start']) == (3, 1.5)
        # From the first picture to a second after the end.
        assert clip['times'] == [t / 4 for t in range(1, 17)]
        assert image_of(clip['frames'][0]).shape == (200, 400, 3)
        for other in dict(index=4), dict(start=1.25), dict(source=1):
            assert ask_clip(websocket, **other)['frames'] == []


@pytest.mark.parametrize('headers', [
    dict(Origin='http://evil.example'),
    dict(Origin='null'),
    dict(Origin='http://127.0.0.1:1'),
], ids=['other-site', 'no-site', 'other-port'])
def test_other_sites_are_refused(page, headers):
    with pytest.raises(InvalidStatus, match='403'):
        client(page, additional_headers=headers)


def test_slow_client_gets_the_latest_messages(page):
    with client(page) as websocket:
        receive(websocket, 'hello')
        queue, = page._clients

        def fill():
            # This runs in the event loop, so that nothing is sent meanwhile.
            for i in range(100):
                page._send(dict(type='step', number=i))

        page._loop.call_soon_threadsafe(fill)
        numbers = [receive(websocket, 'step')['number'] for _ in range(16)]
        assert numbers == list(range(84, 100))
        assert queue.maxsize == 16


def test_exit_frees_the_port():
    with LivePage([make_run()], port=0) as page:
        port = page.port
        websocket = client(page)
        receive(websocket, 'hello')
    assert closed(websocket) == 1012
    assert not [t for t in threading.enumerate() if t is page._thread]
    with LivePage([make_run()], port=port):
        with pytest.raises(OSError, match=f'cannot listen on 127.0.0.1, port '
                           f'{port}'):
            LivePage([make_run()], port=port)


def test_hosts_other_than_loopback_need_a_token():
    for host in '127.0.0.1', '127.8.0.1', 'localhost', '::1':
        assert is_loopback(host)
    for host in '0.0.0.0', '::', '192.168.1.5', 'box':
        assert not is_loopback(host)
        with pytest.raises(ValueError, match='pass a token, or 127.0.0.1'):
            LivePage([make_run()], host)


def test_silent_connections_are_closed(monkeypatch):
    monkeypatch.setattr(server, 'REQUEST_SECONDS', .2)
    with LivePage([], port=0) as page, socket.create_connection(
            ('127.0.0.1', page.port)) as silent:
        silent.settimeout(30)
        assert silent.recv(1) == b''


@pytest.fixture(scope='module')
def model(files):
    return FeatureStreamModel(
        *files, events=dict(on=.26, off=.2, min_duration=.25))


def get(page, path):
    address = f'http://{page.host}:{page.port}/{path}'
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_health(model):
    one = StreamRun(model, Script(range(24)))
    two = StreamRun(model, Script(range(24), error=ValueError('it broke')))
    with LivePage([one, two], port=0) as page:
        assert get(page, 'healthz') == (200, 'ok\n')
        # No step has been scored yet.
        assert get(page, 'readyz') == (503, '2 of 2 sources are not ok\n')
        steps = iter(one)
        next(steps)
        assert get(page, 'readyz') == (503, '1 of 2 sources are not ok\n')
        one.source.status = 'lost, reconnecting'
        assert get(page, 'readyz') == (503, '2 of 2 sources are not ok\n')
        assert get(page, 'healthz')[0] == 200
        list(steps)
        assert get(page, 'readyz') == (503, '1 of 2 sources are not ok\n')
        with pytest.raises(ValueError, match='it broke'):
            list(two)
        assert get(page, 'healthz') == (503, '1 of 2 sources are not ok\n')
        assert get(page, 'readyz') == (503, '1 of 2 sources are not ok\n')


def test_a_step_that_hangs_is_unhealthy(model, monkeypatch):
    monkeypatch.setattr(live_run, 'STUCK_SECONDS', 0.1)
    run = StreamRun(model, Script(range(24)))
    results = []
    score = run._scorer.scores

    def slow(step, has_next):
        assert run.problem == ''
        time.sleep(0.2)
        results.append(run.problem)
        return score(step, has_next)

    run._scorer = SimpleNamespace(
        scores=slow, max_skip=0, num_bad=0)
    next(iter(run))
    assert results[0] == 'a step has taken longer than 0.1 s'
    assert run.problem == ''


RATE = 4


def event(kind, index, start, **more):
    return dict(event=kind, index=index, start=start, **more)


def follow(num_steps, events, size=10):
    """Add pictures of steps; ``events`` has the events of each step."""
    frames = EventFrames()
    for step in range(num_steps):
        frames.add((step + 1) / RATE, b'%d' % step * size,
                   events.get(step, ()))
    return frames


def times(frames, *key):
    return [time for time, _ in frames.get(*key)]


def test_pictures_cover_time_before_and_after_the_event():
    frames = follow(60, {25: [event('start', 1, 6.)],
                         31: [event('end', 1, 6., end=8.)]})
    # Pictures from 2 seconds before the start to 1 second after the end.
    assert times(frames, 1, 6.) == [4 + t / 4 for t in range(1, 21)]
    assert frames.get(1, 6.)[0] == (4.25, b'16' * 10)


def test_pictures_of_a_long_event_are_thinned_out_evenly():
    frames = follow(400, {10: [event('start', 1, 2.5)]})
    result = times(frames, 1, 2.5)
    assert len(result) <= event_frames.MAX_FRAMES
    assert result[0] == 0.75 and result[-1] > 95
    assert {b - a for a, b in zip(result, result[1:])} == {4.}


@pytest.mark.parametrize('bound', ['MAX_CLIPS', 'MAX_BYTES'])
def test_memory_is_bounded(monkeypatch, bound):
    monkeypatch.setattr(event_frames, bound,
                        dict(MAX_CLIPS=3, MAX_BYTES=4000)[bound])
    frames = follow(2000, {t: [event('start', 0, (t - 2) / RATE),
                               event('end', 0, (t - 2) / RATE, end=t / RATE)]
                           for t in range(10, 2000, 40)})
    starts = [(t - 2) / RATE for t in range(10, 2000, 40)]
    kept = [start for start in starts if frames.get(0, start)]
    # The latest events are kept.
    assert kept == starts[-len(kept):] and 1 < len(kept) < 9
    assert frames.size <= event_frames.MAX_BYTES
    assert len(kept) == 3 or bound == 'MAX_BYTES'
    assert len(frames._recent) <= event_frames.RECENT * RATE + 1
