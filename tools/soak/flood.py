# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Flood the page of a service of live detection, and see what that costs it.

    python tools/soak/flood.py --minutes 5

The service reads a camera and a folder, as in service.py, and has a token.
After a calm minute strangers open connections, many a second, and keep them:
some say nothing, some half a request, some upgrade and send no token or a
wrong one, some send a header without end or a malformed host. A client with
the token does not read what it gets. Meanwhile a page must get all steps, at
the rate of the calm minute; whoever has the token must get in; and the events
must be those of the plan. Handles must stay within the page's limits, memory
flat, the log without an error, and all connections gone in the end. Ends with
1 if any is not so.
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
from tools.harness import append_json, count, parser_of, positive
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
# What strangers send, by its name; a wrong token follows a moment later.
KINDS = {
    'silence': '',
    'half a request': 'GET / HTTP/1.1\r\nHost: ',
    'no token': UPGRADE,
    'a wrong token': UPGRADE,
    'a malformed host': UPGRADE.replace('127.0.0.1:{port}', '['),
    'an endless header': 'GET / HTTP/1.1\r\nX: ' + 'x' * 100_000,
    'metrics': 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n',
}
# Connections that come between an upgrade and its wrong token.
MOMENT = 10
# File handles that the service may have.
HANDLES = 128
# Seconds without strangers: before, for the rate; and behind, until all of
# them are gone.
CALM, REST = 60., server.STRANGER_SECONDS + 10.
# Seconds between two steps of a source that count as a stop.
GAP = 2.
# Seconds between visits by somebody with the token.
VISIT = 2.
# Share of the calm rate that must be there.
RATE = 0.95


class Flood(threading.Thread):
    """Strangers that connect, all kinds in turn.

    Args:
        port: Where to.
        rate: Connections a second.
        most: How many are kept open.

    Attributes:
        counts: How many there were, by kind.
        refused: How many more were refused, or closed before they had sent
            anything.
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
            if len(kept) > MOMENT and kept[-MOMENT][0] == 'a wrong token':
                with suppress(OSError):
                    kept[-MOMENT][1].send(frame('wrong'))
            while len(kept) > self._most:
                kept.popleft()[1].close()
        for _, other in kept:
            other.close()


def call(port: int, text: str) -> socket.socket:
    """A connection that has sent something, and reads nothing.

    Raises:
        OSError: If it is refused, or closed at once.
    """
    other = socket.create_connection(('127.0.0.1', port), timeout=0.5)
    other.setblocking(False)
    other.send(text.replace('{port}', str(port)).encode())
    return other


def frame(text: str) -> bytes:
    """A short text as a WebSocket's frame, masked by zeros."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode()


@contextmanager
def enter(port: int) -> Iterator[ClientConnection]:
    """A client that has sent the token, and has got the first message.

    Raises:
        OSError, WebSocketException: If it is not let in.
    """
    with connect(f'ws://127.0.0.1:{port}/live', open_timeout=5,
                 max_size=2**26) as client:
        client.send(TOKEN)
        if json.loads(client.recv(5))['type'] != 'hello':
            raise OSError('the first message is another')
        yield client


class Page(threading.Thread):
    """A client that notes when steps come, by source."""

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
        """Steps a second."""
        return sum(start <= t < end for t in self.steps[source]) / (
            end - start)

    def gap(self, source: int, start: float, end: float) -> float:
        """The longest time without a step, in seconds."""
        inside = [t for t in self.steps[source] if start <= t < end]
        return max(b - a for a, b in zip([start, *inside], [*inside, end]))


