# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import base64
import json
import socket
import threading
import time
from email.utils import formatdate
from functools import partial
from types import SimpleNamespace

import pytest
from live_fixtures import Hook, wait_until

from mmvidattn.live.run_files import EventLog
from mmvidattn.live.sinks import SinkThread, TryAgain
from mmvidattn.live.sinks import messages as message_sinks
from mmvidattn.live.sinks.messages import MqttSink, WebhookSink

RUN = SimpleNamespace(source=SimpleNamespace(name='door'))
EVENT = {'id': 7, 'event': 'start', 'class': 'tänzen', 'start': 1.5}


@pytest.fixture
def hook():
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture
def other():
    other = Hook()
    yield other
    other.close()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(message_sinks, 'FIRST_DELAY', 0.01)
    monkeypatch.setattr(message_sinks, 'MAX_DELAY', 0.05)


def test_webhook_posts_an_event(hook):
    sink = WebhookSink(f'http://me:p%40ss@{hook.host}/in?key=1', RUN)
    assert sink.name == f'http://{hook.host}/in'
    sink.write(EVENT)
    (path, headers, data), = hook.found
    assert path == '/in?key=1'
    assert json.loads(data) == {**EVENT, 'source': 'door'}
    assert headers['Content-Type'] == 'application/json'
    assert headers['Authorization'] == 'Basic ' + base64.b64encode(
        b'me:p@ss').decode()
    sink.close()


@pytest.mark.parametrize('answer', [
    (301, 'x'), (302, 'x'), (307, 'x'), (300, ''), (404, ''), (429, ''),
    (503, ''), b'', b'no HTTP\r\n\r\n', b'HTTP/1.1 200 \xff\r\nx: y'],
    ids=str)
def test_webhook_is_repeated_until_it_is_delivered(hook, other, quick, answer):
    """After anything except 2xx; redirects are not followed."""
    if not isinstance(answer, bytes):
        answer = answer[0], {
            'Location': f'http://me:secret@{other.host}/'} if answer[1] else {}
    hook.answers += [answer] * 3
    lines = []
    thread = SinkThread(WebhookSink(f'http://me:secret@{hook.host}/in', RUN),
                        True, lines.append)
    thread._put(EVENT)
    thread._put({**EVENT, 'id': 8})
    wait_until(lambda: len(hook.found) == 5)
    thread.close()
    assert [event['id'] for event in hook.events] == [7, 7, 7, 7, 8]
    assert len(set(hook.keys)) == len({*hook.keys[:4]}) + 1 == 2
    assert all('Authorization' in headers for _, headers, _ in hook.found)
    assert other.found == []
    assert (thread.dropped, thread.failed) == (0, 0)
    # The error is logged once.
    line, = lines
    assert line.startswith(f'http://{hook.host}/in: ')
    assert 'secret' not in line
    if not isinstance(answer, bytes):
        assert f'status {answer[0]}' in line
        assert (f'http://{other.host}/' in line) == bool(answer[1])


@pytest.mark.parametrize('status', [400, 413, 422])
def test_refused_event_is_skipped_and_counted(hook, quick, status):
    hook.answers.append((status, {}))
    lines = []
    thread = SinkThread(
        WebhookSink(f'http://{hook.host}/', RUN), True, lines.append)
    thread._put(EVENT)
    thread._put({**EVENT, 'id': 8})
    wait_until(lambda: len(hook.found) == 2)
    thread.close()
    assert [event['id'] for event in hook.events] == [7, 8]
    assert thread.failed == 1 and str(status) in lines[0]


def test_delays_double_and_respect_retry_after(hook):
    sink, result = WebhookSink(f'http://{hook.host}/', RUN), []
    date = formatdate(time.time() + 100, usegmt=True)
    texts = ['', '0', '-3', 'nan', 'x', '10', '9999', 'inf', date]
    for text in texts + [''] * 3:
        hook.answers.append((429, {'Retry-After': text}))
        with pytest.raises(TryAgain, match='429') as error:
            sink.write(EVENT)
        result.append(error.value.seconds)
    assert result[:8] == [1, 2, 4, 8, 16, 32, 300, 300]
    assert 95 < result[8] <= 100
    assert result[9:] == [60] * 3
    sink.write(EVENT)
    hook.answers.append((500, {}))
    with pytest.raises(TryAgain, match='500') as error:
        sink.write(EVENT)
    assert error.value.seconds == 1
    sink.close()


