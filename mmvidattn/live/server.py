# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A web page that shows live detection."""
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

from .run import Detection, Run

try:
    import uvicorn
    from fastapi import FastAPI, WebSocket
    from fastapi.responses import FileResponse

    from .endpoints import Endpoints
    from .lobby import Lobby
except ImportError as error:
    raise ImportError('the page needs FastAPI, uvicorn and websockets: pip '
                      'install "mmvidattn[serve]"') from error

PAGE = Path(__file__).with_name('page.html')
# Loads nothing but itself, and connects to its own socket only.
POLICY = ("default-src 'none'; style-src 'unsafe-inline'; script-src "
          "'unsafe-inline'; img-src data:; connect-src 'self'; base-uri "
          "'none'; form-action 'none'; frame-ancestors 'none'")
# Seconds of scores that a page gets when it is opened.
HISTORY = 60
# Classes of a step that are sent, the most probable ones.
MAX_CLASSES = 8
PICTURE_SIDE, PICTURE_QUALITY = 640, 70
# Messages that wait for a slow client; then the oldest are dropped.
MAX_WAITING = 16
# Bytes of a message from a client, which is the token.
MAX_INCOMING = 1024
TOKEN_SECONDS = 5
# Connections of which none has sent the token yet, and seconds that they may
# take, from the first byte on.
MAX_STRANGERS, STRANGER_SECONDS = 32, 10
# Connections that the system takes at a time.
BACKLOG = 16
WRONG_TOKEN, TOO_MANY, UNEXPECTED = 4401, 1013, 1008


class LivePage:
    """Serves a page, and sends it the detections of runs.

    It is a context manager and serves from a thread of its own. A client sends
    the token first (the page takes it from ``#token=...`` of its address, a
    part that browsers do not send). Pages of other sites are refused.

    Args:
        runs: One for each source.
        host: Address to listen on. Addresses other than loopback need a token.
        port: Port; 0 for any.
        token: Token that clients must send. None lets in all that reach it.
        max_clients: How many may be connected. Those that have not sent the
            token do not count; there are few of these as well
            (:class:`Lobby`).

    Raises:
        ValueError: If it would be open to everybody.
        OSError: If the port is taken.
    """

    def __init__(self, runs: Sequence[Run],
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
        self._runs = runs
        self._history: list[deque[dict]] = [
            deque(maxlen=int(HISTORY * run.rate)) for run in runs
        ]
        self._pictures = [''] * len(runs)
        self._clients: set[asyncio.Queue[str]] = set()
        self._connected = 0
        self._lobby = Lobby(MAX_STRANGERS, STRANGER_SECONDS)
        app = FastAPI(lifespan=self._lifespan, openapi_url=None)
        app.add_api_route('/', self._page, include_in_schema=False)
        app.add_api_websocket_route('/live', self._client)
        Endpoints(runs, [_shown_name(run.report()['name']) for run in runs],
                  self.token, self._is_own_page).add_to(app)
        config = uvicorn.Config(
            app, host=host, port=port, ws_max_size=MAX_INCOMING,
            ws_per_message_deflate=False, http=self._lobby.protocol(),
            backlog=BACKLOG, proxy_headers=False,
            # Others could fill the log with warnings.
            log_level='error',
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
        """Send a detection in a source, by its number; from any thread."""
        top = self._runs[source].top_actions(detection.scores, MAX_CLASSES)
        message = dict(
            type='step', source=source, time=detection.time,
            scores={name: round(score, 4) for name, score in top.items()})
        picture = ''
        if self._connected:
            picture = _encode(detection.images[-1])
        try:
            self._loop.call_soon_threadsafe(
                self._send_step, message, picture, detection.events)
        except RuntimeError:
            # The page was closed meanwhile.
            if not self._loop.is_closed():
                raise

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
        """A message on the state of a run.

        It has the latest events as well: the last ones come after all steps.
        """
        run = self._runs[source]
        report = run.report()
        path, name = report['name'], _shown_name(report['name'])
        return dict(report, type='state', source=source, name=name,
                    status=report['status'].replace(path, name),
                    events=list(run.events.recent)[-MAX_WAITING:])

    def _hello(self) -> dict:
        """The first message, with the latest scores and events."""
        return dict(
            type='hello', history=HISTORY, sources=[
                dict(self._state(i), past=list(self._history[i]),
                     events=list(run.events.recent),
                     picture=self._pictures[i])
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

    async def _page(self) -> FileResponse:
        return FileResponse(PAGE, headers={
            'Content-Security-Policy': POLICY,
            'X-Content-Type-Options': 'nosniff',
            'Referrer-Policy': 'no-referrer',
            'Cache-Control': 'no-cache'
        })

    def _is_own_page(self, websocket: WebSocket) -> bool:
        """Check that no page of another site connects, under any name."""
        host = websocket.headers.get('host', '')
        origin = websocket.headers.get('origin')
        try:
            name = urlsplit(f'//{host}').hostname or ''
            site = host if origin is None else urlsplit(origin).netloc
        except ValueError:
            # Such as 'http://['.
            return False
        return site == host and (is_loopback(name)
                                 or not is_loopback(self.host))

    async def _client(self, websocket: WebSocket) -> None:
        if not self._is_own_page(websocket):
            await websocket.close()
            return
        await websocket.accept()
        if not await self._is_room(websocket) or not (
                await self._check_token(websocket)):
            return
        # Others may have come meanwhile.
        if not await self._is_room(websocket):
            return
        self._connected += 1
        try:
            self._lobby.let_in(websocket.client)
            await self._serve(websocket)
        finally:
            self._connected -= 1

    async def _is_room(self, websocket: WebSocket) -> bool:
        if self._connected < self.max_clients:
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
                await websocket.close(
                    UNEXPECTED, 'clients send nothing but the token')
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
    """Tell whether only this machine can reach a host."""
    if host == 'localhost':
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown_name(name: str) -> str:
    """A source's name without the folders that it is in."""
    return name if '://' in name else Path(name).name or name


def _encode(image: np.ndarray) -> str:
    """Encode an RGB image as a JPEG of limited size, in base64."""
    scale = min(1., PICTURE_SIDE / max(image.shape[:2]))
    image = cv2.resize(image, None, fx=scale, fy=scale,
                       interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode('.jpg', cv2.cvtColor(image, cv2.COLOR_RGB2BGR),
                           [cv2.IMWRITE_JPEG_QUALITY, PICTURE_QUALITY])
    return base64.b64encode(data).decode()
