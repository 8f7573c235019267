# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import base64
import json
import socket
import time
import urllib.request
from urllib.error import HTTPError

import cv2
import numpy as np
import pytest
from live_fixtures import FakeRun, Script, wait_until

from mmvidattn.live import Detection, StreamRun, event_frames
from mmvidattn.live import run as live_run
from mmvidattn.live.event_frames import EventFrames

pytest.importorskip('fastapi')
from websockets.exceptions import ConnectionClosed  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from mmvidattn.live import server  # noqa: E402
from mmvidattn.live.server import LivePage  # noqa: E402

CLASSES = ['background', *(f'class {i}' for i in range(1, 20))]
START = dict(event='start', index=3, start=3.)
END = dict(START, event='end', end=4.5)


def open_page(*names, **options):
    return LivePage([FakeRun(name, CLASSES) for name in names or ['clip']],
                    port=0, **options)


@pytest.fixture
def page():
    with open_page('a', 'b') as page:
        yield page


def image_of(text):
    """Decode a picture of a message."""
    data = np.frombuffer(base64.b64decode(text), np.uint8)
    return cv2.imdecode(data, cv2.IMREAD_COLOR)


def detection(step, side=64, events=()):
    scores = np.linspace(0, 1, 20)
    image = np.full((side, 2 * side, 3), (200, 0, 0), np.uint8)
    return Detection(step, (step + 1) / 4, scores, scores[None], events,
                     [image], {})


def client(page, token=''):
    """Connect to a page, and send a token unless it is None."""
    websocket = connect(f'ws://{page.host}:{page.port}/live', max_size=2 ** 22)
    if token is not None:
        websocket.send(token)
    return websocket


def receive(websocket, kind):
    while True:
        message = json.loads(websocket.recv(timeout=10))
        if message['type'] == kind:
            return message


CLIP = dict(type='clip', source=0, index=3, start=3.)


def send(websocket, message):
    websocket.send(
        message if isinstance(message, str) else json.dumps(message))


def changed(page):
    return [run.event_detector.thresholds()['changed'] for run in page._runs]


def closed(websocket):
    """Return the reason why the server closes the connection."""
    with pytest.raises(ConnectionClosed) as error:
        # An open connection never stops sending.
        for _ in range(20):
            websocket.recv(timeout=10)
    return error.value.rcvd.code


def get(page, path):
    """Return the status, text and headers of a file."""
    address = f'http://{page.host}:{page.port}/{path}'
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except HTTPError as error:
        return error.code, error.read().decode(), error.headers


def test_page_loads_nothing_from_other_hosts(page):
    (_, text, one), (_, script, other) = get(page, ''), get(page, 'page.js')
    for headers in one, other:
        assert {"default-src 'none'", "connect-src 'self'"} <= {
            *headers['Content-Security-Policy'].split('; ')}
    assert text.count('src="') == text.count('src="page.js"') == 1
    assert '://' not in text and '@import' not in text
    # The only other address is the SVG name space.
    assert script.count('://') == script.count(
        'http://www.w3.org/2000/svg') + script.count('ws${secure}://') == 2


def test_step_has_scores_events_and_a_picture(page):
    with client(page) as websocket:
        hello = receive(websocket, 'hello')
        assert [s['name'] for s in hello['sources']] == ['a', 'b']
        # Without the background.
        assert hello['sources'][0]['classes'] == CLASSES[1:]
        page.publish(1, detection(7, events=[START]))
        message = receive(websocket, 'step')
        assert (message['source'], message['time']) == (1, 2.)
        assert message['events'] == [START]
        # The best classes.
        assert list(message['scores']) == CLASSES[:11:-1]
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


def test_wrong_or_missing_token_closes_the_connection(monkeypatch):
    monkeypatch.setattr(server, 'TOKEN_SECONDS', 0.2)
    with open_page(token='sesam') as page:
        assert page.url.endswith('/#token=sesam')
        for token in '', 'sesam ', 'é', None:
            with client(page, token) as websocket:
                assert closed(websocket) == server.WRONG_TOKEN
        wait_until(lambda: page._connected == 0)
        with client(page, 'sesam') as websocket:
            receive(websocket, 'hello')


