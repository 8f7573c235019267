# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Limits on connections that have not said yet what they want."""
import asyncio
from collections.abc import Sequence

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr


class Lobby:
    """The connections of a server, until they are let in.

    They are few, and none stays for long, so that whoever opens many and says
    nothing takes no handle away from the program: when there are too many, the
    oldest one is closed.

    Args:
        size: How many there may be.
        seconds: How long each may stay.
    """

    def __init__(self, size: int, seconds: float) -> None:
        self.size = size
        self.seconds = seconds
        self._waiting: dict[tuple, tuple[asyncio.Transport,
                                         asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def protocol(self) -> type[H11Protocol]:
        """uvicorn's protocol, with this in front of it."""
        lobby = self

        class Protocol(H11Protocol):

            def connection_made(self, transport: asyncio.Transport) -> None:
                lobby._enter(transport, self.loop)
                super().connection_made(transport)

        return Protocol

    def let_in(self, client: Sequence) -> None:
        """Let a connection stay, by its ``client`` of an ASGI scope."""
        self._forget(tuple(client))

    def _enter(self, transport: asyncio.Transport,
               loop: asyncio.AbstractEventLoop) -> None:
        for client, (other, _) in list(self._waiting.items()):
            if other.is_closing():
                self._forget(client)
        while len(self._waiting) >= self.size:
            self._close(next(iter(self._waiting)))
        client = get_remote_addr(transport)
        self._waiting[client] = transport, loop.call_later(
            self.seconds, self._close, client)

    def _close(self, client: tuple) -> None:
        transport, _ = self._waiting[client]
        self._forget(client)
        transport.abort()

    def _forget(self, client: tuple) -> None:
        if client in self._waiting:
            self._waiting.pop(client)[1].cancel()
