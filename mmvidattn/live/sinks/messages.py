# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks that send events to other machines."""
import json
import time
import uuid
import warnings
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from ...utils.files import write_atomically
from ...utils.remote_files import without_secrets
from ..run import StreamRun
from ..run_files import read_events
from . import EventSink, TryAgain

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessageInfo

# Maximum seconds for sending a message.
TIMEOUT = 5.
# Seconds between attempts. They double from the first delay to the maximum. A
# receiver may request a longer delay with Retry-After.
FIRST_DELAY, MAX_DELAY, MAX_RETRY_AFTER = 1., 60., 300.
# Maximum number of events that wait for a receiver; then the oldest are
# dropped.
MAX_WAITING = 10_000
# HTTP statuses after which an event is not sent again: bad request, too large,
# unprocessable.
REFUSED = 400, 413, 422


def check_webhook(url: str) -> SplitResult:
    """Check the URL of a :class:`WebhookSink`, and return its parts.

    Raises:
        ValueError: If the URL is invalid, or httpx is not installed.
    """
    parts = _split(url, 'a webhook', ('http', 'https'))
    if find_spec('httpx') is None:
        raise ValueError('a webhook needs httpx: pip install '
                         '"mmvidattn[webhook]"')
    import httpx
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f'a webhook must be a URL, got '
                         f'{without_secrets(url)}: {error}') from error
    return parts


def check_mqtt(url: str) -> tuple[SplitResult, str]:
    """Check the URL of a :class:`MqttSink`. Return its parts and its topic.

    Raises:
        ValueError: If the URL is invalid, or paho-mqtt is not installed.
    """
    parts = _split(url, 'MQTT', ('mqtt', 'mqtts'))
    # The topic is the entire rest of the URL, because MQTT has neither queries
    # nor fragments.
    rest = url.partition('://')[2]
    topic = rest[len(parts.netloc):].strip('/')
    if not topic or set(topic) & set('+#?'):
        raise ValueError('MQTT needs a topic without the wildcards + and #, '
                         'and without ?, as in mqtt://HOST/TOPIC, got '
                         f'{topic!r}')
    if find_spec('paho') is None:
        raise ValueError('MQTT needs paho-mqtt: pip install '
                         '"mmvidattn[mqtt]"')
    return parts, topic


def _split(url: str, what: str, schemes: tuple[str, str]) -> SplitResult:
    try:
        parts = urlsplit(url)
        good = parts.scheme in schemes and parts.hostname
        parts.port
    except ValueError:
        # The port is not a number, or too large.
        good = False
    if not good:
        raise ValueError(f'{what} must be {schemes[0]}://... or '
                         f'{schemes[1]}://..., got {without_secrets(url)}')
    return parts


class MessageSink(EventSink):
    """Base class of sinks that send events as JSON, with an entry ``source``.

    Events are sent in order. If sending fails, it is repeated every 1 to 60
    seconds until the event is delivered; up to :data:`MAX_WAITING` events may
    wait.

    Args:
        url: URL of the receiver.
        run: The run.
        sent_file: File for the number of the last delivered event. A run that
            resumes from its state first sends the later events of its
            ``events_file``, so that each is delivered at least once, even if
            the process is killed. Defaults to no file, which loses events
            that are not delivered when the process ends.

    Raises:
        ValueError: If the URL is invalid, a package is not installed,
            ``sent_file`` is damaged, or the run has no ``events_file``.
    """
    queue_size = MAX_WAITING

    def __init__(self, url: str, run: StreamRun,
                 sent_file: str | Path | None = None) -> None:
        self.name = without_secrets(url)
        self._source = run.source.name
        self._delay = FIRST_DELAY
        # Part of the keys of messages, so that equal events of different runs
        # have different keys.
        self._run_id = uuid.uuid4()
        self._unsent: Sequence[dict] = []
        self._sent_file = None
        if sent_file is not None:
            self._sent_file = Path(sent_file)
            self.keeps = True
            self._resume(run)

    def _resume(self, run: StreamRun) -> None:
        """Find the undelivered events of an earlier process."""
        if run.events.path is None:
            raise ValueError(f'sent_file={str(self._sent_file)!r} needs a run '
                             'with an events_file')
        events, last = [], -1
        if run.resumed:
            events, _ = read_events(run.events.path, 0, run.events.size)
            # Without a file, the receiver is new and gets only new events.
            last = events[-1]['id'] if events else -1
            if self._sent_file.exists():
                self._run_id, last = self._read()
        self._unsent = [event for event in events if event['id'] > last]
        self._write_sent(last)

    def _read(self) -> tuple[uuid.UUID, int]:
        try:
            content = json.loads(self._sent_file.read_bytes())
            return uuid.UUID(content['run']), int(content['sent'])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f'{self._sent_file} must hold the number of the event that '
                f'was delivered last: {error!r}; delete it to send only new '
                'events') from error

    def _write_sent(self, last: int) -> None:
        write_atomically(self._sent_file, json.dumps(
            dict(run=str(self._run_id), sent=last)))

    def begin(self) -> Sequence[dict]:
        """Return the undelivered events of an earlier process."""
        return self._unsent

    def write(self, event: dict) -> None:
        """Send an event.

        Raises:
            TryAgain: If it could not be sent.
            ValueError: If the receiver refuses it.
        """
        data = json.dumps(dict(event, source=self._source),
                          ensure_ascii=False).encode()
        try:
            self._send(data, str(uuid.uuid5(self._run_id, data.decode())))
        except OSError as error:
            wait = max(self._delay, getattr(error, 'seconds', 0.))
            self._delay = min(2 * self._delay, MAX_DELAY)
            raise TryAgain(str(error), wait) from error
        except ValueError:
            self._mark_sent(event)
            raise
        self._mark_sent(event)

    def _mark_sent(self, event: dict) -> None:
        """Save that an event is delivered or refused."""
        self._delay = FIRST_DELAY
        if self._sent_file is None:
            return
        try:
            self._write_sent(event['id'])
        except OSError as error:
            # After a restart, this event is sent again. (Python shows a
            # warning only once.)
            warnings.warn(f'cannot write {self._sent_file}: {error}')

    def _send(self, data: bytes, key: str) -> None:
        """Send a message; its key is the same in each attempt.

        Raises:
            OSError: If the message must be sent again.
            ValueError: If the receiver refuses the message.
        """
        raise NotImplementedError


