# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A page that shows online detection while it runs."""
import asyncio
import base64
import hmac
import ipaddress
import json
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import cv2
import numpy as np

from .detector import Detection, OnlineDetector

try:
    import uvicorn
    from fastapi import FastAPI, WebSocket
    from fastapi.responses import FileResponse
except ImportError as error:
    raise ImportError('the page needs FastAPI, uvicorn and websockets: pip '
                      'install "mmvidattn[serve]"') from error

PAGE = Path(__file__).with_name('page.html')
# Nothing but itself, and its own socket.
POLICY = ("default-src 'none'; style-src 'unsafe-inline'; script-src "
          "'unsafe-inline'; img-src data:; connect-src 'self'; base-uri "
          "'none'; form-action 'none'; frame-ancestors 'none'")
# Seconds of the past that a page gets when it is opened.
HISTORY = 60
# Classes of a step that are sent, the most probable ones.
MAX_CLASSES = 8
PICTURE_SIDE, PICTURE_QUALITY = 640, 70
# Messages that wait for a slow client; then the oldest are dropped.
MAX_WAITING = 16
# All that a client says is the token.
MAX_INCOMING = 1024
TOKEN_SECONDS = 5
WRONG_TOKEN, TOO_MANY, NOT_SPOKEN_TO = 4401, 1013, 1008