def test_number_of_waiting_events_is_bounded(hook, quick, monkeypatch):
    monkeypatch.setattr(WebhookSink, 'queue_size', 5)
    hook.answers += [(500, {})] * 3
    monkeypatch.setattr(message_sinks, 'FIRST_DELAY', 60)
    thread = SinkThread(
        WebhookSink(f'http://{hook.host}/', RUN), True, lambda line: None)
    thread._put(EVENT)
    wait_until(lambda: hook.found)
    for number in range(8, 28):
        thread._put({**EVENT, 'id': number})
    hook.answers.clear()
    thread.close()
    assert [event['id'] for event in hook.events[1:]] == [
        23, 24, 25, 26, 27]
    assert thread.dropped == 16


def logged(folder, num, resumed='resumes'):
    """Make a run whose events file has ``num`` events."""
    run = SimpleNamespace(
        source=SimpleNamespace(name='door'), resumed=resumed,
        events=EventLog(folder / 'events.jsonl'))
    run.events.write([{**EVENT, 'id': i} for i in range(num)])
    run.events.close()
    return run


def deliver(hook, run, sent, events=()):
    """Deliver undelivered and new events. Return the log."""
    lines = []
    thread = SinkThread(WebhookSink(f'http://{hook.host}/', run, sent), True,
                        lines.append)
    for event in events:
        thread._put(event)
    thread.close()
    return lines


def test_undelivered_events_are_sent_by_the_next_run(hook, quick, tmp_path):
    sent = tmp_path / 'sent'
    first = logged(tmp_path, 0, resumed='')
    events = [{**EVENT, 'id': i} for i in range(4)]
    hook.answers += [(204, {})] * 2 + [(500, {})] * 100
    lines = deliver(hook, first, sent, events)
    assert [event['id'] for event in hook.events[:3]] == [0, 1, 2]
    assert any('2 not delivered' in line for line in lines)
    assert not any('dropped' in line for line in lines)
    hook.answers.clear()
    key = hook.keys[2]
    hook.found.clear()
    # A run that resumes first sends the rest of the file.
    second = logged(tmp_path, 4)
    assert deliver(hook, second, sent, [{**EVENT, 'id': 4}]) == []
    assert [event['id'] for event in hook.events] == [2, 3, 4]
    assert hook.keys[0] == key
    hook.found.clear()
    assert deliver(hook, logged(tmp_path, 5), sent) == []
    assert hook.found == []
    # A run that starts anew has different keys.
    deliver(hook, logged(tmp_path, 0, resumed=''), sent, events[2:3])
    assert hook.events == [{**EVENT, 'id': 2, 'source': 'door'}]
    assert hook.keys[0] != key


def test_refused_event_is_not_sent_by_the_next_run(hook, tmp_path):
    hook.answers.append((422, {}))
    deliver(hook, logged(tmp_path, 0, resumed=''), tmp_path / 'sent',
            [{**EVENT, 'id': 0}])
    assert len(hook.found) == 1
    deliver(hook, logged(tmp_path, 1), tmp_path / 'sent')
    assert len(hook.found) == 1


def test_new_receiver_gets_only_new_events(hook, tmp_path):
    run = logged(tmp_path, 4)
    deliver(hook, run, tmp_path / 'sent', [{**EVENT, 'id': 4}])
    assert [event['id'] for event in hook.events] == [4]


@pytest.mark.parametrize('content', [
    b'', b'[]', b'{"run": 3, "sent": 1}', b'{"run": "x", "sent": 1}',
    b'{"sent": 1}'])
def test_rejects_damaged_sent_file(tmp_path, content):
    (tmp_path / 'sent').write_bytes(content)
    with pytest.raises(ValueError, match='sent must hold .*delete it'):
        WebhookSink('http://host/', logged(tmp_path, 1), tmp_path / 'sent')


