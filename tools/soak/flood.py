# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Flood the page of a live-detection service with connections.

    python tools/soak/flood.py --minutes 5

The service reads a camera and a folder, as in service.py, and has a token.
After a calm minute, clients without the token ("strangers") open many
connections per second and keep them open: some send nothing or half a request,
some upgrade and send no token or a wrong one, some send an endless header or a
malformed host. A client with the token never reads.

The soak exits with 1 unless all of this holds: a page receives the steps at
the rate of the calm minute, clients with the token are admitted, the events
match the plan, file handles stay within the page's limits, memory stays flat,
the log is free of errors, and all connections are closed at the end.
"""
import argparse
import json
import resource
import socket
import statistics
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from mmvidattn.live import server

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.harness import (
    add_outputs,
    append_json,
    count,
    parser_of,
    positive,
)
from tools.soak.service import (
    Camera,
    Service,
    Watch,
    check_numbers,
    compare_frames,
    free_ports,
    make_frames,
    make_model,
    may_grow,
    run_in_folder,
    wait_until,
)

TOKEN = 'sesame'
UPGRADE = (
    'GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n'
    'Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    'Sec-WebSocket-Version: 13\r\n\r\n')
# Kinds of strangers and their messages. A wrong token follows the upgrade.
KINDS = {
    'silence': '',
    'half a request': 'GET / HTTP/1.1\r\nHost: ',
    'no token': UPGRADE,
    'a wrong token': UPGRADE,
    'a malformed host': UPGRADE.replace('127.0.0.1:{port}', '['),
    'an endless header': 'GET / HTTP/1.1\r\nX: ' + 'x' * 100_000,
    'metrics': 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n',
}
# Connections between an upgrade and its wrong token.
TOKEN_DELAY = 10
# Limit of file handles of the service.
HANDLES = 128
# Seconds without strangers, before the flood (for the rate) and after it
# (until all connections are closed).
CALM, REST = 60., server.PENDING_SECONDS + 10.
# Longest accepted time between two steps of a source, in seconds.
GAP = 2.
# Seconds between visits of a client with the token.
VISIT = 2.
# Smallest accepted share of the calm rate.
RATE = 0.95


class Flood(threading.Thread):
    """Thread that opens connections without the token, all kinds in turn.

    Args:
        port: Port of the page.
        rate: Connections per second.
        most: Largest number of connections kept open; older ones are closed.

    Attributes:
        counts: Number of connections by kind.
        refused: Number of connections that failed: the page refused them, or
            closed them before the client sent anything.
    """

    def __init__(self, port: int, rate: float, most: int) -> None:
        super().__init__(daemon=True)
        self._port, self._rate, self._most = port, rate, most
        self.counts: Counter[str] = Counter()
        self.refused = 0
        self.done = threading.Event()

    def run(self) -> None:
        kept: deque[tuple[str, socket.socket]] = deque()
        kinds, following = cycle(KINDS), time.monotonic()
        while not self.done.wait(max(0., following - time.monotonic())):
            following = max(following + 1 / self._rate, time.monotonic())
            kind = next(kinds)
            try:
                kept.append((kind, call(self._port, KINDS[kind])))
                self.counts[kind] += 1
            except OSError:
                self.refused += 1
            if len(kept) > TOKEN_DELAY and (
                    kept[-TOKEN_DELAY][0] == 'a wrong token'):
                with suppress(OSError):
                    kept[-TOKEN_DELAY][1].send(frame('wrong'))
            while len(kept) > self._most:
                kept.popleft()[1].close()
        for _, stranger in kept:
            stranger.close()


def call(port: int, text: str) -> socket.socket:
    """Open a connection, send a text, and read nothing.

    Raises:
        OSError: If the connection is refused, or closed at once.
    """
    stranger = socket.create_connection(('127.0.0.1', port), timeout=0.5)
    stranger.setblocking(False)
    stranger.send(text.replace('{port}', str(port)).encode())
    return stranger


def frame(text: str) -> bytes:
    """Return a short text as a WebSocket frame, masked with zeros."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode()


