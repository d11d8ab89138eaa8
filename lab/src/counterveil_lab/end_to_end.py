"""From OMOP tables of three hospitals to pooled survival and output checks: `python -m counterveil_lab.end_to_end`.

Every step is the command that a steward or an analyst would type. Hospitals run as processes of their own over TLS.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

from counterveil_lab import omop

HOSPITALS = {"North": 6000, "South": 4500, "West": 3000}
EPSILON = "1"
_PROGRAM = (sys.executable, "-m", "counterveil")
# Seconds; far more than an idle machine needs.
_DEADLINE = 280
_SPECIFICATION = f"""target = {omop.TARGET}
comparator = {omop.COMPARATOR}
outcome = {omop.OUTCOME}
washout = 180
prior_outcome = "ever"
both = "first"
time_at_risk = {{ start = 1, end = 365 }}
kind = "survival"

[covariates]
age = {{ from = "age", range = [40, 80], cuts = [50, 60, 70] }}
diabetes = {{ from = "condition", concepts = [{omop.DIABETES}], days = [-365, -1] }}
"""


def run(folder: Path, people: dict[str, int] | None = None) -> None:
    """Write all into a new folder: tables, studies, ledgers, the pooled report, and what leaves each hospital."""
    begin = time.monotonic()
    folder.mkdir(parents=True)
    specification = folder / "comparison.toml"
    specification.write_text(_SPECIFICATION, encoding="utf-8")
    hospitals = HOSPITALS if people is None else people
    for seed, (name, size) in enumerate(hospitals.items()):
        _hospital(folder, name, size, seed)
    declaration = folder / "declaration.toml"
    first = folder / f"{next(iter(hospitals))}.duckdb"
    _call("omop", first, "--specification", specification, "--study-out", declaration)
    _federation(folder, declaration, specification, list(hospitals))
    _asked(folder, list(hospitals))
    for name in hospitals:
        for form in ("sacro", "registry"):
            _call("export", folder / name / "ledger.db", folder / "out" / name / form, "--format", form)
    print(f"Everything is in {folder}; {time.monotonic() - begin:.0f} s")


def _hospital(folder: Path, name: str, people: int, seed: int) -> None:
    with duckdb.connect(str(folder / f"{name}.duckdb")) as connection:
        omop.written(connection, omop.tables(people, seed))


def _call(*words: str | Path) -> None:
    subprocess.run([*_PROGRAM, *map(str, words)], check=True)


def _federation(folder: Path, declaration: Path, specification: Path, names: Sequence[str]) -> None:
    """Create the study and its sites; each site reads rows that its own database makes."""
    from counterveil.federation.engines.flower.wire import free_port, prepare
    from counterveil.omop import cohort_study

    prepare(folder / "flower")
    address = f"127.0.0.1:{free_port()}"
    own: tuple[str | Path, ...] = ("--study", declaration, "--method", "stratified", "--protects", "record")
    sites = [word for name in names for word in ("--site", name)]
    _call(
        *(
            "federation",
            "coordinator",
            "create",
            folder / "study",
            "--id",
            "end-to-end",
            "--address",
            address,
        ),
        *(*own, "--question", "survival", "--epsilon", EPSILON, "--deadline", str(_DEADLINE), *sites),
    )
    for name in names:
        rows = folder / f"{name}.parquet"
        cohort_study(folder / f"{name}.duckdb", specification).rows.write_parquet(str(rows))
        _call(
            *("federation", "site", "create", folder / name, "--name", name, "--data", rows.absolute(), *own),
            *(
                "--question",
                "survival",
                "--coordinator",
                address,
                "--epsilon",
                "3",
                "--study-epsilon",
                EPSILON,
            ),
            *("--authority", folder / "study" / "keys" / "ca.crt"),
        )
        # What a steward would send to the coordinator by a way that both trust.
        key = (folder / name / "keys" / "node.pub").read_bytes()
        (folder / "study" / "sites" / f"{name}.pub").write_bytes(key)


def _asked(folder: Path, names: Sequence[str]) -> None:
    """Ask all sites once and write the pooled report."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name in names:
            with (folder / f"{name}.log").open("ab") as log:
                words = [*_PROGRAM, "federation", "site", "run", str(folder / name)]
                running.append(subprocess.Popen(words, stdout=log, stderr=log))
        _call("federation", "coordinator", "run", folder / "study", "--report", folder / "pooled.html")
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


if __name__ == "__main__":
    run(Path(sys.argv[1] if len(sys.argv) > 1 else "end-to-end"))
