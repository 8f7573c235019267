# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What programs ask a service for: metrics, health, readiness."""
import hmac
from collections.abc import Callable, Sequence

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse

from .metrics import render_metrics
from .run import Run

# Of Prometheus's text format.
METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'


class Endpoints:
    """Answers to ``/metrics``, ``/healthz`` and ``/readyz``.

    Metrics need the token, as ``Authorization: Bearer TOKEN`` in UTF-8. The
    other two say no more than ``ok``, or how many runs are not: with status
    503.

    Args:
        runs: One for each source.
        names: Names of the sources, as they may be shown.
        token: The token; '' lets in all.
        is_allowed: Tells whether a request is one to this server.
    """

    def __init__(self, runs: Sequence[Run], names: Sequence[str], token: str,
                 is_allowed: Callable[[Request], bool]) -> None:
        self._runs = runs
        self._names = names
        # As bytes: both sides may have characters other than ASCII.
        self._expected = f'Bearer {token}'.encode() if token else b''
        self._is_allowed = is_allowed

    def add_to(self, app: FastAPI) -> None:
        """Add the three routes."""
        for name in 'metrics', 'healthz', 'readyz':
            app.add_api_route(f'/{name}', getattr(self, name),
                              include_in_schema=False)

    def metrics(self, request: Request) -> PlainTextResponse:
        """Counts and latency, for Prometheus."""
        if not self._is_allowed(request):
            return PlainTextResponse('forbidden\n', 403)
        # Starlette decodes headers as Latin-1.
        given = request.headers.get('authorization', '').encode('latin-1')
        if self._expected and not hmac.compare_digest(given, self._expected):
            return PlainTextResponse('the token is needed\n', 401, {
                'WWW-Authenticate': 'Bearer'})
        try:
            return PlainTextResponse(
                render_metrics(self._runs, self._names),
                media_type=METRICS_TYPE)
        except ImportError as error:
            return PlainTextResponse(f'{error}\n', 501)

    def healthz(self) -> PlainTextResponse:
        """Whether all runs go on, or have ended as they should."""
        return self._answer([not run.health.problem for run in self._runs])

    def readyz(self) -> PlainTextResponse:
        """Whether all runs have scored a step and their sources are there."""
        return self._answer([run.health.is_ready for run in self._runs])

    def _answer(self, good: Sequence[bool]) -> PlainTextResponse:
        bad = sum(not x for x in good)
        if not bad:
            return PlainTextResponse('ok\n')
        return PlainTextResponse(f'{bad} of {len(good)} are not\n', 503)
