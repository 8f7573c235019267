# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Server of a web page that shows live detection."""
import asyncio
import base64
import hmac
import ipaddress
import json
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import cv2
import numpy as np

from ..utils.printable import describe_error
from .event_frames import EventFrames
from .run import StreamRun
from .sinks import Sink
from .step_reader import Detection

try:
    import uvicorn
    from fastapi import FastAPI, WebSocket
    from fastapi.responses import FileResponse, PlainTextResponse
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise ImportError('the page needs FastAPI, uvicorn and websockets: pip '
                      'install "mmvidattn[serve]"') from error

PAGE = Path(__file__).with_name('page.html')
SCRIPT = PAGE.with_suffix('.js')
# Content security policy: the page loads data only from its server.
POLICY = ("default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; "
          "img-src data:; connect-src 'self'; base-uri "
          "'none'; form-action 'none'; frame-ancestors 'none'")
# Seconds of past scores that a new client gets.
HISTORY = 60
# Number of classes of a step that are sent, the most probable ones.
MAX_CLASSES = 8
# Longer side in pixels of pictures for connected clients, and of stored
# pictures, for events and new clients.
PICTURE_SIDE, EVENT_SIDE = 640, 400
PICTURE_QUALITY = 70
# Maximum number of messages that wait for a slow client; then the oldest are
# dropped.
MAX_WAITING = 16
# Maximum bytes of a message from a client.
MAX_INCOMING = 1024
# Seconds that a client has to send the token.
TOKEN_SECONDS = 5
# Seconds that a connection has to send a request.
REQUEST_SECONDS = 10
# Maximum number of clients, and of all connections, most of which have not
# sent the token.
MAX_CLIENTS, MAX_CONNECTIONS = 8, 64
WRONG_TOKEN, TOO_MANY, UNEXPECTED = 4401, 1013, 1008