@contextmanager
def enter(port: int) -> Iterator[ClientConnection]:
    """Connect a client with the token, and receive the first message.

    Raises:
        OSError, WebSocketException: If the client is not admitted.
    """
    with connect(f'ws://127.0.0.1:{port}/live', open_timeout=5,
                 max_size=2**26) as client:
        client.send(TOKEN)
        if json.loads(client.recv(5))['type'] != 'hello':
            raise OSError("the first message is not 'hello'")
        yield client


class Page(threading.Thread):
    """Client that records the arrival times of each source's steps."""

    def __init__(self, port: int, num_sources: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.steps: list[list[float]] = [[] for _ in range(num_sources)]

    def run(self) -> None:
        with suppress(WebSocketException), enter(self._port) as client:
            for text in client:
                message = json.loads(text)
                if message['type'] == 'step':
                    self.steps[message['source']].append(time.monotonic())

    def rate(self, source: int, start: float, end: float) -> float:
        """Return the steps per second."""
        return sum(start <= t < end for t in self.steps[source]) / (
            end - start)

    def gap(self, source: int, start: float, end: float) -> float:
        """Return the longest time without a step, in seconds."""
        inside = [t for t in self.steps[source] if start <= t < end]
        return max(b - a for a, b in zip([start, *inside], [*inside, end]))


class Visitor(threading.Thread):
    """Client with the token that connects and leaves again and again."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.visits = self.refused = 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(VISIT):
            self.visits += 1
            try:
                with enter(self._port):
                    pass
            except (OSError, WebSocketException):
                self.refused += 1


def median(rows: list[tuple], column: int) -> float:
    return statistics.median(row[column] for row in rows)


def check_usage(rows: list[tuple], start: float, end: float
                ) -> tuple[dict[str, float], list[str]]:
    """Check memory and file handles before, during and after a flood.

    Args:
        rows: Time, memory in MiB, file handles and further columns of each
            measurement.
        start: Start time of the flood.
        end: End time of the flood.

    Returns:
        Figures and failures.
    """
    calm = [row for row in rows if row[0] < start]
    thirds = [[row for row in rows if a <= (row[0] - start) * 3 < a + (
        end - start)] for a in ((end - start) * i for i in range(3))]
    rest = [row for row in rows if row[0] > end + REST / 2]
    if not all((calm, *thirds, rest)):
        return {}, ['memory and handles were not recorded in each phase']
    usage = dict(
        memory_calm=median(calm, 1), memory_middle=median(thirds[1], 1),
        memory_end=median(thirds[2], 1), memory_rest=median(rest, 1),
        handles_calm=median(calm, 2),
        handles_most=max(row[2] for row in sum(thirds, [])),
        handles_rest=median(rest, 2))
    wrong = []
    most = usage['handles_calm'] + server.MAX_PENDING + server.BACKLOG + 8
    if usage['handles_most'] > most:
        wrong.append(f'{usage["handles_most"]:.0f} handles, more than '
                     f'{most:.0f}')
    if usage['handles_rest'] > usage['handles_calm'] + 1:
        wrong.append(f'{usage["handles_rest"]:.0f} handles at the end, '
                     f'{usage["handles_calm"]:.0f} before')
    growth = usage['memory_end'] - usage['memory_middle']
    if growth > may_grow(usage['memory_middle']):
        wrong.append(f'memory grew from {usage["memory_middle"]:.0f} to '
                     f'{usage["memory_end"]:.0f} MiB')
    return {name: round(x, 1) for name, x in usage.items()}, wrong


def check_steps(page: Page, start: float, end: float
                ) -> tuple[list[dict[str, float]], list[str]]:
    """Compare each source's steps in the flood with the calm minute."""
    counts, wrong = [], []
    for source in range(len(page.steps)):
        calm = page.rate(source, start - CALM, start)
        rate = page.rate(source, start, end)
        gap = page.gap(source, start, end)
        counts.append(dict(calm=round(calm, 3), flood=round(rate, 3),
                           gap=round(gap, 2)))
        if not rate >= RATE * calm > 0:
            wrong.append(f'source {source}: {rate:.2f} steps per second, '
                         f'{calm:.2f} before')
        if gap > GAP:
            wrong.append(f'source {source}: no step for {gap:.1f} s')
    return counts, wrong


def run(args: argparse.Namespace, folder: Path) -> list[str]:
    """Run the soak in a folder, and return its failures."""
    # 1. Start the service and its sources.
    seconds = 60 * args.minutes
    model = make_model(folder)
    frames = make_frames(folder, CALM + seconds + REST + 60)
    port, = free_ports(1)
    camera = Camera(0, time.monotonic())
    camera.start()
    service = Service(folder, [camera.address, str(frames)], model, port,
                      ['--token', TOKEN])
    watch = Watch(service, [])
    flood, visitor = Flood(port, args.rate, args.open), Visitor(port)
    try:
        service.start()
        wait_until(service.is_ready)
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE,
                         (HANDLES, HANDLES))
        # 2. Connect a page, and a client that sends the token and never
        # reads; then record a calm minute.
        page = Page(port, 2)
        page.start()
        stuck = call(port, UPGRADE)
        time.sleep(1)
        stuck.send(frame(TOKEN))
        watch.start()
        time.sleep(CALM)
        # 3. Flood.
        start = time.monotonic()
        flood.start()
        visitor.start()
        time.sleep(seconds)
        visitor.done.set()
        visitor.join()
        flood.done.set()
        flood.join()
        end = time.monotonic()
        time.sleep(REST)
        watch.done.set()
        watch.join()
        wrong = [] if service.process.poll() is None else [
            'the service exited']
        stuck.close()
    finally:
        service.stop()
        camera.stop()
    # 4. Check.
    steps, lines = check_steps(page, start, end)
    wrong += lines
    usage, lines = check_usage(
        watch.usage.get(service.process.pid, []), start, end)
    wrong += lines
    if visitor.refused or not visitor.visits:
        wrong.append(f'{visitor.refused} of {visitor.visits} clients with '
                     'the token were not admitted')
    log = (folder / 'service.log').read_text()
    wrong += [f'the log contains {word!r}' for word in ('Traceback', 'Errno')
              if word in log]
    compared = 0
    for source in range(2):
        events, _ = service.events(source)
        wrong += check_numbers(events)
        if source == 1:
            compared, lines = compare_frames(events)
            wrong += lines
    if not compared:
        wrong.append('no action was compared')
    connections = sum(flood.counts.values())
    if flood.refused > connections:
        wrong.append(f'no flood: {flood.refused} strangers were refused, and '
                     f'only {connections} connected')
    print(f'{end - start:.0f} s, {connections:,} connections of strangers '
          f'({connections / (end - start):.0f} per second), {flood.refused} '
          'more refused')
    for source, row in enumerate(steps):
        print(f'source {source}: {row["calm"]} steps per second before, '
              f'{row["flood"]} in the flood, with gaps of at most '
              f'{row["gap"]} s')
    print(f'{visitor.visits - visitor.refused} of {visitor.visits} clients '
          f'with the token admitted; {compared} actions compared')
    print(', '.join(f'{name} {x}' for name, x in usage.items()))
    append_json(args.out, dict(
        seconds=round(end - start), connections=connections,
        refused_strangers=flood.refused, steps=steps, usage=usage,
        visits=visitor.visits, refused=visitor.refused, compared=compared,
        wrong=wrong))
    return wrong


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('--minutes', type=positive, default=5.,
                        help='minutes of the flood (default: 5)')
    parser.add_argument('--rate', type=positive, default=200.,
                        help='connections per second (default: 200)')
    parser.add_argument('--open', type=count, default=430,
                        help='connections kept open (default: 430)')
    add_outputs(parser)
    args = parser.parse_args()
    run_in_folder(run, args, args.folder)


if __name__ == '__main__':
    main()