def test_sent_file_needs_an_events_file(tmp_path):
    run = SimpleNamespace(source=RUN.source, resumed='', events=EventLog())
    with pytest.raises(ValueError, match='sent_file=.*events_file'):
        WebhookSink('http://host/', run, tmp_path / 'sent')


def test_full_disk_does_not_stop_messages(hook, tmp_path, monkeypatch):
    run = logged(tmp_path, 0, resumed='')
    sink = WebhookSink(f'http://{hook.host}/', run, tmp_path / 'sent')

    def full(*args):
        raise OSError('no space left')

    monkeypatch.setattr(message_sinks, 'write_atomically', full)
    with pytest.warns(UserWarning, match='cannot write .*no space left'):
        sink.write(EVENT)
    assert len(hook.found) == 1
    sink.close()


class Broker:
    """MQTT 3.1.1 broker for publishers."""

    def __init__(self):
        self.found, self.names = [], []
        # A list here collects confirmations instead of sending them.
        self.held = None
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
            confirm = partial(
                connection.sendall, b'\x40\x02' + body[end:end + 2])
            confirm() if self.held is None else self.held.append(confirm)

    def close(self):
        self._server.close()


def test_mqtt_publishes_events():
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


def test_unconfirmed_message_is_sent_once(monkeypatch):
    pytest.importorskip('paho.mqtt')
    broker = Broker()
    sink = MqttSink(f'mqtt://127.0.0.1:{broker.port}/events', RUN)
    sink.write(EVENT)
    monkeypatch.setattr(message_sinks, 'TIMEOUT', 0.05)
    broker.held = []
    second = {**EVENT, 'id': 8}
    for _ in range(2):
        with pytest.raises(TryAgain, match='has not confirmed'):
            sink.write(second)
    wait_until(lambda: broker.held)
    monkeypatch.setattr(message_sinks, 'TIMEOUT', 5.)
    broker.held.pop()()
    sink.write(second)
    assert [json.loads(data)['id'] for _, data in broker.found] == [7, 8]
    sink.close()
    broker.close()


def test_missing_broker_is_an_error(monkeypatch):
    pytest.importorskip('paho.mqtt')
    monkeypatch.setattr(message_sinks, 'TIMEOUT', 0.1)
    sink = MqttSink('mqtt://127.0.0.1:9/events', RUN)
    with pytest.raises(OSError, match='not connected'):
        sink.write(EVENT)
    sink.close()


@pytest.mark.parametrize('url', [
    'ftp://host/', 'host', 'http://', 'http://u:secret@:80/',
    'http://host:port/', 'http://host/\x01'])
def test_rejects_webhooks(url):
    with pytest.raises(ValueError, match='a webhook must be ') as error:
        WebhookSink(url, RUN)
    assert 'secret' not in str(error.value)


@pytest.mark.parametrize('url, error', [
    ('http://host/topic', 'MQTT must be mqtt://'),
    ('mqtt://host', 'MQTT needs a topic'),
    ('mqtt://host/a/+', "topic .* got 'a/\\+'"),
    ('mqtt://host/actions/#', "topic .* got 'actions/#'"),
    ('mqtt://me:secret@host/actions#', "topic .* got 'actions#'"),
    ('mqtt://me:secret@host/#', "topic .* got '#'"),
    ('mqtt://me:secret@host/actions?qos=2', r"topic .* got 'actions\?qos=2'"),
    ('mqtt://host?actions', 'MQTT needs a topic'),
])
def test_rejects_brokers(url, error):
    with pytest.raises(ValueError, match=error) as raised:
        MqttSink(url, RUN)
    assert 'secret' not in str(raised.value)


def test_missing_libraries_are_named(monkeypatch):
    monkeypatch.setattr(message_sinks, 'find_spec', lambda name: None)
    with pytest.raises(ValueError, match=r'"mmvidattn\[webhook\]"'):
        WebhookSink('http://host/', RUN)
    with pytest.raises(ValueError, match=r'"mmvidattn\[mqtt\]"'):
        MqttSink('mqtt://host/topic', RUN)