class _Connection(H11Protocol):
    """Connection that is closed unless it soon sends a request.

    Otherwise a few silent connections would block the page.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.loop.call_later(REQUEST_SECONDS, self._close_silent)

    def _close_silent(self) -> None:
        if self.scope is None:
            self.transport.close()


class LivePage:
    """Server of a web page that shows the detections of runs.

    It is a context manager and serves from its own thread. A client (the page
    in a browser) first sends the token. The page reads the token from
    ``#token=...`` in its address; browsers do not send this part to servers.
    A client can then request the pictures of an event, and change the
    threshold of a class for all clients and all outputs of the run. Requests
    of other sites are refused. ``/healthz`` and ``/readyz`` need no token, and
    return only ``ok``, or status 503 with the number of runs that are not ok.

    Args:
        runs: One run for each source.
        host: Address to listen on. Addresses other than loopback need a token.
        port: Port. 0 chooses a free one.
        token: Token that clients must send. None allows every client.
        read_only: Do not allow clients to change thresholds.

    Raises:
        ValueError: If other machines could open the page without a token.
        OSError: If the port is in use.
    """

    def __init__(self, runs: Sequence[StreamRun],
                 host: str = '127.0.0.1', port: int = 8000,
                 token: str | None = None,
                 read_only: bool = False) -> None:
        if not is_loopback(host) and not token:
            raise ValueError(f'host {host} can be reached from other '
                             'machines: pass a token, or 127.0.0.1 as host')
        self.host = host
        self.token = token or ''
        # Fails for a token that is not text.
        self._token = self.token.encode()
        self.read_only = read_only
        self._runs = runs
        self._history: list[deque[dict]] = [
            deque(maxlen=int(HISTORY * run.rate)) for run in runs
        ]
        # Latest pictures, as JPEG.
        self._pictures = [b''] * len(runs)
        self._event_frames = [EventFrames() for _ in runs]
        # Monotonic time of the latest step.
        self._latest: list[float | None] = [None] * len(runs)
        self._clients: set[asyncio.Queue[str]] = set()
        self._connected = 0
        app = FastAPI(lifespan=self._lifespan, openapi_url=None)
        app.add_api_route('/', partial(_file, PAGE))
        app.add_api_route('/page.js', partial(_file, SCRIPT))
        app.add_api_websocket_route('/live', self._client)
        app.add_api_route('/healthz', lambda: _health(
            [not run.problem for run in runs]))
        app.add_api_route('/readyz', lambda: _health(
            [run.is_ready for run in runs]))
        config = uvicorn.Config(
            app, host=host, port=port, ws_max_size=MAX_INCOMING,
            ws_per_message_deflate=False, proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS, http=_Connection,
            # Clients could fill the log with warnings.
            log_level='error',
            # uvicorn's log config closes every log file of this process.
            log_config=None,
            server_header=False, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except (OSError, OverflowError) as error:
            raise OSError(f'cannot listen on {host}, port {port}: '
                          f'{describe_error(error)}') from error
        self.port = self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        """Address of the page, with the token."""
        host = f'[{self.host}]' if ':' in self.host else self.host
        token = f'#token={quote(self.token, safe="")}' if self.token else ''
        return f'http://{host}:{self.port}/{token}'

    def __enter__(self) -> 'LivePage':
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket], ), daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    def sink(self, source: int) -> Sink:
        """Create the sink of the run with this number in ``runs``."""
        sink = Sink()
        # A small queue, because a detection contains its frames.
        sink.name, sink.queue_size = 'the page', 8
        sink.write = partial(self.publish, source)
        return sink

    def publish(self, source: int, detection: Detection) -> None:
        """Send a detection of a run; may be called from any thread."""
        top = self._runs[source].top_actions(detection.scores, MAX_CLASSES)
        message = dict(
            type='step', source=source, time=detection.time,
            scores={name: round(score, 4) for name, score in top.items()})
        image = detection.images[-1]
        small = encode_image(image, EVENT_SIDE)
        picture = encode_text(encode_image(image, PICTURE_SIDE)) if (
            self._connected) else ''
        try:
            self._loop.call_soon_threadsafe(
                self._send_step, message, picture, small, detection.events)
        except RuntimeError:
            # The page may just have been closed.
            if not self._loop.is_closed():
                raise

    def _send_step(self, message: dict, picture: str, small: bytes,
                   events: Sequence[dict]) -> None:
        source = message['source']
        self._latest[source] = time.monotonic()
        self._event_frames[source].add(message['time'], small, events)
        self._history[source].append(message)
        self._pictures[source] = small
        self._send(dict(message, picture=picture, events=events))

    def _send(self, message: dict) -> None:
        text = json.dumps(message)
        for queue in self._clients:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(text)

    def _state(self, source: int) -> dict:
        """Return the message about the state of a run.

        It has the latest events, because the last ones come after all steps.
        """
        run = self._runs[source]
        report = run.report()
        path, name = report['name'], _shown_name(report['name'])
        latest = self._latest[source]
        return dict(report, type='state', source=source, name=name,
                    status=report['status'].replace(path, name),
                    lost={_shown_name(sink): number
                          for sink, number in report['lost'].items()},
                    age=latest and round(time.monotonic() - latest, 1),
                    thresholds=run.event_detector.thresholds(),
                    events=list(run.events.recent)[-MAX_WAITING:])

    def _hello(self) -> dict:
        """Return the first message, with past scores and events."""
        return dict(
            type='hello', history=HISTORY, read_only=self.read_only, sources=[
                dict(self._state(i), past=list(self._history[i]),
                     events=list(run.events.recent),
                     classes=[name for k, name in enumerate(run.classes)
                              if k not in run.ignore],
                     picture=encode_text(self._pictures[i]))
                for i, run in enumerate(self._runs)
            ])

    async def _tick(self) -> None:
        while True:
            for source in range(len(self._runs)):
                self._send(self._state(source))
            await asyncio.sleep(1)

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        tick = asyncio.create_task(self._tick())
        self._ready.set()
        yield
        tick.cancel()

    def _is_same_site(self, websocket: WebSocket) -> bool:
        """Return True if the page of this server sent the request.

        The browser may also send requests of other sites. If the server
        listens on loopback, the request must also name a loopback host:
        another site can make its own host name resolve to this machine.
        """
        host = websocket.headers.get('host', '')
        origin = websocket.headers.get('origin')
        try:
            name = urlsplit(f'//{host}').hostname or ''
            site = host if origin is None else urlsplit(origin).netloc
        except ValueError:
            # The header is not a URL, such as 'http://['.
            return False
        return site == host and (is_loopback(name)
                                 or not is_loopback(self.host))

    async def _client(self, websocket: WebSocket) -> None:
        if not self._is_same_site(websocket):
            await websocket.close()
            return
        await websocket.accept()
        # Check twice, because other clients may have connected.
        if not await self._has_room(websocket) or not (
                await self._check_token(websocket)) or not (
                await self._has_room(websocket)):
            return
        self._connected += 1
        try:
            await self._serve(websocket)
        finally:
            self._connected -= 1

    async def _has_room(self, websocket: WebSocket) -> bool:
        if self._connected < MAX_CLIENTS:
            return True
        await websocket.close(TOO_MANY, 'too many clients')
        return False

    async def _check_token(self, websocket: WebSocket) -> bool:
        try:
            message = await asyncio.wait_for(
                websocket.receive(), TOKEN_SECONDS)
        except asyncio.TimeoutError:
            message = {}
        if message.get('type') == 'websocket.disconnect':
            return False
        if hmac.compare_digest((message.get('text') or '').encode(),
                               self._token):
            return True
        await websocket.close(WRONG_TOKEN, 'wrong token')
        return False

    async def _serve(self, websocket: WebSocket) -> None:
        queue: asyncio.Queue[str] = asyncio.Queue(MAX_WAITING)
        queue.put_nowait(json.dumps(self._hello()))
        self._clients.add(queue)
        # Answers are not queued, so that they are not dropped. Sending holds
        # the lock, so that they do not pile up for a client that does not
        # read.
        turn = asyncio.Lock()
        send = asyncio.create_task(_forward(queue, websocket, turn))
        listen = asyncio.create_task(self._listen(websocket, turn))
        try:
            await asyncio.wait((send, listen),
                               return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._clients.discard(queue)
            send.cancel()
            listen.cancel()
            # A client may have disconnected.
            await asyncio.gather(send, listen, return_exceptions=True)

    async def _listen(self, websocket: WebSocket, turn: asyncio.Lock) -> None:
        """Answer a client until it leaves or sends an invalid message."""
        while True:
            message = await websocket.receive()
            if message['type'] == 'websocket.disconnect':
                return
            try:
                answer = self._answer(message.get('text') or '')
            except ValueError as error:
                await websocket.close(UNEXPECTED, ascii(str(error))[:120])
                return
            if answer is not None:
                async with turn:
                    await websocket.send_text(json.dumps(answer))

    def _answer(self, text: str) -> dict | None:
        """Return the answer to a message; a ``ValueError`` if unexpected."""
        try:
            message = json.loads(text)
        except RecursionError as error:
            raise ValueError('the message is nested too deeply') from error
        if not isinstance(message, dict):
            raise ValueError('a message must be an object')
        kind, source = message.get('type'), message.get('source')
        if type(source) is not int or not 0 <= source < len(self._runs):
            raise ValueError(f'source must be in [0, {len(self._runs)})')
        if kind == 'threshold' and not self.read_only:
            self._runs[source].event_detector.set_threshold(
                message.get('class'), message.get('on'))
            return None
        # The pictures of an event.
        index, start = message.get('index'), message.get('start')
        if kind != 'clip' or type(index) is not int or (
                type(start) not in (int, float)):
            raise ValueError('a clip needs the numbers index and start')
        frames = self._event_frames[source].get(index, start)
        return dict(
            type='clip', source=source, index=index, start=start,
            times=[time for time, _ in frames],
            frames=[encode_text(picture) for _, picture in frames])


async def _forward(queue: 'asyncio.Queue[str]', websocket: WebSocket,
                   turn: asyncio.Lock) -> None:
    while True:
        text = await queue.get()
        async with turn:
            await websocket.send_text(text)


def _health(good: Sequence[bool]) -> PlainTextResponse:
    if all(good):
        return PlainTextResponse('ok\n')
    return PlainTextResponse(
        f'{good.count(False)} of {len(good)} sources are not ok\n', 503)


async def _file(path: Path) -> FileResponse:
    return FileResponse(path, headers={
        'Content-Security-Policy': POLICY,
        'X-Content-Type-Options': 'nosniff',
        'Referrer-Policy': 'no-referrer',
        'Cache-Control': 'no-cache'
    })


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the host."""
    if host == 'localhost':
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown_name(name: str) -> str:
    """Return the name of a source without its folders."""
    return name if '://' in name else Path(name).name or name


def encode_image(image: np.ndarray, side: int) -> bytes:
    """Encode an RGB image as a JPEG with sides of at most ``side`` pixels."""
    scale = min(1., side / max(image.shape[:2]))
    image = cv2.resize(image, None, fx=scale, fy=scale,
                       interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode('.jpg', cv2.cvtColor(image, cv2.COLOR_RGB2BGR),
                           [cv2.IMWRITE_JPEG_QUALITY, PICTURE_QUALITY])
    return data.tobytes()


def encode_text(data: bytes) -> str:
    """Encode bytes as text (Base64)."""
    return base64.b64encode(data).decode()
