"""`counterveil arms`: private effects of several arms against a reference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.showing import show


def arms(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file.")],
    study: Annotated[Path, typer.Option(help="The study file (TOML), with arms and reference.")],
    protects: Annotated[str, typer.Option(help='"outcome": who is in which arm is public.')],
    epsilon: Annotated[str, typer.Option(help="Privacy loss to spend on all arms together, exact.")],
    delta: Annotated[str, typer.Option(help="0 for a pure guarantee.")] = "0",
    method: Annotated[
        str, typer.Option(help='"auto", "difference_in_means", "weighting" or "matching".')
    ] = "auto",
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
    """Estimate the private effects of several arms against a reference."""
    import counterveil as cv

    result = cv.arms(
        data,
        cv.Study.from_toml(study),
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
