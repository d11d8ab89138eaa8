"""The demos: `counterveil demo` on one data set, `counterveil federation demo` with four sites on this machine."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.options import option

if TYPE_CHECKING:
    from counterveil.data import Study

_PROGRAM = (sys.executable, "-m", "counterveil", "federation")
_EPSILON = "1"
_POLICY: dict[str, Any] = {
    "estimators": ["difference_in_means"],
    "study_epsilon": _EPSILON,
    "least_rows": 100,
}
# Seconds; far more than an idle machine needs.
_DEADLINE = 300


def demo(
    folder: Annotated[Path, option("FOLDER", "Where ledger and report are written.")] = Path("demo-output"),
) -> None:
    """Estimate the effect of a job-training programme on earnings, at epsilon 1, and show the ledger.

    Run twice, it prints the same answer: the request has a name, and the ledger returns the stored answer. Needs the
    extra `demo`.
    """
    import counterveil as cv
    from counterveil.cli.ledger import print_accounts
    from counterveil.datasets import lalonde
    from counterveil.report.text import wrapped

    folder.mkdir(parents=True, exist_ok=True)
    training = lalonde()
    told = [f"{training.name}: {training.source}", training.notes, "Only outcomes are private here."]
    print("\n".join(line for each in told for line in wrapped(each)) + "\n")
    ledger = folder / "ledger.db"
    if not ledger.exists():
        with cv.open_ledger(ledger, create=True) as book:
            book.register("lalonde", cv.Budget(epsilon=3))
    with cv.Curator(training.frame, training.study, ledger=ledger, dataset="lalonde") as curator:
        # A named request: run again, the demo gets the stored answer free of charge.
        result = curator.ate(protects="outcome", epsilon=1, request_id="demo")
        report = result.to_html(folder / "report.html")
        print(result)
        print(f"\nReport written to {report}\n")
        print_accounts(curator.ledger)


def demo_federation(
    folder: Annotated[Path, option("FOLDER", "Where each run gets a new folder.")] = Path(
        "demo-output/federation"
    ),
) -> None:
    """Estimate one effect across four sites, each at epsilon 1, and pool the answers.

    A coordinator and four sites run as separate processes on this machine, with certificates made for the occasion:
    the four kinds of school of Project STAR if its file is available, simulated hospitals otherwise. Needs the extra
    `federation`.
    """
    begin = time.monotonic()
    place = _new(folder)
    study, frames, source = _sites()
    print(f"{source}\n{', '.join(f'{name}: {rows(frame)} rows' for name, frame in frames.items())}\n")
    _prepare(place, study, frames)
    prepared = time.monotonic()
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.extend(_start(place, name) for name in frames)
        command = [*_PROGRAM, "coordinator", "run", str(place / "study")]
        code = subprocess.run([*command, "--report", str(place / "pooled.html")], check=False).returncode
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
    done = time.monotonic()
    print(f"\nForest plot: {place / 'pooled.html'}")
    print(f"Time: setting up {prepared - begin:.1f} s, asking and pooling {done - prepared:.1f} s")
    if code:
        raise typer.Exit(code)


def rows(frame: Mapping[str, Any]) -> int:
    """Return the number of rows of a dictionary of arrays."""
    return len(next(iter(frame.values())))


def _new(folder: Path) -> Path:
    """Return a folder that no demo used before; ledgers and keys are not made twice."""
    used = {path.name for path in folder.glob("*")}
    place = folder / next(str(number) for number in range(1, len(used) + 2) if str(number) not in used)
    place.mkdir(parents=True)
    return place


def _sites() -> tuple[Study, dict[str, dict[str, Any]], str]:
    """Return the declaration and each site's rows: STAR's kinds of school, or simulated hospitals."""
    from counterveil.datasets import simulated_trial, star
    from counterveil.errors import CounterveilError

    try:
        schools = star("K")
    except CounterveilError:
        sizes = {"North": 1200, "South": 800, "East": 500, "West": 300}
        trials = {
            name: simulated_trial(size, 0.1, "continuous", seed=seed)
            for seed, (name, size) in enumerate(sizes.items())
        }
        study = next(iter(trials.values())).study
        return study, {name: dict(trial.frame) for name, trial in trials.items()}, "Four simulated hospitals"
    kind = schools.frame["entry_urbanicity"]
    frames = {
        str(label).title(): {name: column[kind == label] for name, column in schools.frame.items()}
        for label in ("RURAL", "SUBURBAN", "INNER CITY", "URBAN")
    }
    return schools.study, frames, "Project STAR, kindergarten: small classes and mathematics scores"


def _prepare(place: Path, study: Study, frames: dict[str, dict[str, Any]]) -> None:
    from counterveil.federation.engines.flower.surroundings import free_port, prepare
    from counterveil.federation.setup import make_site, make_study
    from counterveil.privacy import Budget

    prepare(place / "flower")
    address = f"127.0.0.1:{free_port()}"
    question = {"method": "difference_in_means", "protects": "outcome", "epsilon": _EPSILON}
    document = {"id": "demo", "address": address, "deadline": _DEADLINE, "retry": 10, "question": question}
    make_study(place / "study", document | {"sites": {name: {} for name in frames}}, study, {})
    for name, frame in frames.items():
        _write(place / f"{name}.csv", frame)
        site = {"name": name, "data": str((place / f"{name}.csv").absolute()), "coordinator": address}
        authority = place / "study" / "keys" / "ca.crt"
        file = make_site(place / name, site | {"policy": _POLICY}, study, authority, Budget(3))
        # What a steward would send to the coordinator by a way that both trust.
        (place / "study" / "sites" / f"{name}.pub").write_bytes((file.keys / "node.pub").read_bytes())


def _write(path: Path, frame: Mapping[str, Any]) -> None:
    """Write a dictionary of arrays as CSV, missing values as empty cells."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(frame)
        columns = [
            ["" if value is None or value != value else value for value in column]
            for column in frame.values()
        ]
        writer.writerows(zip(*columns, strict=True))


def _start(place: Path, name: str) -> subprocess.Popen[bytes]:
    with (place / f"{name}.log").open("ab") as log:
        command = [*_PROGRAM, "site", "run", str(place / name)]
        return subprocess.Popen(command, stdout=log, stderr=log)
