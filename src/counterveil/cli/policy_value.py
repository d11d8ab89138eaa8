"""`counterveil policy-value`: what a stored rule gains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterveil.cli.showing import show


def policy_value(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file.")],
    study: Annotated[Path, typer.Option(help="The study file (TOML): roles, public bounds, categories.")],
    policy: Annotated[
        Path,
        typer.Option(help="A rule written by Policy.save, or an effect written by CateModel.save."),
    ],
    epsilon: Annotated[str, typer.Option(help="Privacy loss to spend, exact: 0.1 or 1/10.")],
    cost: Annotated[str, typer.Option(help="What treating one person costs, in units of the outcome.")] = "0",
    protects: Annotated[str, typer.Option(help='"record": everything about a person.')] = "record",
    delta: Annotated[str, typer.Option(help="0 for a pure guarantee.")] = "0",
    method: Annotated[str, typer.Option(help='"auto", "scores" or "adjusted".')] = "auto",
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    ledger: Annotated[str | None, typer.Option(help="Ledger file or PostgreSQL URL to charge.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Account in the ledger.")] = None,
    request_id: Annotated[
        str | None, typer.Option(help="Name of this request; asked again, it is answered again at no cost.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate what treating whom a rule names gains, over nobody and over everybody."""
    import counterveil as cv
    from counterveil.estimators import stored_policy

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
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
    )
    show(result, report, as_json)
