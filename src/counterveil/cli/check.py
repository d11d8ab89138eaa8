"""`counterveil check`: whether data fit a study file, before anything is asked of them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.options import AsJson, StudyFile
from counterveil.cli.showing import say

if TYPE_CHECKING:
    from counterveil.data import Study

_WIDER = 8  # how many widths of a range values are looked at beyond either bound
_MANY = 0.1


def check(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet or DuckDB file, or a PostgreSQL URL.")],
    study: StudyFile,
    table: Annotated[str | None, typer.Option(help="Table of the database.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether the data fit the study file; spends nothing, and speaks to the holder of the data alone.

    What it prints depends on the rows: do not publish it, and do not fit ranges to it.
    """
    import counterveil as cv
    from counterveil.data import check_columns, open_table, source_in_database
    from counterveil.report.text import wrapped

    declared = cv.Study.from_toml(study)
    source = open_table(data, table)
    rows, clamped = None, []
    if source_in_database(source):
        check_columns(source, declared)
    else:
        rows = cv.Table.attach(source, declared).rows
        clamped = _often_clamped(source, declared)
    lines = [f"the data fit the study: {_columns(declared)}"]
    lines += [f"{rows} rows" if rows is not None else "in a database: only its columns were looked at"]
    lines += [
        f"LOOK AGAIN: more than a tenth of '{name}' lies outside its declared range and is clamped to it; compare "
        "the unit with the code book, and do not fit the range to the data"
        for name in clamped
    ]
    text = "\n".join(line for each in lines for line in wrapped(each))
    say({"fits": True, "rows": rows, "often_clamped": clamped}, text, as_json)


def _columns(study: Study) -> str:
    listed = ", ".join(study.covariates) or "none"
    return f"treatment {study.treatment}, outcome {study.outcome}, covariates: {listed}"


def _often_clamped(source: object, study: Study) -> list[str]:
    """Return the numeric columns of which many values lie outside their range: mostly a wrong unit."""
    import numpy as np

    import counterveil as cv

    ranges = {study.outcome: study.outcome_range} | {
        name: (domain.lo, domain.hi)
        for name, domain in study.covariates.items()
        if isinstance(domain, cv.Range)
    }
    seen = cv.Table.attach(source, _wider(study, ranges))
    outcome = seen.outcome * float(seen.outcome_unit) + float(seen.study.outcome_range[0])
    found = []
    for name, (low, high) in ranges.items():
        values = outcome if name == study.outcome else seen.covariates[name]
        # Outcomes are rounded down to a grid, which is finer than this.
        slack = float(high - low) * 1e-5
        if np.mean((values < float(low) - slack) | (values > float(high) + slack)) > _MANY:
            found.append(name)
    return found


def _wider(study: Study, ranges: dict[str, tuple[Fraction, Fraction]]) -> Study:
    """Return the study with ranges so wide that values outside the declared ones can be told apart."""
    import counterveil as cv

    wide = {
        name: [str(low - _WIDER * (high - low)), str(high + _WIDER * (high - low))]
        for name, (low, high) in ranges.items()
    }
    facts: dict[str, Any] = study.to_dict()
    covariates = {
        name: {"range": wide[name]} if name in wide else domain
        for name, domain in facts.get("covariates", {}).items()
    }
    return cv.Study.from_dict(facts | {"outcome_range": wide[study.outcome], "covariates": covariates})
