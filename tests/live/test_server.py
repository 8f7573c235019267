# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import asyncio
import base64
import json
import logging
import threading
import urllib.request

import cv2
import numpy as np
import pytest
from live_fixtures import wait_until

from mmvidattn.live import Detection, Run

pytest.importorskip('fastapi')
from websockets.exceptions import (  # noqa: E402
    ConnectionClosed,
    InvalidStatus,
)
from websockets.sync.client import connect  # noqa: E402

from mmvidattn.live import server  # noqa: E402
from mmvidattn.live.server import LivePage, is_loopback  # noqa: E402


class FakeRun:
    """The part of a run that the page reads."""
    rate = 4.
    classes = ['background', *(f'class {i}' for i in range(1, 20))]
    ignore = {0}
    top_actions = Run.top_actions

    def __init__(self, name='clip'):
        self.name = name
        self.events = type('Log', (), dict(recent=[]))

    def report(self):
        return dict(name=self.name, status='running', rate=4., steps=1,
                    dropped=0, missing=0, latency={})


def detection(step, scores=None, side=64, events=()):
    scores = np.linspace(0, 1, 20) if scores is None else scores
    image = np.full((side, 2 * side, 3), (200, 0, 0), np.uint8)
    return Detection(step, (step + 1) / 4, scores, scores[None], events,
                     [image], {})


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
    with LivePage([FakeRun('a'), FakeRun('b')], port=0) as page:
        yield page


def test_page_needs_nothing_else(page):
    with urllib.request.urlopen(page.url) as answer:
        text = answer.read().decode()
        policy = answer.headers['Content-Security-Policy']
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    # The only address in it is the name space of SVG.
    assert text.count('://') == text.count('http://www.w3.org/2000/svg') + (
        text.count('ws${secure}://'))
    assert 'src="' not in text and '@import' not in text


def test_logs_stay_open(tmp_path):
    handler = logging.FileHandler(tmp_path / 'run.log')
    with LivePage([FakeRun()], port=0):
        pass
    assert handler.stream is not None
    handler.close()


def test_steps_are_sent(page):
    with client(page) as websocket:
        hello = receive(websocket, 'hello')
        assert [s['name'] for s in hello['sources']] == ['a', 'b']
        page.publish(1, detection(7, events=[dict(event='start')]))
        message = receive(websocket, 'step')
        assert (message['source'], message['time']) == (1, 2.)
        assert message['events'] == [dict(event='start')]
        # The best ones, without the background.
        assert list(message['scores']) == [
            f'class {i}' for i in range(19, 11, -1)]
        data = np.frombuffer(base64.b64decode(message['picture']), np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)
        assert image.shape == (64, 128, 3)
        assert image[0, 0].tolist() == pytest.approx([0, 0, 200], abs=4)
        assert receive(websocket, 'state')['status'] == 'running'


def test_late_clients_get_the_past(page):
    for step in range(300):
        page.publish(0, detection(step))
    with client(page) as websocket:
        a, b = receive(websocket, 'hello')['sources']
    # The last minute of it.
    assert [s['time'] for s in a['past']] == [
        (t + 1) / 4 for t in range(60, 300)]
    assert b['past'] == []


def test_pictures_are_small(page):
    with client(page) as websocket:
        receive(websocket, 'hello')
        page.publish(0, detection(0, side=2000))
        message = receive(websocket, 'step')
    image = cv2.imdecode(np.frombuffer(base64.b64decode(
        message['picture']), np.uint8), cv2.IMREAD_COLOR)
    assert image.shape == (320, 640, 3)


def closed(websocket):
    with pytest.raises(ConnectionClosed) as error:
        while True:
            websocket.recv(timeout=10)
    return error.value.rcvd.code


