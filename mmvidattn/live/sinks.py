# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks, which consume a run's detections or events in own threads."""
import json
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from ..utils.printable import describe_error
from ..utils.remote_files import without_secrets
from .step_reader import BoundedQueue, Detection

# Seconds after the end of a run in which a sink may process waiting items.
CLOSE_SECONDS = 5.
# Maximum number of different errors that are logged.
MAX_ERRORS = 10
# Maximum seconds for sending an event.
TIMEOUT = 5.
# Seconds between attempts. They double from the first delay to the maximum.
FIRST_DELAY, MAX_DELAY = 1., 60.
# Maximum number of events that wait for a receiver; then the oldest are
# dropped.
MAX_WAITING = 10_000
# HTTP statuses after which an event is not sent again: bad request, too large,
# unprocessable.
REFUSED = 400, 413, 422


class TryAgain(OSError):
    """Error of :meth:`Sink.write` that requests the same item again.

    It is passed again after ``seconds``. The log shows ``reason``.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class Sink:
    """Consumer of a run's detections; see :meth:`StreamRun.add_sink`.

    All methods except :meth:`select` are called from one thread at a time,
    which is not the run's thread. They may block and raise.

    Attributes:
        name: Name for users.
        lossless: True if a recording waits for the sink.
        queue_size: Maximum number of waiting items.
    """
    name = 'sink'
    lossless = False
    queue_size = 256

    def select(self, detection: Detection) -> Sequence[Any]:
        """Return the items of a detection for :meth:`write`.

        The run's thread calls it, so it must be fast.
        """
        return [detection]

    def write(self, item: Any) -> None:
        """Process an item.

        Raises:
            TryAgain: To request the item again later, before newer items.
        """
        raise NotImplementedError

    def finish(self, events: Sequence[dict]) -> Sequence[Any]:
        """Return the last items for :meth:`write`.

        ``events`` are the ends of actions in progress at the source's end.
        """
        return []

    def close(self) -> None:
        """Finish after the last item."""


class EventSink(Sink):
    """Sink of single events, including those at the end of the source."""

    def select(self, detection: Detection) -> Sequence[dict]:
        return detection.events

    def finish(self, events: Sequence[dict]) -> Sequence[dict]:
        return events


class SinkThread:
    """Thread that passes items from a bounded queue to a sink.

    Args:
        drop: See :class:`BoundedQueue`.
        log: Function that gets a line about each new error.

    Attributes:
        failed: Number of items that the sink failed to process.
    """

    def __init__(self, sink: Sink, drop: bool,
                 log: Callable[[str], None]) -> None:
        self.sink = sink
        self.failed = 0
        self._log = log
        self._queue = BoundedQueue(sink.queue_size, drop)
        self._errors: set[str] = set()
        self._thread = threading.Thread(
            target=self._work, name=f'feeds {sink.name}', daemon=True)

    @property
    def dropped(self) -> int:
        """Number of dropped items."""
        return self._queue.dropped

    def put(self, items: Iterable[Any]) -> None:
        """Queue items of the sink."""
        for item in items:
            if not self._thread.ident:
                self._thread.start()
            self._queue.put(item)

    def close(self) -> None:
        """Wait until the sink has processed the waiting items, and close it.

        If items may be dropped, wait at most :data:`CLOSE_SECONDS`.
        """
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS if self._queue.drop else None)
        hangs = self._thread.is_alive()
        # A sink that hangs has one more item.
        remaining = self._queue.clear() + hangs
        if hangs:
            self._log(f'{self.sink.name} hangs and was abandoned')
        else:
            self._try(self.sink.close)
        self._queue.dropped += remaining

    def _work(self) -> None:
        for item in self._queue:
            is_last_attempt = self._queue.closed
            wait = self._try(self.sink.write, item)
            if wait is not None:
                self._queue.put_back(item, wait)
                if is_last_attempt:
                    return

    def _try(self, function: Callable[..., None], *args: Any) -> float | None:
        """Call a function. Return seconds to wait if it must be repeated."""
        try:
            function(*args)
        except TryAgain as error:
            self._log_once(f'{self.sink.name}: {error}')
            return error.seconds
        except Exception as error:
            # The run continues without this item.
            self.failed += 1
            self._log_once(f'{self.sink.name}: '
                           f'{describe_error(error) or repr(error)}')
        return None

    def _log_once(self, line: str) -> None:
        if line not in self._errors and len(self._errors) < MAX_ERRORS:
            self._errors.add(line)
            self._log(line)


def check_webhook(url: str) -> SplitResult:
    """Check the URL of a :class:`WebhookSink`, and return its parts."""
    try:
        import httpx
    except ImportError as error:
        raise ValueError('a webhook needs httpx: pip install '
                         '"mmvidattn[webhook]"') from error
    try:
        parts = urlsplit(url)
        # Raises an error if the port is not a number, or too large.
        parts.port
        httpx.URL(url)
        is_valid = parts.scheme in ('http', 'https') and parts.hostname
    except (ValueError, httpx.InvalidURL):
        is_valid = False
    if not is_valid:
        raise ValueError('a webhook must be a URL http://... or https://..., '
                         f'got {without_secrets(url)}')
    return parts


class WebhookSink(EventSink):
    """Sink that posts events as JSON, with ``source``, to a web server.

    Events are sent in order. If sending fails, it is repeated every 1 to 60
    seconds until the event is delivered; up to :data:`MAX_WAITING` events may
    wait, and events that wait when the run ends get one more attempt. After a
    status in :data:`REFUSED` the event is skipped. After any other status
    except 2xx, such as 302, 404 and 503, it is sent again.

    Each request has an ``Idempotency-Key``, by which the server recognizes
    duplicates. Redirects are not followed, so that user, password and events
    reach only the host of ``url``. A user and password in the URL are sent
    for basic authentication.

    Args:
        url: URL of the receiver.
        source: Name of the source.

    Raises:
        ValueError: If the URL is invalid, or httpx is not installed.
    """
    queue_size = MAX_WAITING

    def __init__(self, url: str, source: str) -> None:
        parts = check_webhook(url)
        import httpx
        self.name = without_secrets(url)
        self._source = source
        self._delay = FIRST_DELAY
        # Part of the keys of requests, so that equal events of different runs
        # have different keys.
        self._run_id = uuid.uuid4()
        host = parts.netloc.rpartition('@')[2]
        self._url = parts._replace(netloc=host, fragment='').geturl()
        auth = (unquote(parts.username), unquote(parts.password or '')
                ) if parts.username else None
        self._client = httpx.Client(
            auth=auth, timeout=TIMEOUT, follow_redirects=False,
            headers={'Content-Type': 'application/json'})
        self._transport_error = httpx.TransportError

    def write(self, event: dict) -> None:
        """Send an event.

        Raises:
            TryAgain: If it could not be sent.
            ValueError: If the receiver refuses it.
        """
        data = json.dumps(dict(event, source=self._source),
                          ensure_ascii=False).encode()
        # The key is the same in each attempt.
        key = str(uuid.uuid5(self._run_id, data.decode()))
        try:
            # The body of the response is not read.
            with self._client.stream(
                    'POST', self._url, content=data,
                    headers={'Idempotency-Key': key}) as answer:
                status = answer.status_code
        except self._transport_error as error:
            raise self._try_again(f'{type(error).__name__}: {error}'
                                  ) from error
        if not 200 <= status < 300 and status not in REFUSED:
            raise self._try_again(f'status {status}' + (
                ', a redirect, which is not followed: pass the final URL'
                if 300 <= status < 400 else ''))
        self._delay = FIRST_DELAY
        if status in REFUSED:
            raise ValueError(f'event refused with status {status}')

    def _try_again(self, reason: str) -> TryAgain:
        wait, self._delay = self._delay, min(2 * self._delay, MAX_DELAY)
        return TryAgain(reason, wait)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

