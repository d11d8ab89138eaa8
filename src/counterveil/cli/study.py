"""`counterveil study`: one question to several sites, and the pooled answer."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.options import AsJson, Report
from counterveil.cli.showing import check_target, show

if TYPE_CHECKING:
    from counterveil.federation.study_files import StudyFolder


study_app = typer.Typer(help="Ask several sites one question and pool their answers.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The study's folder.")]


@study_app.command()
def create(
    folder: Folder,
    study_id: Annotated[str, typer.Option("--id", help="A name for the study, the same at all sites.")],
    declaration: Annotated[Path, typer.Option(help="Roles, public bounds, categories (TOML).")],
    address: Annotated[str, typer.Option(help="HOST:PORT at which sites reach this coordinator.")],
    method: Annotated[str, typer.Option(help="The estimator.")],
    protects: Annotated[str, typer.Option(help='"outcome" or "record".')],
    epsilon: Annotated[str, typer.Option(help="Epsilon asked of each site, exact.")],
    site: Annotated[list[str], typer.Option(help="NAME, or NAME=PUBLIC_KEY_FILE; may be repeated.")],
    delta: Annotated[str, typer.Option(help="Delta asked of each site.")] = "0",
    estimand: Annotated[str, typer.Option(help='"ATE", "ATT" or "ATC".')] = "ATE",
    level: Annotated[float, typer.Option(help="Confidence level.")] = 0.95,
    quorum: Annotated[
        int | None, typer.Option(help="Answers needed for a result; default: all sites.")
    ] = None,
    deadline: Annotated[float, typer.Option(help="Seconds that one run waits for the sites.")] = 3600,
    retry: Annotated[float, typer.Option(help="Seconds after which a silent site is asked again.")] = 60,
    pooling: Annotated[str, typer.Option(help="How answers are averaged; see `counterveil pool`.")] = "mvagg",
    most_weight: Annotated[float, typer.Option(help="The most weight of one site in the average.")] = 0.5,
    as_json: AsJson = False,
) -> None:
    """Make a study's folder: question, sites, deadline, certificates. Sites need keys/ca.crt of it."""
    import counterveil as cv
    from counterveil.federation.setup import make_study

    named = dict(word.partition("=")[::2] for word in site)
    question = {"method": method, "protects": protects, "epsilon": epsilon, "delta": delta}
    document: dict[str, Any] = {
        "id": study_id,
        "address": address,
        "deadline": deadline,
        "retry": retry,
        "quorum": max(2, len(named)) if quorum is None else quorum,
        "pooling": pooling,
        "most_weight": most_weight,
        "question": question | {"estimand": estimand, "level": level},
        "sites": {name: {"epsilon": epsilon} for name in named},
    }
    public_keys = {name: Path(key) for name, key in named.items() if key}
    make_study(folder, document, cv.Study.from_toml(declaration), public_keys)
    missing = [name for name in named if name not in public_keys]
    facts = {"folder": str(folder), "authority": str(folder / "keys" / "ca.crt"), "keys_missing": missing}
    text = f"send {facts['authority']} and {folder / 'declaration.toml'} to the sites"
    if missing:
        text += f"; put their node.pub at {folder / 'sites'}/NAME.pub: {', '.join(missing)}"
    print(json.dumps(facts, indent=2) if as_json else text)


@study_app.command()
def run(
    folder: Folder,
    listen: Annotated[
        str, typer.Option(help="127.0.0.1 for sites on this machine, 0.0.0.0 for any.")
    ] = "127.0.0.1",
    again: Annotated[
        list[str] | None, typer.Option(help="Ask this site under a new id: it pays anew. May be repeated.")
    ] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Ask the sites that have not answered yet, show progress, and pool the answers."""
    from counterveil.federation.study_run import run_study

    check_target(report)
    opened = _open(folder)
    for site in again or []:
        opened.renew(site)
    begin = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {text}", file=sys.stderr, flush=True)

    parts = run_study(opened, listen, tell)
    said = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items())
    tell(f"done: {said}")
    _result(opened, None, report, as_json)


@study_app.command()
def status(folder: Folder, as_json: AsJson = False) -> None:
    """Show where each site stands."""
    from counterveil.federation.outcome import states

    found = states(_open(folder))
    if as_json:
        print(json.dumps({"sites": [each.to_dict() for each in found]}, indent=2))
    else:
        print("\n".join(f"{each.site}: epsilon {each.epsilon}, {each.state}" for each in found))


@study_app.command()
def result(
    folder: Folder,
    method: Annotated[str | None, typer.Option(help="Another way of pooling than the study's.")] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Print the pooled effect of the sites that answered; asks nobody and spends nothing."""
    check_target(report)
    _result(_open(folder), method, report, as_json)


def _open(folder: Path) -> StudyFolder:
    from counterveil.federation.study_files import StudyFolder

    return StudyFolder(folder)


def _result(folder: StudyFolder, method: str | None, report: Path | None, as_json: bool) -> None:
    from counterveil.federation.outcome import pooled, states

    effect = pooled(folder, method)
    missing = [each for each in states(folder) if not each.answered]
    for each in missing:
        print(f"NOT IN THE RESULT: {each.site}: {each.state}", file=sys.stderr)
    show(effect, report, as_json, more={"not_in_result": [each.to_dict() for each in missing]})
