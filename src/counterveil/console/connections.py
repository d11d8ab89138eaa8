"""Connections to a console: how many there may be, and for how long one may wait before it asks.

Whoever runs a program on this machine can connect. Connections without a session are counted apart from those of each
person, and the oldest of too many is closed, so that they can only be in each other's way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# The most connections of strangers, and of each person; and seconds until the head of a request must be whole.
MOST, PATIENCE = 64, 10.0

Client = tuple[str, int]


class Connections:
    """An ASGI application around another one, which knows from `whose` to whom a request's headers belong."""

    def __init__(
        self,
        application: Any,
        whose: Callable[[list[tuple[bytes, bytes]]], Hashable],
        most: int,
        patience: float,
    ) -> None:
        self._application, self._whose = application, whose
        self._most, self._patience = most, patience
        self._owner: dict[Client, Hashable] = {}
        # By owner, None for strangers; within each, the oldest first.
        self._open: dict[Hashable, dict[Client, asyncio.Transport]] = {}
        self._timers: dict[Client, asyncio.TimerHandle] = {}

    def protocol(self) -> type:
        """Return the protocol that tells of connections as they come and go."""
        connections = self

        class Watched(H11Protocol):  # type: ignore[misc]
            def connection_made(self, transport: asyncio.Transport) -> None:
                super().connection_made(transport)
                connections.made(self.client, transport)

            def connection_lost(self, exc: Exception | None) -> None:
                connections.lost(self.client)
                super().connection_lost(exc)

        return Watched

    def made(self, client: Client, transport: asyncio.Transport) -> None:
        """Note a connection, of a stranger as long as nothing else is known."""
        self._put(client, transport, None)
        self._wait(client, transport)

    def lost(self, client: Client) -> None:
        """Forget a connection."""
        self._calm(client)
        self._open.get(self._owner.pop(client, None), {}).pop(client, None)

    def _put(self, client: Client, transport: asyncio.Transport, owner: Hashable) -> None:
        self._open.get(self._owner.get(client), {}).pop(client, None)
        self._owner[client] = owner
        own = self._open.setdefault(owner, {})
        own[client] = transport
        while len(own) > self._most:
            oldest = next(iter(own))
            own.pop(oldest).abort()

    def _wait(self, client: Client, transport: asyncio.Transport) -> None:
        """Close a connection that does not ask in time, whatever it sends meanwhile."""
        self._calm(client)
        self._timers[client] = asyncio.get_running_loop().call_later(self._patience, transport.abort)

    def _calm(self, client: Client) -> None:
        timer = self._timers.pop(client, None)
        if timer is not None:
            timer.cancel()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer a request whose head is whole; afterwards its connection waits for the next one."""
        client: Client = scope.get("client") or ("", 0)
        transport = self._open.get(self._owner.get(client), {}).get(client)
        if transport is None:
            await self._application(scope, receive, send)
            return
        self._calm(client)
        self._put(client, transport, self._whose(scope["headers"]))
        try:
            await self._application(scope, receive, send)
        finally:
            if client in self._owner:
                self._wait(client, transport)
