"""`counterveil arms`: private effects of several arms against a reference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.charging import charging
from counterveil.cli.options import (
    Account,
    Analyst,
    AnchorPlace,
    AsJson,
    DataFile,
    Delta,
    Law,
    LedgerPlace,
    Level,
    Report,
    RequestId,
)
from counterveil.cli.showing import check_target, show


def arms(
    data: DataFile,
    study: Annotated[Path, typer.Option(help="The study file (TOML), with arms and reference.")],
    protects: Annotated[str, typer.Option(help='"outcome": who is in which arm is public.')],
    epsilon: Annotated[str, typer.Option(help="Privacy loss to spend on all arms together, exact.")],
    delta: Delta = "0",
    method: Annotated[
        str, typer.Option(help='"auto", "difference_in_means", "weighting" or "matching".')
    ] = "auto",
    level: Level = 0.95,
    law: Law = None,
    ledger: LedgerPlace = None,
    anchor: AnchorPlace = None,
    dataset: Account = None,
    request_id: RequestId = None,
    analyst: Analyst = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the private effects of several arms against a reference."""
    import counterveil as cv

    check_target(report)
    with charging(ledger, dataset, request_id, anchor, analyst) as charged:
        result = cv.arms(
            data,
            cv.Study.from_toml(study),
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            law=law,
            **charged.arguments,
        )
        show(result, report, as_json, charged)