class LivePage:
    """Serves a page, and sends it what detectors find.

    Use it as a context; it serves from a thread of its own. Whoever opens the
    page sends the token first (the page takes it from ``#token=...`` of its
    address, which browsers do not send). A page of another site is refused.

    Args:
        detectors: One for each source.
        host: Address to listen on. Others than loopback need a token.
        port: Port; 0 for any.
        token: What clients must know. None lets in all that reach it.
        max_clients: How many may be connected.

    Raises:
        ValueError: If it would be open to everybody.
        OSError: If the port is taken.
    """

    def __init__(self, detectors: Sequence[OnlineDetector],
                 host: str = '127.0.0.1', port: int = 8000,
                 token: str | None = None, max_clients: int = 8) -> None:
        if not is_loopback(host) and not token:
            raise ValueError(f'others can reach {host}: the page needs a '
                             'token, or 127.0.0.1 for its host')
        if max_clients < 1:
            raise ValueError('max_clients must be at least 1, got '
                             f'{max_clients}')
        self.host = host
        self.token = token or ''
        self.max_clients = max_clients
        self._detectors = detectors
        self._history: list[deque[dict]] = [
            deque(maxlen=int(HISTORY * d.rate)) for d in detectors
        ]
        self._pictures = [''] * len(detectors)
        self._clients: set[asyncio.Queue[str]] = set()
        self._connected = 0
        app = FastAPI(lifespan=self._lifespan, openapi_url=None)
        app.add_api_route('/', self._page, include_in_schema=False)
        app.add_api_websocket_route('/live', self._client)
        config = uvicorn.Config(
            app, host=host, port=port, ws_max_size=MAX_INCOMING,
            ws_per_message_deflate=False, log_level='warning',
            # Its own would close every log file of this process.
            log_config=None,
            server_header=False, timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._socket = _bind(host, port)
        self.port = self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        """The page's address, with the token."""
        host = f'[{self.host}]' if ':' in self.host else self.host
        token = f'#token={self.token}' if self.token else ''
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

    def publish(self, source: int, detection: Detection) -> None:
        """Send what was found in a source, by its number; from any thread."""
        detector = self._detectors[source]
        best = [i for i in np.argsort(-detection.scores)
                if i not in detector.ignore][:MAX_CLASSES]
        message = dict(
            type='step', source=source, time=detection.time,
            scores={
                detector.classes[i]: round(float(detection.scores[i]), 4)
                for i in best
            })
        picture = ''
        if self._connected:
            picture = _encode(detection.images[-1])
        self._loop.call_soon_threadsafe(
            self._send_step, message, picture, detection.events)

    def _send_step(self, message: dict, picture: str,
                   events: Sequence[dict]) -> None:
        source = message['source']
        self._history[source].append(message)
        self._pictures[source] = picture or self._pictures[source]
        self._send(dict(message, picture=picture, events=events))

    def _send(self, message: dict) -> None:
        text = json.dumps(message)
        for queue in self._clients:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(text)

    def _state(self, source: int) -> dict:
        """What a detector is at. Events of the end come with no step."""
        detector = self._detectors[source]
        return dict(detector.report(), type='state', source=source,
                    events=list(detector.events.recent)[-MAX_WAITING:])

    def _hello(self) -> dict:
        """What a client needs to know of the past."""
        return dict(
            type='hello', history=HISTORY, sources=[
                dict(self._state(i), past=list(self._history[i]),
                     events=list(detector.events.recent),
                     picture=self._pictures[i])
                for i, detector in enumerate(self._detectors)
            ])

    async def _tick(self) -> None:
        while True:
            for source in range(len(self._detectors)):
                self._send(self._state(source))
            await asyncio.sleep(1)

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        tick = asyncio.create_task(self._tick())
        self._ready.set()
        yield
        tick.cancel()

    async def _page(self) -> FileResponse:
        return FileResponse(PAGE, headers={
            'Content-Security-Policy': POLICY,
            'X-Content-Type-Options': 'nosniff',
            'Referrer-Policy': 'no-referrer',
            'Cache-Control': 'no-cache'
        })

    def _is_own_page(self, websocket: WebSocket) -> bool:
        """Whether no page of another site speaks, under its name or ours."""
        host = websocket.headers.get('host', '')
        if is_loopback(self.host) and not is_loopback(
                urlsplit(f'//{host}').hostname or ''):
            return False
        origin = websocket.headers.get('origin')
        return origin is None or urlsplit(origin).netloc == host

    async def _client(self, websocket: WebSocket) -> None:
        if not self._is_own_page(websocket):
            await websocket.close()
            return
        await websocket.accept()
        if self._connected >= self.max_clients:
            await websocket.close(TOO_MANY, 'too many clients')
            return
        self._connected += 1
        try:
            if await self._knows_token(websocket):
                await self._serve(websocket)
        finally:
            self._connected -= 1

    async def _knows_token(self, websocket: WebSocket) -> bool:
        try:
            said = await asyncio.wait_for(websocket.receive(), TOKEN_SECONDS)
        except asyncio.TimeoutError:
            said = {}
        if said.get('type') == 'websocket.disconnect':
            return False
        if hmac.compare_digest((said.get('text') or '').encode(),
                               self.token.encode()):
            return True
        await websocket.close(WRONG_TOKEN, 'wrong token')
        return False

    async def _serve(self, websocket: WebSocket) -> None:
        queue: asyncio.Queue[str] = asyncio.Queue(MAX_WAITING)
        queue.put_nowait(json.dumps(self._hello()))
        self._clients.add(queue)
        send = asyncio.create_task(_forward(queue, websocket))
        listen = asyncio.create_task(websocket.receive())
        try:
            await asyncio.wait((send, listen),
                               return_when=asyncio.FIRST_COMPLETED)
            if listen.done() and listen.result()['type'] != (
                    'websocket.disconnect'):
                await websocket.close(NOT_SPOKEN_TO, 'this page only speaks')
        finally:
            self._clients.discard(queue)
            send.cancel()
            listen.cancel()
            # A client that has gone is no error.
            await asyncio.gather(send, listen, return_exceptions=True)


async def _forward(queue: 'asyncio.Queue[str]', websocket: WebSocket) -> None:
    while True:
        await websocket.send_text(await queue.get())


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(f'cannot listen on {host}, port {port}: {error}'
                      ) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    if host == 'localhost':
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _encode(image: np.ndarray) -> str:
    """An RGB image as a JPEG of limited size, in base64."""
    scale = min(1., PICTURE_SIDE / max(image.shape[:2]))
    image = cv2.resize(image, None, fx=scale, fy=scale,
                       interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode('.jpg', cv2.cvtColor(image, cv2.COLOR_RGB2BGR),
                           [cv2.IMWRITE_JPEG_QUALITY, PICTURE_QUALITY])
    return base64.b64encode(data).decode()
