"""`counterveil groups`: private effects of public groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.showing import show


def groups(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file.")],
    study: Annotated[Path, typer.Option(help="The study file (TOML): roles, public bounds, categories.")],
    by: Annotated[
        list[str],
        typer.Option(help="A covariate, or one with cut points: age=40,65; repeat it to cross them."),
    ],
    protects: Annotated[str, typer.Option(help='"outcome" or "record": what is kept secret.')],
    epsilon: Annotated[str, typer.Option(help="Privacy loss to spend on all groups together, exact.")],
    delta: Annotated[str, typer.Option(help="0 for a pure guarantee.")] = "0",
    method: Annotated[str, typer.Option(help='"auto" or the name of a form.')] = "auto",
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    law: Annotated[str | None, typer.Option(help="Law of the noise; chosen when left out.")] = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL URL to charge.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Account in the ledger.")] = None,
    request_id: Annotated[
        str | None, typer.Option(help="Name of this request; asked again, it is answered again at no cost.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate the private effects of public groups."""
    import counterveil as cv

    result = cv.groups(
        data,
        cv.Study.from_toml(study),
        by=_cut(by),
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        level=level,
        law=law,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
    )
    show(result, report, as_json)


def _cut(words: list[str]) -> dict[str, list[str] | None]:
    """Return covariates and their cut points from words such as "site" and "age=40,65"."""
    found: dict[str, list[str] | None] = {}
    for word in words:
        name, sign, points = word.partition("=")
        found[name] = [point.strip() for point in points.split(",")] if sign else None
    return found
