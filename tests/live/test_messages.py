# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import base64
import json
import sys
import time
from email.utils import formatdate

import pytest
from live_fixtures import Hook, wait_until

from mmvidattn.live import sinks
from mmvidattn.live.sinks import SinkThread, TryAgain, WebhookSink

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
    monkeypatch.setattr(sinks, 'FIRST_DELAY', 0.01)
    monkeypatch.setattr(sinks, 'MAX_DELAY', 0.05)


def test_webhook_posts_an_event(hook):
    sink = WebhookSink(f'http://me:p%40ss@{hook.host}/in?key=1', 'door')
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
    (302, 'x'), (404, ''), (503, ''), b'', b'no HTTP\r\n\r\n'], ids=str)
def test_webhook_is_repeated_until_it_is_delivered(hook, other, quick, answer):
    """After anything except 2xx; redirects are not followed."""
    if not isinstance(answer, bytes):
        answer = answer[0], {
            'Location': f'http://me:secret@{other.host}/'} if answer[1] else {}
    hook.answers += [answer] * 3
    lines = []
    sink = WebhookSink(f'http://me:secret@{hook.host}/in', 'door')
    thread = SinkThread(sink, True, lines.append)
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
        assert ('redirect' in line) == bool(answer[1])


def test_refused_event_is_skipped_and_counted(hook, quick, status=422):
    hook.answers.append((status, {}))
    lines = []
    thread = SinkThread(
        WebhookSink(f'http://{hook.host}/', 'door'), True, lines.append)
    thread._put(EVENT)
    thread._put({**EVENT, 'id': 8})
    wait_until(lambda: len(hook.found) == 2)
    thread.close()
    assert [event['id'] for event in hook.events] == [7, 8]
    assert thread.failed == 1 and str(status) in lines[0]


def test_delays_double_and_respect_retry_after(hook):
    sink, result = WebhookSink(f'http://{hook.host}/', 'door'), []
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
    monkeypatch.setattr(sinks, 'FIRST_DELAY', 60)
    thread = SinkThread(
        WebhookSink(f'http://{hook.host}/', 'door'), True, lambda line: None)
    thread._put(EVENT)
    wait_until(lambda: hook.found)
    for number in range(8, 28):
        thread._put({**EVENT, 'id': number})
    hook.answers.clear()
    thread.close()
    assert [event['id'] for event in hook.events[1:]] == [
        23, 24, 25, 26, 27]
    assert thread.dropped == 16


@pytest.mark.parametrize('url', [
    'ftp://host/', 'host', 'http://', 'http://u:secret@:80/',
    'http://host:port/', 'http://host/\x01'])
def test_rejects_webhooks(url):
    with pytest.raises(ValueError, match='a webhook must be ') as error:
        WebhookSink(url, 'door')
    assert 'secret' not in str(error.value)


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'httpx', None)
    with pytest.raises(ValueError, match=r'"mmvidattn\[webhook\]"'):
        WebhookSink('http://host/', 'door')
