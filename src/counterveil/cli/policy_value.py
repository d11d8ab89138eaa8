"""`counterveil policy-value`: what a stored rule gains."""

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
    Epsilon,
    LedgerPlace,
    Level,
    Report,
    RequestId,
    StudyFile,
)
from counterveil.cli.showing import check_target, show


def policy_value(
    data: DataFile,
    study: StudyFile,
    policy: Annotated[
        Path,
        typer.Option(help="A rule written by Policy.save, or an effect written by CateModel.save."),
    ],
    epsilon: Epsilon,
    cost: Annotated[
        str | None,
        typer.Option(help="What treating one person costs, in units of the outcome; as the rule says, or 0."),
    ] = None,
    protects: Annotated[str, typer.Option(help='"record": everything about a person.')] = "record",
    delta: Delta = "0",
    method: Annotated[str, typer.Option(help='"auto", "scores" or "adjusted".')] = "auto",
    level: Level = 0.95,
    ledger: LedgerPlace = None,
    anchor: AnchorPlace = None,
    dataset: Account = None,
    request_id: RequestId = None,
    analyst: Analyst = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Estimate what treating whom a rule names gains, over nobody and over everybody."""
    import counterveil as cv
    from counterveil.questions import stored_policy

    check_target(report)
    with charging(ledger, dataset, request_id, anchor, analyst) as charged:
        result = cv.policy_value(
            data,
            cv.Study.from_toml(study),
            policy=stored_policy(policy, cost),
            cost=cost,
            protects=protects,
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            **charged.arguments,
        )
        show(result, report, as_json, charged)
