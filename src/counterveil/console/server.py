"""Serves a console on the loopback address until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import uvicorn

from counterveil.accounting.accounts import system_user
from counterveil.accounting.refusals import check_name
from counterveil.console.application import Console
from counterveil.console.refusals import no_port
from counterveil.console.sessions import Sessions, random_place
from counterveil.console.visit import Person
from counterveil.console.workspace import Workspace

ADDRESS = "127.0.0.1"
_MOST_PORT = 65_535


def serve(folder: Path, port: int, analysts: Iterable[str], tell: Callable[[str, str], None]) -> None:
    """Serve a folder; `tell` gets the name and the link of each person that may enter."""
    workspace, sessions = Workspace(folder), Sessions()
    people = [Person(system_user(), steward=True)]
    for name in analysts:
        check_name("analyst", name)
        people.append(Person(name, steward=False))
    place = random_place()
    listening = _listening(port)
    application = Console(workspace, sessions, place).application()
    at = f"http://{ADDRESS}:{listening.getsockname()[1]}{place}/enter?token="
    for person in people:
        tell(f"{person.role} {person.name}", at + sessions.invite(person))
    config = uvicorn.Config(
        application,
        # A traceback of a stranger may quote a cell.
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        lifespan="off",
        limit_concurrency=64,
        timeout_keep_alive=5,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listening(port: int) -> socket.socket:
    """Return a socket of the loopback address, or raise CV-W011."""
    if not 0 <= port <= _MOST_PORT:
        raise no_port(f"{port}")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
        # Whoever opens the link at once waits instead of being refused.
        found.listen()
    except OSError as error:
        found.close()
        raise no_port(f"{port}: {type(error).__name__}") from None
    return found
