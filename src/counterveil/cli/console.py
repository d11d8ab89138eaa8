"""The command `console`: a local web application over a folder of ledgers, studies and data."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from counterveil.cli.options import argument, option
from counterveil.errors import refusal

_NEEDED = ("starlette", "jinja2", "uvicorn")


def console(
    folder: Annotated[
        Path, argument("FOLDER", "A folder with ledgers, data and studies; console.toml in it may name them.")
    ],
    port: Annotated[int, option("INTEGER", "Port on this machine; 0 for a free one.")] = 0,
    analyst: Annotated[
        list[str] | None, option("NAME", "Also print a link for an analyst, who sees no message about rows.")
    ] = None,
    browser: Annotated[bool, option("", "Open the steward's link in a browser.", "--browser")] = False,
) -> None:
    """Work in the browser: data sets, studies, plans, requests, results and ledgers.

    Listens on 127.0.0.1 only. Each printed link opens one session, once, within 15 minutes. Nothing is kept but what
    the other commands keep: ledgers, study files, decisions of a site. Needs the extra `console`.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise refusal("CV-E080", missing=", ".join(missing))
    from counterveil.console.server import serve

    def tell(who: str, link: str) -> None:
        print(f"{who}: {link}", flush=True)

    print("Listening on this machine only; interrupt to stop.", flush=True)
    serve(folder, port, analyst or [], tell, browser)
