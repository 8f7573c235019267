# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Events as messages to other machines."""
import json
import time
import urllib.request
from base64 import b64encode
from importlib.util import find_spec
from urllib.parse import SplitResult, unquote, urlsplit

from ..utils.urls import without_secrets
from .run import Run
from .sinks import EventSink

# Seconds that a message may take, and from one attempt to the next.
TIMEOUT = 5.
DELAYS = 1., 2., 4.


def check_webhook(url: str) -> SplitResult:
    """Check the URL of a :class:`WebhookSink`; returns its parts.

    Raises:
        ValueError: If it is none.
    """
    return _split(url, 'a webhook', ('http', 'https'))


def check_mqtt(url: str) -> SplitResult:
    """Check the URL of a :class:`MqttSink`; returns its parts.

    Raises:
        ValueError: If it is none, or paho-mqtt is not installed.
    """
    parts = _split(url, 'MQTT', ('mqtt', 'mqtts'))
    topic = parts.path.strip('/')
    if not topic or set(topic) & set('+#'):
        raise ValueError('MQTT needs a topic without + and #, as in '
                         f'mqtt://HOST/TOPIC, got {without_secrets(url)}')
    if find_spec('paho') is None:
        raise ValueError('MQTT needs paho-mqtt: pip install '
                         '"mmvidattn[mqtt]"')
    return parts


def _split(url: str, what: str, schemes: tuple[str, str]) -> SplitResult:
    try:
        parts = urlsplit(url)
        good = parts.scheme in schemes and parts.hostname
        # Not a number, or too large.
        parts.port
    except ValueError:
        good = False
    if not good:
        raise ValueError(f'{what} must be {schemes[0]}://... or '
                         f'{schemes[1]}://..., got {without_secrets(url)}')
    return parts


class MessageSink(EventSink):
    """Sends each event as JSON, with the ``source`` added to it.

    What cannot be sent is tried again, three times within seven seconds; then
    it is lost, and counted. After the run was killed, events may come again:
    receivers know them by their ``id``.

    Args:
        url: Where to; for messages, without password.
        run: The run.
    """

    def __init__(self, url: str, run: Run) -> None:
        self.name = without_secrets(url)
        self._source = run.source.name

    def write(self, event: dict) -> None:
        """Send an event.

        Raises:
            OSError: If it could not be sent.
        """
        data = json.dumps(dict(event, source=self._source),
                          ensure_ascii=False).encode()
        for delay in DELAYS:
            try:
                return self._send(data)
            except OSError:
                time.sleep(delay)
        self._send(data)

    def _send(self, data: bytes) -> None:
        raise NotImplementedError


class WebhookSink(MessageSink):
    """Posts events to a web server.

    Args:
        url: http or https; a user and password in it are sent as such.
        run: The run.

    Raises:
        ValueError: If it is no such URL.
    """

    def __init__(self, url: str, run: Run) -> None:
        parts = check_webhook(url)
        super().__init__(url, run)
        host = parts.netloc.rpartition('@')[2]
        self._request = urllib.request.Request(
            parts._replace(netloc=host, fragment='').geturl(),
            headers={'Content-Type': 'application/json'})
        if parts.username:
            self._request.add_header('Authorization', _basic(
                unquote(parts.username), unquote(parts.password or '')))

    def _send(self, data: bytes) -> None:
        self._request.data = data
        # An error for a status from 400 on.
        with urllib.request.urlopen(self._request, timeout=TIMEOUT):
            pass


class MqttSink(MessageSink):
    """Publishes events to a broker of MQTT, each at least once (QoS 1).

    Args:
        url: ``mqtt://USER:PASSWORD@HOST:PORT/TOPIC``, or ``mqtts://`` for
            TLS.
        run: The run.

    Raises:
        ValueError: If it is no such URL, or paho-mqtt is not installed.
    """

    def __init__(self, url: str, run: Run) -> None:
        parts = check_mqtt(url)
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion
        super().__init__(url, run)
        self._topic = parts.path.strip('/')
        self._client = Client(CallbackAPIVersion.VERSION2)
        if parts.username:
            self._client.username_pw_set(
                unquote(parts.username), unquote(parts.password or ''))
        port = parts.port or 1883
        if parts.scheme == 'mqtts':
            self._client.tls_set()
            port = parts.port or 8883
        # It connects, and connects again, in a thread of its own.
        self._client.reconnect_delay_set(1, 30)
        self._client.connect_async(parts.hostname, port)
        self._client.loop_start()

    def _send(self, data: bytes) -> None:
        end = time.monotonic() + TIMEOUT
        while not self._client.is_connected():
            if time.monotonic() > end:
                raise OSError('there is no connection')
            time.sleep(0.05)
        message = self._client.publish(self._topic, data, qos=1)
        # One that is not confirmed in time is sent again by the client.
        message.wait_for_publish(TIMEOUT)

    def close(self) -> None:
        """Disconnect."""
        self._client.disconnect()
        self._client.loop_stop()


def _basic(user: str, password: str) -> str:
    return 'Basic ' + b64encode(f'{user}:{password}'.encode()).decode()
