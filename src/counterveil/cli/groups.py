"""`counterveil groups`: private effects of public groups."""

from __future__ import annotations

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
    Protects,
    Report,
    RequestId,
    StudyFile,
)
from counterveil.cli.showing import check_target, show


def groups(
    data: DataFile,
    study: StudyFile,
    by: Annotated[
        list[str],
        typer.Option(help="A covariate, or one with cut points: age=40,65; repeat it to cross them."),
    ],
    protects: Protects,
    epsilon: Annotated[str, typer.Option(help="Privacy loss to spend on all groups together, exact.")],
    delta: Delta = "0",
    method: Annotated[str, typer.Option(help='"auto" or a form; a wrong name lists them.')] = "auto",
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
    """Estimate the private effects of public groups."""
    import counterveil as cv

    check_target(report)
    with charging(ledger, dataset, request_id, anchor, analyst) as charged:
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
            **charged.arguments,
        )
        show(result, report, as_json, charged)


def _cut(words: list[str]) -> dict[str, list[str] | None]:
    """Return covariates and their cut points from words such as "site" and "age=40,65"."""
    found: dict[str, list[str] | None] = {}
    for word in words:
        name, sign, points = word.partition("=")
        found[name.strip()] = [point.strip() for point in points.split(",")] if sign else None
    return found
