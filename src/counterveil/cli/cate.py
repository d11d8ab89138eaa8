"""`counterveil cate`: the effect as a function of the covariates; `counterveil effect`: reading it off."""

from __future__ import annotations

import json
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
    LedgerPlace,
    RequestId,
    StudyFile,
)
from counterveil.cli.showing import check_target, say


def cate(
    data: DataFile,
    study: StudyFile,
    epsilon: Annotated[str, typer.Option(help="Privacy loss to spend on the whole function, exact.")],
    delta: Annotated[
        str | None, typer.Option(help="Left out: the smaller of 1e-6 and 1/(10 n); 0 for a pure guarantee.")
    ] = None,
    method: Annotated[str, typer.Option(help='"auto" or an estimator; a wrong name lists them.')] = "auto",
    level: Annotated[float, typer.Option(help="Confidence level of intervals and bands.")] = 0.95,
    ledger: LedgerPlace = None,
    anchor: AnchorPlace = None,
    dataset: Account = None,
    request_id: RequestId = None,
    analyst: Analyst = None,
    out: Annotated[Path | None, typer.Option(help="Write the function to this file (JSON, no data).")] = None,
    as_json: AsJson = False,
) -> None:
    """Release the private effect as a function of the covariates."""
    import counterveil as cv

    check_target(out)
    with charging(ledger, dataset, request_id, anchor, analyst) as charged:
        model = cv.cate(
            data,
            cv.Study.from_toml(study),
            epsilon=epsilon,
            delta=delta,
            method=method,
            level=level,
            **charged.arguments,
        )
        # Said first: what was paid for is not lost where the file cannot be written.
        say(model.to_dict(), str(model), as_json, charged)
        if out is not None:
            model.save(out)


def effect(
    model: Annotated[Path, typer.Argument(help="A function that `counterveil cate --out` wrote.")],
    rows: Annotated[str, typer.Argument(help="People to ask about: a CSV or Parquet file of covariates.")],
    level: Annotated[
        float | None, typer.Option(help="Confidence level; that of the function if left out.")
    ] = None,
    band: Annotated[bool, typer.Option(help="Intervals that hold for all rows together.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read effects off a released function; costs nothing."""
    import counterveil as cv

    found = cv.CateModel.load(model)
    values = found.effect(rows)
    low, high = (found.band if band else found.interval)(rows, level)
    lines = [
        {"effect": float(value), "low": float(one), "high": float(two)}
        for value, one, two in zip(values, low, high, strict=True)
    ]
    first = [text for text in (found.guarantee.warning, found.caution) if text]
    if as_json:
        print(json.dumps({"notes": first, "level": level or found.level, "effects": lines}, indent=2))
        return
    for text in first:
        print(f"*** {text} ***")
    print("effect,low,high")
    for line in lines:
        print(f"{line['effect']:.6g},{line['low']:.6g},{line['high']:.6g}")
