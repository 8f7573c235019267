# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Endpoints for monitoring: metrics, health, readiness."""
import hmac
from collections.abc import Callable, Sequence

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse

from .metrics import render_metrics
from .run import Run

# Content type of Prometheus's text format.
METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'


class Endpoints:
    """Routes ``/metrics``, ``/healthz`` and ``/readyz`` of the server.

    Metrics need the token, as ``Authorization: Bearer TOKEN`` in UTF-8.
    ``/healthz`` and ``/readyz`` return only ``ok``, or status 503 with the
    number of runs that are not ok.

    Args:
        runs: One run for each source.
        names: Names of the sources, in which secrets are masked.
        token: Token. '' allows every client.
        is_allowed: Function that checks that a request is for this server.
    """

    def __init__(self, runs: Sequence[Run], names: Sequence[str], token: str,
                 is_allowed: Callable[[Request], bool]) -> None:
        self._runs = runs
        self._names = names
        # compare_digest rejects non-ASCII strings, but accepts bytes.
        self._expected = f'Bearer {token}'.encode() if token else b''
        self._is_allowed = is_allowed

    def add_to(self, app: FastAPI) -> None:
        """Add the three routes."""
        for name in 'metrics', 'healthz', 'readyz':
            app.add_api_route(f'/{name}', getattr(self, name),
                              include_in_schema=False)

    def metrics(self, request: Request) -> PlainTextResponse:
        """Return counts and latency for Prometheus."""
        if not self._is_allowed(request):
            return PlainTextResponse('forbidden\n', 403)
        # Starlette decodes headers as Latin-1.
        given = request.headers.get('authorization', '').encode('latin-1')
        if self._expected and not hmac.compare_digest(given, self._expected):
            return PlainTextResponse('the token is missing or wrong\n', 401, {
                'WWW-Authenticate': 'Bearer'})
        try:
            return PlainTextResponse(
                render_metrics(self._runs, self._names),
                media_type=METRICS_TYPE)
        except ImportError as error:
            return PlainTextResponse(f'{error}\n', 501)

    def healthz(self) -> PlainTextResponse:
        """Check that all runs are working, or have ended without an error."""
        return self._answer([not run.health.problem for run in self._runs])

    def readyz(self) -> PlainTextResponse:
        """Check that all runs have scored a step and their sources are up."""
        return self._answer([run.health.is_ready for run in self._runs])

    def _answer(self, good: Sequence[bool]) -> PlainTextResponse:
        bad = sum(not x for x in good)
        if not bad:
            return PlainTextResponse('ok\n')
        return PlainTextResponse(f'{bad} of {len(good)} sources are not ok\n',
                                 503)
