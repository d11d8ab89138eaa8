"""`counterveil federation site`: a site of a federation, its keys, its policy and its steward's decisions."""

from __future__ import annotations

import json
import logging
import signal
import threading
from pathlib import Path
from typing import Annotated, Any

from counterveil.cli.program import Group, argument
from counterveil.cli.requests import AsJson, Given, options, shared

site_app = Group("Answer the requests of a coordinator; the records stay at the site.")

Folder = Annotated[Path, argument("FOLDER", "The site's folder.")]
RequestKey = Annotated[
    str, argument("REQUEST", "A request, as `counterveil federation site requests` lists it.")
]
_SITE = [
    *options(str, "NAME", ..., name="The site's name in the study."),
    *options(str, "PLACE", ..., data="A CSV, Parquet or DuckDB file, a database URL, or spark://."),
    *options(str, "HOST:PORT", ..., coordinator="Address of the coordinator."),
    *options(Path, "FILE", ..., authority="The coordinator's certificate, keys/ca.crt."),
    *options(str, "NUMBER", ..., epsilon="Total privacy budget of the people in the data, over all studies."),
    *options(str, "NUMBER", "0", delta="Total delta."),
    *options(str | None, "PLACE", ledger="A file or a PostgreSQL URL; ledger.db in the folder if omitted."),
    *options(str, "NAME", "records", dataset="Account in the ledger."),
]
_LEVEL = 'Level that is allowed: "outcome" (if omitted), "treatment and outcome" or "record".'
# What the site's policy says, by its own names.
_POLICY = [
    *options(str, "NUMBER", ..., study_epsilon="Largest epsilon one study may spend."),
    *options(list[str], "NAME", ..., estimators=("--method", "A method that is allowed.")),
    *options(list[str] | None, "LEVEL", protects=_LEVEL),
    *options(
        list[str] | None,
        "NAME",
        measures=("--measure", 'Measure that is allowed: "difference" alone if omitted.'),
        questions=("--question", 'Question that is allowed: "ate" alone if omitted.'),
    ),
    *options(
        str,
        "NUMBER",
        "0",
        max_delta="Largest delta of one request.",
        min_epsilon="Smallest epsilon of one request.",
    ),
    *options(
        int,
        "INTEGER",
        0,
        min_rows="Refuse requests if the data have fewer rows.",
        min_arm="Refuse requests if an arm has fewer, where arms are public or planned.",
    ),
    *options(str, "WORDS", "automatic", approval='"automatic" or "by hand": who approves requests.'),
    *options(bool, "", False, diagnostics="Also send balance tables, where they are public."),
]
_LOG = logging.getLogger(__name__)


@site_app.command(short_help="Create the folder of a site: settings, policy, keys, ledger.")
@shared("study", "table", "as_json", more=[*_SITE, *_POLICY])
def create(given: Given, folder: Folder) -> None:
    """Create the folder of a site: settings, policy, keys, and a ledger with the total budget of its people.

    Prints the path of the public key, which the coordinator needs.
    """
    import counterveil as cv
    from counterveil.federation.setup import make_site

    usual = {"protects": ["outcome"], "measures": ["difference"], "questions": ["ate"]}
    policy = {each.name: given[each.name] or usual.get(each.name, given[each.name]) for each in _POLICY}
    document = {name: given[name] for name in ("name", "dataset", "coordinator")} | {
        "data": _absolute(given["data"]),
        "ledger": "ledger.db" if given["ledger"] is None else _absolute(given["ledger"]),
        "policy": policy,
    }
    document |= {"table": given["table"]} if given["table"] else {}
    study = cv.Study.from_toml(given["study"])
    file = make_site(folder, document, study, given["authority"], cv.Budget(given["epsilon"], given["delta"]))
    key = file.keys / "node.pub"
    facts = {"site": file.name, "public_key": str(key)}
    _say(facts, f"{file.name}: send {key} to the coordinator", given["as_json"])


@site_app.command(short_help="Check settings, data, ledger and keys.")
def check(folder: Folder, as_json: AsJson = False) -> None:
    """Check settings, data, ledger and keys, and show what remains of the budget.

    What it prints is for the data steward only.
    """
    from counterveil.federation.site import check_site

    facts = check_site(folder)
    lines = [f"{name}: {value}" for name, value in facts.items() if name != "policy"]
    lines += ["policy:", *(f"  {name}: {_shown(value)}" for name, value in facts["policy"].items())]
    _say(facts, "\n".join(lines), as_json)


@site_app.command(short_help="Answer requests until interrupted.")
def run(folder: Folder) -> None:
    """Answer requests until interrupted.

    The log has times, request ids and codes, and no data.
    """
    from counterveil.federation.engines.flower.wire import prepare
    from counterveil.federation.site import Site, check_site
    from counterveil.federation.site_files import SiteFile

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
        _LOG.info("stopping after the current request; a second signal stops now, and its answer may be lost")
        wanted.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.default_int_handler)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    return wanted


@site_app.command(short_help="List the requests that wait for a decision.")
def requests(folder: Folder, as_json: AsJson = False) -> None:
    """List the requests that wait for the steward's decision."""
    _show_requests(folder, None, None, as_json)


@site_app.command(short_help="Approve a request.")
def approve(folder: Folder, request: RequestKey, as_json: AsJson = False) -> None:
    """Approve a request; it is answered when the coordinator asks again."""
    from counterveil.federation.site_files import APPROVED

    _show_requests(folder, request, APPROVED, as_json)


@site_app.command(short_help="Decline a request.")
def decline(folder: Folder, request: RequestKey, as_json: AsJson = False) -> None:
    """Decline a request; the coordinator is informed."""
    from counterveil.federation.site_files import REJECTED

    _show_requests(folder, request, REJECTED, as_json)


def _show_requests(folder: Path, request: str | None, decision: str | None, as_json: bool) -> None:
    """Decide on a request, if one is named, and print it; otherwise print all that wait."""
    from counterveil.federation.site_files import SiteFile, SiteRecords

    records = SiteRecords(SiteFile.read(folder).answers)
    if request is not None and decision is not None:
        records.decide(request, decision)
    found = [each for each in records.waiting() if request in (None, each.key)]
    facts = [{"key": each.key, "state": each.state, "request": each.request} for each in found]
    lines = [f"{each.key}: {each.state}; {json.dumps(each.request['question'])}" for each in found]
    _say({"requests": facts}, "\n".join(lines) or "no request is waiting", as_json)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())


def _say(facts: dict[str, Any], text: str, as_json: bool) -> None:
    print(json.dumps(facts, indent=2, default=str) if as_json else text)
