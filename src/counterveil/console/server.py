"""Serves a console on the loopback address until it is interrupted.

Whoever runs a program on this machine can connect. Connections without a session are counted apart from those of each
person, and the oldest of too many is closed, so that they can only be in each other's way.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from counterveil.accounting.accounts import system_user
from counterveil.console.application import Console
from counterveil.console.visit import Sessions, SignedIn, new_analyst, random_place
from counterveil.console.workspace import Workspace
from counterveil.errors import refusal

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


ADDRESS = "127.0.0.1"
_MOST_PORT = 65_535
# Seconds that requests which were charged have to finish once the console is to end.
_GRACE = 10


def serve(
    folder: Path, port: int, analysts: Iterable[str], tell: Callable[[str, str], None], browser: bool = False
) -> None:
    """Serve a folder; `tell` gets the name and the link of each person that may enter.

    With `browser` the steward's link is opened in one as soon as the console serves.
    """
    workspace, sessions = Workspace(folder), Sessions()
    steward = SignedIn(system_user(), steward=True)
    people = [steward, *(new_analyst(name, steward) for name in analysts)]
    place = random_place()
    listening = _listening(port)
    console = Console(workspace, sessions, place)
    at = f"http://{ADDRESS}:{listening.getsockname()[1]}{place}/enter?token="
    door = _Door() if browser else None
    for person in people:
        used = door.remove if door is not None and person.steward else None
        link = at + sessions.invite(person, used)
        if door is not None and person.steward:
            door.write(link)
        tell(f"{person.role} {person.name}", link)
    server = server_of(console)
    if door is not None:
        server.started_calls.append(door.open)
        server.ending_calls.append(door.remove)
    server.run(sockets=[listening])


class Server(uvicorn.Server):  # type: ignore[misc]
    """A server that says when it serves and when it begins to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.started_calls: list[Callable[[], None]] = []
        self.ending_calls: list[Callable[[], None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        for call in self.started_calls:
            call()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; a signal that is to end the process does so right afterwards."""
        for call in self.ending_calls:
            call()
        await super().shutdown(sockets)


def server_of(console: Console, most: int = MOST, patience: float = PATIENCE) -> Server:
    """Return the server of a console, which is not started; at most so many connections may wait for so long."""
    guarded = Connections(console.application(), console.whose, most, patience)
    config = uvicorn.Config(
        guarded,
        http=guarded.protocol(),
        ws="none",
        # A traceback of a stranger may quote a cell.
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        lifespan="off",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_GRACE,
    )
    server = Server(config)
    server.ending_calls.append(console.stop)
    return server


class _Door:
    """A file that leads a browser to the steward's link: everybody on the machine can read a command line."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="counterveil-"))
        self._file = self._folder / "enter.html"

    def write(self, link: str) -> None:
        """Write the file for the user alone."""
        text = (
            f'<!doctype html><title>Counterveil</title><meta http-equiv="refresh" content="0;url={link}">\n'
        )
        with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)

    def open(self) -> None:
        """Open the file in a browser, which may take as long as the browser runs."""
        threading.Thread(target=partial(webbrowser.open, self._file.as_uri()), daemon=True).start()

    def remove(self) -> None:
        """Remove the file."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _listening(port: int) -> socket.socket:
    """Return a socket of the loopback address, or raise CV-W011."""
    if not 0 <= port <= _MOST_PORT:
        raise refusal("CV-W011", got=f"{port}")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
        # Whoever opens the link at once waits instead of being refused.
        found.listen()
    except OSError as error:
        found.close()
        raise refusal("CV-W011", got=f"{port}: {type(error).__name__}") from None
    return found