class Visitor(threading.Thread):
    """Somebody with the token, who comes and goes."""

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
    """Of a flood: its memory by thirds, and its handles.

    Args:
        rows: Time, memory in MiB, and handles, among others.
        start: When the flood began.
        end: When it ended.

    Returns:
        Numbers, and what is wrong.
    """
    calm = [row for row in rows if row[0] < start]
    thirds = [[row for row in rows if a <= (row[0] - start) * 3 < a + (
        end - start)] for a in ((end - start) * i for i in range(3))]
    rest = [row for row in rows if row[0] > end + REST / 2]
    if not all((calm, *thirds, rest)):
        return {}, ['memory and handles could not be read in time']
    found = dict(
        memory_calm=median(calm, 1), memory_middle=median(thirds[1], 1),
        memory_end=median(thirds[2], 1), memory_rest=median(rest, 1),
        handles_calm=median(calm, 2),
        handles_most=max(row[2] for row in sum(thirds, [])),
        handles_rest=median(rest, 2))
    wrong = []
    most = found['handles_calm'] + server.MAX_STRANGERS + server.BACKLOG + 8
    if found['handles_most'] > most:
        wrong.append(f'{found["handles_most"]:.0f} handles, which is above '
                     f'{most:.0f}')
    if found['handles_rest'] > found['handles_calm'] + 1:
        wrong.append(f'{found["handles_rest"]:.0f} handles in the end, '
                     f'{found["handles_calm"]:.0f} before')
    growth = found['memory_end'] - found['memory_middle']
    if growth > may_grow(found['memory_middle']):
        wrong.append(f'memory grew from {found["memory_middle"]:.0f} to '
                     f'{found["memory_end"]:.0f} MiB')
    return {name: round(x, 1) for name, x in found.items()}, wrong


def check_steps(page: Page, start: float, end: float
                ) -> tuple[list[dict[str, float]], list[str]]:
    """Steps of each source in the flood beside those of the calm minute."""
    found, wrong = [], []
    for source in range(len(page.steps)):
        calm = page.rate(source, start - CALM, start)
        rate = page.rate(source, start, end)
        gap = page.gap(source, start, end)
        found.append(dict(calm=round(calm, 3), flood=round(rate, 3),
                          gap=round(gap, 2)))
        if not rate >= RATE * calm > 0:
            wrong.append(f'source {source}: {rate:.2f} steps a second, '
                         f'{calm:.2f} before')
        if gap > GAP:
            wrong.append(f'source {source}: no step for {gap:.1f} s')
    return found, wrong


def run(args: argparse.Namespace, folder: Path) -> list[str]:
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
        page = Page(port, 2)
        page.start()
        stuck = call(port, UPGRADE)
        time.sleep(1)
        stuck.send(frame(TOKEN))
        watch.start()
        time.sleep(CALM)
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
            'the service has ended']
        stuck.close()
    finally:
        service.stop()
        camera.stop()
    steps, lines = check_steps(page, start, end)
    wrong += lines
    usage, lines = check_usage(
        watch.usage.get(service.process.pid, []), start, end)
    wrong += lines
    if visitor.refused or not visitor.visits:
        wrong.append(f'{visitor.refused} of {visitor.visits} with the token '
                     'did not get in')
    log = (folder / 'service.log').read_text()
    wrong += [f'the log has {word!r}' for word in ('Traceback', 'Errno')
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
        wrong.append(f'{flood.refused} strangers were refused, and only '
                     f'{connections} connected: there was no flood')
    print(f'{end - start:.0f} s, {connections:,} connections of strangers '
          f'({connections / (end - start):.0f} a second), {flood.refused} '
          'more refused')
    for source, row in enumerate(steps):
        print(f'source {source}: {row["calm"]} steps a second before, '
              f'{row["flood"]} in the flood; at most {row["gap"]} s without')
    print(f'{visitor.visits - visitor.refused} of {visitor.visits} with the '
          f'token got in; {compared} actions compared')
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
                        help='of the flood (default: 5)')
    parser.add_argument('--rate', type=positive, default=200.,
                        help='connections a second (default: 200)')
    parser.add_argument('--open', type=count, default=430,
                        help='how many strangers keep open (default: 430)')
    parser.add_argument(
        '--out', type=Path, help='write the figures to this file, as JSON')
    args = parser.parse_args()
    run_in_folder(run, args)


if __name__ == '__main__':
    main()
