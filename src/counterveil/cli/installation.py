"""What comes with the installation: `doctor` checks its parts, `explain` shows error pages, `demo` runs an example."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from counterveil.cli.program import argument, option
from counterveil.cli.requests import AsJson
from counterveil.errors import explanation, refusal

if TYPE_CHECKING:
    from counterveil.data import Study


_PROOF = ".proof.md"


def doctor(as_json: AsJson = False) -> None:
    """Check the installation.

    Lists every package that Counterveil uses, with the extras that bring it, and runs a small simulated trial. The
    exit code is 1 if a required package is missing or the trial fails.
    """
    required, optional = _packages()
    missing = [name for name in required if _version(name) is None]
    fault = f"not run, as {', '.join(missing)} is missing" if missing else _fault()
    facts: dict[str, object] = {
        "counterveil": _version("counterveil"),
        "python": sys.version.split()[0],
        "required": {name: _version(name) for name in required},
        "optional": {
            name: {"extras": extras, "version": _version(name)} for name, extras in optional.items()
        },
        "works": fault is None,
    }
    healthy = fault is None
    if as_json:
        print(json.dumps(facts | {"healthy": healthy}, indent=2))
    else:
        rows = [("package", "version", "needed for")]
        rows += [(name, _version(name) or "MISSING", "everything") for name in required]
        rows += [
            (name, _version(name) or "-", f"the extra{'s' * (len(extras) > 1)} {', '.join(extras)}")
            for name, extras in optional.items()
        ]
        widths = [max(len(row[place]) for row in rows) + 2 for place in range(2)]
        print(f"counterveil {facts['counterveil']} on Python {facts['python']}\n")
        # Without rich, which may be what is missing.
        print("\n".join(f"{row[0]:<{widths[0]}}{row[1]:<{widths[1]}}{row[2]}" for row in rows))
        print(f"\nSmall simulated trial: {'works' if healthy else fault}")
    if not healthy:
        raise SystemExit(1)


# The name at the beginning of a requirement, and the extra at its end.
_NAME, _EXTRA = re.compile(r"[\w.-]+"), re.compile(r"extra == ['\"]([\w-]+)['\"]")


def _packages() -> tuple[list[str], dict[str, list[str]]]:
    """Return the packages that are required, and the others with the extras that bring them.

    They are read from the metadata of the installation. Extras that build on others, for the tests and the site of
    a checkout, are left out.
    """
    required: list[str] = []
    brought: list[tuple[str, str]] = []
    for text in metadata.requires("counterveil") or []:
        found, only_with = _NAME.match(text), _EXTRA.search(text)
        if found is None:
            continue
        if only_with is None:
            required.append(found[0])
        else:
            brought.append((found[0], only_with[1]))
    building = {extra for name, extra in brought if name == "counterveil"}
    optional: dict[str, list[str]] = {}
    for name, extra in brought:
        if extra not in building and extra not in optional.setdefault(name, []):
            optional[name].append(extra)
    return required, {name: extras for name, extras in optional.items() if extras}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _fault() -> str | None:
    """Return what keeps a simulated trial of eight people from an interval, or None."""
    import counterveil as cv

    try:
        study = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial())
        trial = {"t": [0, 0, 0, 0, 1, 1, 1, 1], "y": [0, 0, 1, 0, 1, 1, 0, 1]}
        low, high = cv.ate(trial, study, protects="outcome", epsilon=1).interval()
    except Exception as fault:
        return f"FAILED: {type(fault).__name__}: {fault}"
    return None if low < high else "FAILED: no interval"


def explain(
    name: Annotated[
        str | None,
        argument(
            "NAME",
            "An error code such as CV-P004, or a proof such as laplace; if omitted, the proofs are listed.",
        ),
    ] = None,
) -> None:
    """Show the page of an error code, or a proof that a result cites."""
    if name is None:
        print("\n".join(sorted(_proofs())))
        return
    text = _page(name.strip())
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        print(text)


def _page(name: str) -> str:
    """Return the text of a page; raises CV-P024."""
    error = explanation(name.upper())
    if error is not None:
        return error
    proofs = _proofs()
    meant = [path for path in proofs if path == name or path.rpartition("/")[2] in (name, name + _PROOF)]
    if len(meant) == 1:
        return proofs[meant[0]].read_text(encoding="utf-8")
    raise refusal(
        "CV-P024",
        name=name,
        fix=f"name one of {', '.join(sorted(meant))}" if meant else "`counterveil explain` lists the proofs",
    )


def _proofs() -> dict[str, Traversable]:
    """Return every proof page by its path in the package, as results name it."""
    return dict(_below(files("counterveil"), ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _below(entry, f"{path}{entry.name}/")
        elif entry.name.endswith(_PROOF):
            found.append((path + entry.name, entry))
    return found


_PROGRAM = (sys.executable, "-m", "counterveil", "federation")
_EPSILON = "1"
_POLICY: dict[str, Any] = {
    "estimators": ["difference_in_means"],
    "study_epsilon": _EPSILON,
    "min_rows": 100,
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
    from counterveil.data.progress import Waiting
    from counterveil.datasets import lalonde
    from counterveil.report.text import wrapped

    folder.mkdir(parents=True, exist_ok=True)
    training = lalonde()
    told = [f"{training.name}: {training.source}", training.notes, "Only outcomes are private here."]
    print("\n".join(line for each in told for line in wrapped(each)) + "\n")
    ledger = folder / "ledger.db"
    with cv.open_ledger(ledger, create=True) as book:
        book.register("lalonde", cv.Budget(epsilon=3))
        # Of public people, so their treatment and covariates may be shown.
        book.publish("lalonde", training.study.public_columns("outcome"))
    with cv.Session(training.frame, training.study, ledger=ledger, dataset="lalonde") as session:
        # A named request: run again, the demo gets the stored answer free of charge.
        with Waiting("estimating"):
            result = session.ate(protects="outcome", epsilon=1, request_id="demo")
        report = result.to_html(folder / "report.html")
        print(result)
        print(f"\nReport written to {report}\n")
        print_accounts(session.ledger)


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
        raise SystemExit(code)


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
    from counterveil.federation.engines.flower.wire import free_port, prepare
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
