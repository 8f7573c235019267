# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Limits on connections that have not been authenticated yet."""
import asyncio
from collections.abc import Sequence

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr


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
