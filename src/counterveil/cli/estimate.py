"""`counterveil estimate`: one private effect."""

from __future__ import annotations

from typing import Annotated

import typer

from counterveil.cli.charging import charging
from counterveil.cli.options import (
    Account,
    Analyst,
    AnchorPlace,
    AsJson,
    Delta,
    Epsilon,
    Law,
    LedgerPlace,
    Method,
    Protects,
    Report,
    RequestId,
    Settings,
    StudyFile,
    Target,
)
from counterveil.cli.showing import check_target, show


def estimate(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet or DuckDB file, or a PostgreSQL URL.")],
    study: StudyFile,
    protects: Protects,
    epsilon: Epsilon,
    delta: Delta = "0",
    method: Method = "auto",
    estimand: Target = "ATE",
    level: Annotated[float, typer.Option(help="Confidence level of the interval.")] = 0.95,
    law: Law = None,
    variant: Annotated[str | None, typer.Option(help='"paper" for a published form.')] = None,
    setting: Settings = None,
    accept: Annotated[
        str | None, typer.Option(help='"unproved": accept a form without a finite-sample guarantee.')
    ] = None,
    ledger: LedgerPlace = None,
    anchor: AnchorPlace = None,
    dataset: Account = None,
    request_id: RequestId = None,
    analyst: Analyst = None,
    table: Annotated[str | None, typer.Option(help="Table of the database; it is added up there.")] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the private average effect of a treatment."""
    import counterveil as cv
    from counterveil.data import open_table
    from counterveil.questions import settings_from_text

    check_target(report)
    with charging(ledger, dataset, request_id, anchor, analyst) as charged:
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
            **charged.arguments,
        )
        show(result, report, as_json, charged)
