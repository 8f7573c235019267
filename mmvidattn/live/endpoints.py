# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Endpoints for monitoring, and limits on connections."""
import asyncio
import hmac
from collections.abc import Callable, Iterator, Sequence

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr

from .health import BOUNDS
from .run import StreamRun

COUNTERS = dict(
    steps='Scored steps.',
    dropped='Steps dropped because the machine was too slow.',
    missing='Steps without a frame.',
    bad_frames='Empty frames, and steps with non-finite features.')
PREFIX = 'mmvidattn_'
# Content type of Prometheus's text format.
METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'


def render_metrics(runs: Sequence[StreamRun], names: Sequence[str]) -> bytes:
    """Render the metrics of runs, with the number and name of each source.

    Raises:
        ImportError: If prometheus_client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
    except ImportError as error:
        raise ImportError('metrics need prometheus_client: pip install '
                          '"mmvidattn[metrics]"') from error
    registry = CollectorRegistry()
    registry.register(_Collector(runs, names))
    return generate_latest(registry)


class _Collector:

    def __init__(self, runs: Sequence[StreamRun],
                 names: Sequence[str]) -> None:
        self._runs = [((str(i), name), run)
                      for i, (run, name) in enumerate(zip(runs, names), 1)]

    def collect(self) -> Iterator:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )
        labels = 'source', 'name'
        up = GaugeMetricFamily(
            f'{PREFIX}source_up', '1 if the source gives frames or has ended.',
            labels=labels)
        counters = {
            key: CounterMetricFamily(PREFIX + key, text, labels=labels)
            for key, text in COUNTERS.items()}
        events = CounterMetricFamily(
            f'{PREFIX}events', 'Actions that started or ended.',
            labels=(*labels, 'event', 'class'))
        sinks = CounterMetricFamily(
            f'{PREFIX}sink_lost', 'Items that a sink dropped or failed to '
            'process.', labels=(*labels, 'sink'))
        latency = HistogramMetricFamily(
            f'{PREFIX}latency_seconds', 'Duration of each stage of a step; '
            'lag is from its last frame to its scores.',
            labels=(*labels, 'stage'))
        for values, run in self._runs:
            report = run.report()
            up.add_metric(values, run.health.is_up)
            for key, counter in counters.items():
                counter.add_metric(values, report[key])
            for key, count in list(run.event_counts.items()):
                events.add_metric((*values, *key), count)
            for sink, lost in run.sink_losses().items():
                sinks.add_metric((*values, sink), lost)
            for stage, counts in run.latency.counts.items():
                total, buckets = 0, []
                for bound, count in zip((*BOUNDS, '+Inf'), counts):
                    total += count
                    buckets.append((str(bound), total))
                latency.add_metric((*values, stage), buckets,
                                   run.latency.sums[stage])
        yield up
        yield from counters.values()
        yield from (events, sinks, latency)


def add_endpoints(app: FastAPI, runs: Sequence[StreamRun],
                  names: Sequence[str], token: str,
                  is_allowed: Callable[[Request], bool]) -> None:
    """Add the routes ``/metrics``, ``/healthz`` and ``/readyz``.

    Metrics need the token, as ``Authorization: Bearer TOKEN`` in UTF-8.
    ``/healthz`` and ``/readyz`` return only ``ok``, or status 503 with the
    number of runs that are not ok.

    Args:
        app: Server.
        runs: One run for each source.
        names: Names of the sources, in which secrets are masked.
        token: Token. '' allows every client.
        is_allowed: Function that checks that a request is for this server.
    """
    # compare_digest rejects non-ASCII strings, but accepts bytes.
    expected = f'Bearer {token}'.encode() if token else b''

    @app.get('/metrics')
    def metrics(request: Request) -> PlainTextResponse:
        if not is_allowed(request):
            return PlainTextResponse('forbidden\n', 403)
        # Starlette decodes headers as Latin-1.
        given = request.headers.get('authorization', '').encode('latin-1')
        if expected and not hmac.compare_digest(given, expected):
            return PlainTextResponse('the token is missing or wrong\n', 401, {
                'WWW-Authenticate': 'Bearer'})
        try:
            return PlainTextResponse(render_metrics(runs, names),
                                     media_type=METRICS_TYPE)
        except ImportError as error:
            return PlainTextResponse(f'{error}\n', 501)

    @app.get('/healthz')
    def healthz() -> PlainTextResponse:
        return _answer([not run.health.problem for run in runs])

    @app.get('/readyz')
    def readyz() -> PlainTextResponse:
        return _answer([run.health.is_ready for run in runs])


def _answer(good: Sequence[bool]) -> PlainTextResponse:
    if all(good):
        return PlainTextResponse('ok\n')
    return PlainTextResponse(
        f'{good.count(False)} of {len(good)} sources are not ok\n', 503)


class PendingConnections:
    """Connections of a server that have not been authenticated yet.

    Their number and their time are limited, so that a client that opens many
    connections and sends nothing cannot exhaust the program's file handles.
    If there are too many, the oldest connection is closed.

    Args:
        size: Maximum number of pending connections.
        seconds: Time until a pending connection is closed.
    """

    def __init__(self, size: int, seconds: float) -> None:
        self.size = size
        self.seconds = seconds
        self._pending: dict[tuple, tuple[asyncio.Transport,
                                         asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def protocol(self) -> type[H11Protocol]:
        """Return uvicorn's protocol with these limits."""
        pending = self

        class Protocol(H11Protocol):

            def connection_made(self, transport: asyncio.Transport) -> None:
                pending._add(transport, self.loop)
                super().connection_made(transport)

        return Protocol

    def accept(self, client: Sequence) -> None:
        """Lift the limits for a connection.

        Args:
            client: ``client`` of the connection's ASGI scope.
        """
        self._remove(tuple(client))

    def _add(self, transport: asyncio.Transport,
             loop: asyncio.AbstractEventLoop) -> None:
        for client, (other, _) in list(self._pending.items()):
            if other.is_closing():
                self._remove(client)
        while len(self._pending) >= self.size:
            self._close(next(iter(self._pending)))
        client = get_remote_addr(transport)
        self._pending[client] = transport, loop.call_later(
            self.seconds, self._close, client)

    def _close(self, client: tuple) -> None:
        transport, _ = self._pending[client]
        self._remove(client)
        transport.abort()

    def _remove(self, client: tuple) -> None:
        if client in self._pending:
            self._pending.pop(client)[1].cancel()