def test_number_of_clients_is_limited(monkeypatch):
    """Also if two of them connect before either sends its token."""
    monkeypatch.setattr(server, 'MAX_CLIENTS', 2)
    with open_page() as page:
        with client(page) as one, client(page, None) as two, client(
                page, None) as late:
            receive(one, 'hello')
            two.send(''), receive(two, 'hello')
            late.send('')
            assert closed(late) == server.TOO_MANY
            with client(page, None) as three:
                assert closed(three) == server.TOO_MANY
        wait_until(lambda: page._connected == 0)
        with client(page) as again:
            receive(again, 'hello')


def test_requests_of_other_sites_are_refused(page, caplog):
    for headers in (
            'Host: 127.0.0.1\r\nOrigin: http://[\r\n',
            'Origin: http://127.0.0.1\r\n', 'no header\r\n',
            # Another site can make its host name resolve to this machine.
            'Host: evil.example\r\nOrigin: http://evil.example\r\n',
            *(f'Host: 127.0.0.1:{page.port}\r\nOrigin: {site}\r\n'
              for site in ('http://evil.example', 'null',
                           'http://127.0.0.1:1'))):
        with socket.create_connection(
                ('127.0.0.1', page.port), 10) as connection:
            connection.sendall((
                f'GET /live HTTP/1.1\r\n{headers}'
                'Connection: Upgrade\r\nUpgrade: websocket\r\n'
                'Sec-WebSocket-Version: 13\r\n'
                'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
            ).encode())
            answer = connection.recv(4096)
        assert answer.split()[1] in (b'400', b'403'), headers
    assert not caplog.records


def test_page_does_not_reveal_folders():
    with open_page('/home/me/secret/clip.mp4', 'http://host/x/y') as page:
        run = page._runs[0]
        run.status = f'failed: {run.name} breaks off'
        with client(page) as websocket:
            text = websocket.recv(timeout=10)
            one, other = json.loads(text)['sources']
            text += websocket.recv(timeout=10)
    assert (one['name'], other['name']) == ('clip.mp4', 'http://host/x/y')
    assert one['status'] == 'failed: clip.mp4 breaks off'
    assert 'secret' not in text


INVALID = [
    'hello', '[1]', '[' * 1000, '{}', dict(type='threshold', source=2),
    dict(type='threshold', source=True), dict(type='stop', source=0),
    *({'type': 'threshold', 'source': 0, 'class': name, 'on': on}
      for name, on in (('background', .5), ([], .5), ('class 1', 0),
                       ('class 1', '0.5'), ('class 1', float('nan')))),
    dict(type='clip', source=0, index=[], start=1.),
    dict(type='clip', source=0, index=1)]
THRESHOLD = {'type': 'threshold', 'source': 1, 'class': 'class 3', 'on': .8}


@pytest.mark.parametrize('read_only, messages', [
    (False, INVALID), (True, [THRESHOLD])])
def test_unexpected_message_closes_the_connection(read_only, messages):
    with open_page('a', 'b', read_only=read_only) as page:
        for message in messages:
            with client(page) as websocket:
                assert receive(websocket, 'hello')['read_only'] == read_only
                send(websocket, dict(CLIP, index=9))
                assert receive(websocket, 'clip')['frames'] == []
                send(websocket, message)
                assert closed(websocket) == server.UNEXPECTED, message
        assert changed(page) == [{}, {}]
        wait_until(lambda: not page._clients)


def test_thresholds_change_for_all_clients(page):
    with client(page) as one, client(page) as other:
        assert receive(one, 'hello')['sources'][1]['thresholds'] == dict(
            on=.5, off=.3, changed={}, tuned={})
        send(one, THRESHOLD)
        state = wait_until(lambda: (
            each := receive(other, 'state'))['thresholds']['changed'] and each)
        assert (state['source'], state['thresholds']['changed']) == (
            1, {'class 3': [.8, pytest.approx(.48)]})


