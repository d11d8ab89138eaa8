"""`counterveil site`: a site of a federation, its keys, its policy and its steward's decisions."""

from __future__ import annotations

import json
import logging
import signal
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from counterveil.cli.options import AsJson

site_app = typer.Typer(
    help="Answer the requests of a coordinator with private results.", no_args_is_help=True
)

Folder = Annotated[Path, typer.Argument(help="The site's folder.")]
_LOG = logging.getLogger(__name__)


@site_app.command()
def init(
    folder: Folder,
    name: Annotated[str, typer.Option(help="The site's name in the study.")],
    data: Annotated[str, typer.Option(help="A CSV, Parquet or DuckDB file, or a PostgreSQL URL.")],
    declaration: Annotated[
        Path, typer.Option(help="Roles, public bounds, categories (TOML), checked by you.")
    ],
    coordinator: Annotated[str, typer.Option(help="HOST:PORT of the coordinator.")],
    authority: Annotated[Path, typer.Option(help="The coordinator's keys/ca.crt.")],
    epsilon: Annotated[str, typer.Option(help="Total epsilon of the people in the data, for ever.")],
    study_epsilon: Annotated[str, typer.Option(help="The most that one study may spend.")],
    estimator: Annotated[list[str], typer.Option(help="An estimator that is allowed; may be repeated.")],
    protects: Annotated[
        list[str] | None, typer.Option(help='"outcome" or "record"; may be repeated.')
    ] = None,
    delta: Annotated[str, typer.Option(help="Total delta.")] = "0",
    most_delta: Annotated[str, typer.Option(help="The most delta of one request.")] = "0",
    least_epsilon: Annotated[str, typer.Option(help="The least epsilon of one request.")] = "0",
    least_rows: Annotated[int, typer.Option(help="Refuse where the data have fewer rows.")] = 0,
    approval: Annotated[str, typer.Option(help='"automatic" or "by hand".')] = "automatic",
    diagnostics: Annotated[bool, typer.Option(help="Send balance tables, where they are public.")] = False,
    table: Annotated[str | None, typer.Option(help="Table of the database.")] = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL URL.")] = None,
    dataset: Annotated[str, typer.Option(help="Account in the ledger.")] = "records",
    as_json: AsJson = False,
) -> None:
    """Make a site's folder: settings, policy, keys, ledger; the public key goes to the coordinator."""
    import counterveil as cv
    from counterveil.federation.setup import make_site

    document: dict[str, Any] = {
        "name": name,
        "data": _absolute(data),
        "ledger": "ledger.db" if ledger is None else _absolute(ledger),
        "dataset": dataset,
        "coordinator": coordinator,
    }
    document |= {"table": table} if table else {}
    policy: dict[str, Any] = {
        "estimators": estimator,
        "protects": protects or ["outcome"],
        "least_epsilon": least_epsilon,
    }
    policy |= {"study_epsilon": study_epsilon, "most_delta": most_delta, "least_rows": least_rows}
    document["policy"] = policy | {"approval": approval, "diagnostics": diagnostics}
    study = cv.Study.from_toml(declaration)
    file = make_site(folder, document, study, authority, cv.Budget(epsilon, delta))
    key = file.keys / "node.pub"
    _say({"site": file.name, "public_key": str(key)}, f"{file.name}: send {key} to the coordinator", as_json)


@site_app.command()
def check(folder: Folder, as_json: AsJson = False) -> None:
    """Check settings, data, ledger and keys; what it prints is for the steward's eyes."""
    from counterveil.federation.site import check_site

    facts = check_site(folder)
    lines = [f"{name}: {value}" for name, value in facts.items() if name != "policy"]
    lines += ["policy:", *(f"  {name}: {_shown(value)}" for name, value in facts["policy"].items())]
    _say(facts, "\n".join(lines), as_json)


@site_app.command()
def run(folder: Folder) -> None:
    """Answer requests until interrupted."""
    from counterveil.federation.engines.flower.surroundings import prepare
    from counterveil.federation.site import Site, check_site
    from counterveil.federation.site_file import SiteFile

    prepare(folder / "flower")
    from counterveil.federation.engines.flower.node import serve

    check_site(folder)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for talkative in ("httpx", "flwr"):
        logging.getLogger(talkative).setLevel(logging.ERROR)
    site = Site(SiteFile.read(folder))
    _LOG.info("%s: waiting for %s", site.file.name, site.file.coordinator)
    serve(site.file, site.answer, _stopping())


def _stopping() -> threading.Event:
    """Return what is set when the site should end; a request that is being answered is answered first."""
    wanted = threading.Event()

    def stop(*_: object) -> None:
        _LOG.info(
            "stopping; a second signal stops at once, and what is being answered may be paid for and lost"
        )
        wanted.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.default_int_handler)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    return wanted


@site_app.command()
def approve(
    folder: Folder,
    request: Annotated[str | None, typer.Argument(help="A request that waits; left out: list them.")] = None,
    decline: Annotated[bool, typer.Option(help="Decline it instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the requests that wait for the steward, or decide on one."""
    from counterveil.federation.site_file import SiteFile
    from counterveil.federation.site_records import APPROVED, REJECTED, SiteRecords

    records = SiteRecords(SiteFile.read(folder).answers)
    if request is not None:
        records.decide(request, REJECTED if decline else APPROVED)
    found = [each for each in records.waiting() if request in (None, each.key)]
    facts = [{"key": each.key, "state": each.state, "request": each.request} for each in found]
    lines = [f"{each.key}: {each.state}; {json.dumps(each.request['question'])}" for each in found]
    _say({"requests": facts}, "\n".join(lines) or "nothing waits", as_json)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())


def _say(facts: dict[str, Any], text: str, as_json: bool) -> None:
    print(json.dumps(facts, indent=2, default=str) if as_json else text)