class WebhookSink(MessageSink):
    """Sink that posts events to a web server.

    Each request has an ``Idempotency-Key``, by which the server recognizes
    duplicates. Redirects are not followed, so that user, password and events
    reach only the host of ``url``. After a status in :data:`REFUSED` the event
    is skipped. After any other status except 2xx, such as 302, 404 and 503, it
    is sent again; ``Retry-After`` is respected up to five minutes. A user and
    password in the URL are sent for basic authentication.

    See :class:`MessageSink` for the arguments.
    """

    def __init__(self, url: str, run: StreamRun,
                 sent_file: str | Path | None = None) -> None:
        parts = check_webhook(url)
        import httpx
        super().__init__(url, run, sent_file)
        host = parts.netloc.rpartition('@')[2]
        self._url = parts._replace(netloc=host, fragment='').geturl()
        auth = (unquote(parts.username), unquote(parts.password or '')
                ) if parts.username else None
        self._client = httpx.Client(
            auth=auth, timeout=TIMEOUT, follow_redirects=False,
            headers={'Content-Type': 'application/json'})
        self._transport_error = httpx.TransportError

    def _send(self, data: bytes, key: str) -> None:
        try:
            # The body of the response is not read.
            with self._client.stream(
                    'POST', self._url, content=data,
                    headers={'Idempotency-Key': key}) as answer:
                status, headers = answer.status_code, answer.headers
        except self._transport_error as error:
            raise OSError(f'{type(error).__name__}: {error}') from error
        if 200 <= status < 300:
            return
        if status in REFUSED:
            raise ValueError(f'event refused with status {status}')
        reason = f'status {status}'
        if 300 <= status < 400:
            try:
                location = without_secrets(headers.get('Location', 'nowhere'))
            except ValueError:
                location = 'an invalid URL'
            reason += (f', a redirect to {location}, which is not followed: '
                       'pass the final URL')
        raise TryAgain(reason, _retry_after(headers.get('Retry-After', '')))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _retry_after(text: str) -> float:
    """Return the seconds of ``Retry-After``, limited; 0 if it is invalid."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.
    return min(max(seconds, 0.), MAX_RETRY_AFTER)


class MqttSink(MessageSink):
    """Sink that publishes events to an MQTT broker, at least once (QoS 1).

    The URL is ``mqtt://USER:PASSWORD@HOST:PORT/TOPIC``, or ``mqtts://`` for
    TLS. See :class:`MessageSink` for the arguments.
    """

    def __init__(self, url: str, run: StreamRun,
                 sent_file: str | Path | None = None) -> None:
        parts, self._topic = check_mqtt(url)
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion
        super().__init__(url, run, sent_file)
        # The key of the latest message, and its state.
        self._sending: tuple[str, MQTTMessageInfo] | None = None
        self._client = Client(CallbackAPIVersion.VERSION2)
        if parts.username:
            self._client.username_pw_set(
                unquote(parts.username), unquote(parts.password or ''))
        port = parts.port or 1883
        if parts.scheme == 'mqtts':
            self._client.tls_set()
            port = parts.port or 8883
        # The client connects and reconnects in a separate thread.
        self._client.reconnect_delay_set(1, 30)
        self._client.connect_async(parts.hostname, port)
        self._client.loop_start()

    def _send(self, data: bytes, key: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not self._client.is_connected():
            if time.monotonic() > end:
                raise OSError('not connected to the broker')
            time.sleep(0.05)
        if self._sending is None or self._sending[0] != key:
            self._sending = key, self._client.publish(
                self._topic, data, qos=1)
        message = self._sending[1]
        try:
            message.wait_for_publish(TIMEOUT)
            is_published = message.is_published()
        except RuntimeError as error:
            # The connection was lost in the meantime.
            self._sending = None
            raise OSError(str(error)) from error
        if not is_published:
            # The client repeats the message after it has reconnected.
            raise OSError('the broker has not confirmed the message')

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()