@pytest.mark.parametrize('token', ['', 'wrong', 'sesam ', 'é'])
def test_wrong_token(token):
    with LivePage([FakeRun()], port=0, token='sesam') as page:
        assert page.url.endswith('/#token=sesam')
        with client(page, token) as websocket:
            assert closed(websocket) == server.WRONG_TOKEN
        with client(page, 'sesam') as websocket:
            receive(websocket, 'hello')


def test_no_token_in_time(monkeypatch):
    monkeypatch.setattr(server, 'TOKEN_SECONDS', 0.2)
    with LivePage([FakeRun()], port=0, token='sesam') as page:
        with connect(f'ws://127.0.0.1:{page.port}/live') as websocket:
            assert closed(websocket) == server.WRONG_TOKEN
        wait_until(lambda: page._connected == 0)


def test_too_many_clients():
    with LivePage([FakeRun()], port=0, max_clients=2) as page:
        with client(page) as one, client(page) as two:
            receive(one, 'hello'), receive(two, 'hello')
            with connect(f'ws://127.0.0.1:{page.port}/live') as three:
                assert closed(three) == server.TOO_MANY
        wait_until(lambda: page._connected == 0)
        with client(page) as again:
            receive(again, 'hello')


def test_clients_do_not_speak(page):
    with client(page) as websocket:
        receive(websocket, 'hello')
        websocket.send('hello')
        assert closed(websocket) == server.UNEXPECTED


def test_large_messages_are_refused(page):
    with client(page, 'x' * (server.MAX_INCOMING + 1)) as websocket:
        assert closed(websocket) == 1009


@pytest.mark.parametrize('headers', [
    dict(Origin='http://evil.example'),
    dict(Origin='null'),
    dict(Origin='http://127.0.0.1:1'),
], ids=['other-site', 'no-site', 'other-port'])
def test_pages_of_others_are_refused(page, headers):
    with pytest.raises(InvalidStatus, match='403'):
        client(page, additional_headers=headers)


def test_names_that_others_give_us_are_refused(page):
    """As of a site whose name is made to resolve to this machine."""
    request = (f'GET /live HTTP/1.1\r\nHost: evil.example:{page.port}\r\n'
               f'Origin: http://evil.example:{page.port}\r\n'
               'Connection: Upgrade\r\nUpgrade: websocket\r\n'
               'Sec-WebSocket-Version: 13\r\n'
               'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n')

    async def send():
        reader, writer = await asyncio.open_connection('127.0.0.1', page.port)
        writer.write(request.encode())
        answer = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        return answer

    assert b'403' in asyncio.run(send())


def test_a_slow_client_keeps_nothing(page):
    """One that does not read gets the latest, once it reads again."""
    with client(page) as websocket:
        receive(websocket, 'hello')
        queue, = page._clients

        def fill():
            # Within the loop: nothing is sent meanwhile.
            for i in range(100):
                page._send(dict(type='step', number=i))

        page._loop.call_soon_threadsafe(fill)
        numbers = [receive(websocket, 'step')['number'] for _ in range(16)]
        assert numbers == list(range(84, 100))
        assert queue.maxsize == 16


def test_stops_and_frees_its_port():
    with LivePage([FakeRun()], port=0) as page:
        port = page.port
        websocket = client(page)
        receive(websocket, 'hello')
    assert closed(websocket) == 1012
    assert not [t for t in threading.enumerate() if t is page._thread]
    with LivePage([FakeRun()], port=port):
        with pytest.raises(OSError, match=f'cannot listen on 127.0.0.1, port '
                           f'{port}'):
            LivePage([FakeRun()], port=port)


@pytest.mark.parametrize('host', ['0.0.0.0', '::', '192.168.1.5', 'box'])
def test_others_need_a_token(host):
    assert not is_loopback(host)
    with pytest.raises(ValueError, match='needs a token, or 127.0.0.1'):
        LivePage([FakeRun()], host)


@pytest.mark.parametrize('host', ['127.0.0.1', '127.8.0.1', 'localhost',
                                  '::1'])
def test_loopback(host):
    assert is_loopback(host)
