# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import base64
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from live_fixtures import wait_until

from mmvidattn.live import message_sinks
from mmvidattn.live.message_sinks import MqttSink, WebhookSink

RUN = SimpleNamespace(source=SimpleNamespace(name='door'))
EVENT = {'id': 7, 'event': 'start', 'class': 'tänzen', 'start': 1.5}


@pytest.fixture
def hook():
    """A web server that notes what is posted, and how it answers."""
    site = SimpleNamespace(found=[], answers=[])

    class Handler(BaseHTTPRequestHandler):

        def do_POST(self):
            data = self.rfile.read(int(self.headers['Content-Length']))
            site.found.append((self.path, dict(self.headers), data))
            self.send_response(site.answers.pop(0) if site.answers else 204)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05, ),
                     daemon=True).start()
    site.host = f'127.0.0.1:{server.server_port}'
    yield site
    server.shutdown()
    server.server_close()


def test_webhook(hook):
    sink = WebhookSink(f'http://me:p%40ss@{hook.host}/in?key=1', RUN)
    assert sink.name == f'http://{hook.host}/in'
    sink.write(EVENT)
    (path, headers, data), = hook.found
    assert path == '/in?key=1'
    assert json.loads(data) == {**EVENT, 'source': 'door'}
    assert headers['Content-Type'] == 'application/json'
    assert headers['Authorization'] == 'Basic ' + base64.b64encode(
        b'me:p@ss').decode()


def test_webhook_tries_again(hook, monkeypatch):
    monkeypatch.setattr(message_sinks, 'DELAYS', (0.01, ) * 3)
    sink = WebhookSink(f'http://{hook.host}/', RUN)
    hook.answers += [503, 500]
    sink.write(EVENT)
    assert len(hook.found) == 3
    hook.answers += [404] * 4
    with pytest.raises(OSError, match='404'):
        sink.write(EVENT)
    assert len(hook.found) == 7


class Broker:
    """The few packets of MQTT 3.1.1 that a publisher needs."""

    def __init__(self):
        self.found, self.names = [], []
        self._server = socket.create_server(('127.0.0.1', 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, connection.makefile('rb') as file:
                while head := file.read(1):
                    self._answer(head[0] >> 4, self._body(file), connection)

    @staticmethod
    def _body(file):
        size, shift = 0, 0
        while True:
            byte, = file.read(1)
            size += (byte & 127) << shift
            if byte < 128:
                return file.read(size)
            shift += 7

    def _answer(self, kind, body, connection):
        if kind == 1:
            self.names.append(body)
            connection.sendall(b'\x20\x02\x00\x00')
        elif kind == 3:
            end = 2 + int.from_bytes(body[:2], 'big')
            self.found.append((body[2:end].decode(), body[end + 2:]))
            connection.sendall(b'\x40\x02' + body[end:end + 2])

    def close(self):
        self._server.close()


def test_mqtt():
    pytest.importorskip('paho.mqtt')
    broker = Broker()
    sink = MqttSink(f'mqtt://me:secret@127.0.0.1:{broker.port}/house/events',
                    RUN)
    assert sink.name == f'mqtt://127.0.0.1:{broker.port}/house/events'
    sink.write(EVENT)
    sink.write({**EVENT, 'id': 8})
    assert broker.names[0].endswith(b'\x00\x02me\x00\x06secret')
    assert [topic for topic, _ in broker.found] == ['house/events'] * 2
    assert [json.loads(data) for _, data in broker.found] == [
        {**EVENT, 'source': 'door'}, {**EVENT, 'id': 8, 'source': 'door'}]
    sink.close()
    broker.close()
    wait_until(lambda: not [
        thread for thread in threading.enumerate()
        if thread.name.startswith('paho')])


def test_mqtt_without_a_broker(monkeypatch):
    pytest.importorskip('paho.mqtt')
    monkeypatch.setattr(message_sinks, 'TIMEOUT', 0.1)
    monkeypatch.setattr(message_sinks, 'DELAYS', (0.01, ))
    sink = MqttSink('mqtt://127.0.0.1:9/events', RUN)
    with pytest.raises(OSError, match='there is no connection'):
        sink.write(EVENT)
    sink.close()


@pytest.mark.parametrize('url', [
    'ftp://host/', 'host', 'http://', 'http://u:secret@:80/',
    'http://host:port/'])
def test_bad_webhooks(url):
    with pytest.raises(ValueError, match='a webhook must be http://') as error:
        WebhookSink(url, RUN)
    assert 'secret' not in str(error.value)


@pytest.mark.parametrize('url, error', [
    ('http://host/topic', 'MQTT must be mqtt://'),
    ('mqtt://host', 'MQTT needs a topic'),
    ('mqtt://host/a/+', 'MQTT needs a topic without'),
])
def test_bad_brokers(url, error):
    with pytest.raises(ValueError, match=error):
        MqttSink(url, RUN)


def test_without_paho(monkeypatch):
    monkeypatch.setattr(message_sinks, 'find_spec', lambda name: None)
    with pytest.raises(ValueError, match=r'"mmvidattn\[mqtt\]"'):
        MqttSink('mqtt://host/topic', RUN)
