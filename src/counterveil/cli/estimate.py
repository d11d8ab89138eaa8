"""`counterveil estimate`: one private effect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.showing import show


def estimate(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet or DuckDB file, or a PostgreSQL URL.")],
    study: Annotated[Path, typer.Option(help="The study file (TOML): roles, public bounds, categories.")],
    protects: Annotated[str, typer.Option(help='"outcome" or "record": what is kept secret.')],
    epsilon: Annotated[str, typer.Option(help="Privacy loss to spend, exact: 0.1 or 1/10.")],
    delta: Annotated[str, typer.Option(help="0 for a pure guarantee.")] = "0",
    method: Annotated[str, typer.Option(help='"auto" or the name of an estimator.')] = "auto",
    estimand: Annotated[str, typer.Option(help='"ATE", "ATT" or "ATC".')] = "ATE",
    level: Annotated[float, typer.Option(help="Confidence level of the interval.")] = 0.95,
    law: Annotated[str | None, typer.Option(help="Law of the noise; chosen when left out.")] = None,
    variant: Annotated[str | None, typer.Option(help='"paper" for a published form.')] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method, NAME=VALUE; may be repeated.")
    ] = None,
    accept: Annotated[
        str | None, typer.Option(help='"unproved": accept a form without a finite-sample guarantee.')
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL URL to charge.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Account in the ledger.")] = None,
    request_id: Annotated[
        str | None, typer.Option(help="Name of this request; asked again, it is answered again at no cost.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Table of the database; it is added up there.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate the private average effect of a treatment."""
    import counterveil as cv
    from counterveil.data import open_table
    from counterveil.estimators import settings_from_text

    result = cv.ate(
        open_table(data, table),
        cv.Study.from_toml(study),
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        estimand=estimand,
        level=level,
        law=law,
        variant=variant,
        settings=settings_from_text(method, setting or [], protects),
        accept=accept,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
    )
    show(result, report, as_json)