def test_clip_has_pictures_of_an_event(page):
    for step in range(30):
        page.publish(0, detection(
            step, side=1000, events={13: [START], 18: [END]}.get(step, ())))
    with client(page) as websocket:
        send(websocket, CLIP)
        clip = receive(websocket, 'clip')
        assert (clip['index'], clip['start']) == (3, 3.)
        # From 2 seconds before the start to a second after the end.
        assert clip['times'] == [t / 4 for t in range(5, 23)]
        assert image_of(clip['frames'][0]).shape == (200, 400, 3)
        for other in dict(index=4), dict(start=1.25), dict(source=1):
            send(websocket, CLIP | other)
            assert receive(websocket, 'clip')['frames'] == []


def test_slow_client_gets_the_latest_messages(page):
    with client(page) as websocket:
        receive(websocket, 'hello')
        # This runs in the event loop, so that nothing is sent meanwhile.
        page._loop.call_soon_threadsafe(lambda: [
            page._send(dict(type='step', number=i)) for i in range(100)])
        numbers = [receive(websocket, 'step')['number'] for _ in range(16)]
        assert numbers == list(range(84, 100))


def test_exit_frees_the_port():
    with open_page() as page:
        websocket = client(page)
        receive(websocket, 'hello')
    # Nobody is left to receive it.
    page.publish(0, detection(1))
    assert closed(websocket) == 1012
    with LivePage([], port=page.port), pytest.raises(
            OSError, match=f'cannot listen on 127.0.0.1, port {page.port}'):
        LivePage([], port=page.port)


def test_silent_connections_are_closed(monkeypatch):
    monkeypatch.setattr(server, 'REQUEST_SECONDS', .2)
    with open_page() as page, socket.create_connection(
            ('127.0.0.1', page.port)) as silent:
        silent.settimeout(30)
        assert silent.recv(1) == b''


def test_health(model):
    one = StreamRun(model, Script(range(24)))
    two = StreamRun(model, Script(range(24), error=ValueError('it broke')))
    with LivePage([one, two], port=0) as page:

        def check(healthy, ready):
            for path, number in ('healthz', healthy), ('readyz', ready):
                want = (200, 'ok\n') if number == 2 else (
                    503, f'{2 - number} of 2 sources are not ok\n')
                assert get(page, path)[:2] == want

        # No step has been scored yet.
        check(2, 0)
        steps = iter(one)
        next(steps)
        check(2, 1)
        one.source.status = 'lost, reconnecting'
        check(2, 0)
        list(steps)
        check(2, 1)
        with pytest.raises(ValueError, match='it broke'):
            list(two)
        check(1, 1)


def test_a_step_that_hangs_is_unhealthy(model, monkeypatch):
    monkeypatch.setattr(live_run, 'STUCK_SECONDS', 0.1)
    run, problems = StreamRun(model, Script(range(24))), []
    score = run._scorer.scores

    def slow(step, has_next):
        problems.append(run.problem)
        time.sleep(0.2)
        problems.append(run.problem)
        return score(step, has_next)

    run._scorer.scores = slow
    next(iter(run))
    assert [*problems[:2], run.problem] == [
        '', 'a step has taken longer than 0.1 s', '']


@pytest.mark.parametrize('bound, limit', [('MAX_CLIPS', 4),
                                          ('MAX_BYTES', 2400)])
def test_memory_of_pictures_is_bounded(monkeypatch, bound, limit):
    """The latest events are kept, and long events are thinned out evenly."""
    monkeypatch.setattr(event_frames, bound, limit)
    frames, starts = EventFrames(), [t / 4 for t in range(8, 400, 40)]
    for step in range(400):
        start = (step - 2) / 4
        events = [dict(END, start=start, end=start + .5)] * (start in starts)
        if step == 300:
            events = [dict(START, start=75.)]
        frames.add((step + 1) / 4, b'%d' % step * 10, events)
    kept = [start for start in starts if frames.get(3, start)]
    assert kept == starts[-3:] and frames.size <= event_frames.MAX_BYTES
    assert len(frames._recent) <= 4 * event_frames.RECENT + 1
    times, pictures = zip(*frames.get(3, 75.))
    assert pictures[0] == b'292' * 10
    assert times == tuple(73.25 + t for t in range(27))
