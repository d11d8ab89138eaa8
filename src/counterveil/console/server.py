"""Serves a console on the loopback address until it is interrupted."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import uvicorn

from counterveil.accounting.accounts import system_user
from counterveil.accounting.refusals import check_name
from counterveil.console.application import Console
from counterveil.console.connections import MOST, PATIENCE, Connections
from counterveil.console.sessions import Sessions, random_place
from counterveil.console.visit import Person
from counterveil.console.workspace import Workspace
from counterveil.errors import refusal

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
    people = [Person(system_user(), steward=True)]
    for name in analysts:
        check_name("analyst", name)
        people.append(Person(name, steward=False))
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
