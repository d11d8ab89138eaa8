"""`counterveil check`: whether data fit a study file, before anything is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from counterveil.cli.options import AsJson, StudyFile
from counterveil.cli.showing import say

if TYPE_CHECKING:
    from counterveil.data import Study


def check(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet or DuckDB file, or a PostgreSQL URL.")],
    study: StudyFile,
    table: Annotated[str | None, typer.Option(help="Table of the database.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether the data fit the study file, as every question does first; spends nothing.

    Nothing is said about values: whether ranges suit them is private.
    """
    import counterveil as cv
    from counterveil.data import check_columns, open_table, source_in_database
    from counterveil.report.text import wrapped

    declared = cv.Study.from_toml(study)
    source = open_table(data, table)
    if source_in_database(source):
        check_columns(source, declared)
        rows, seen = None, "in a database: only its columns were looked at"
    else:
        rows = cv.Table.attach(source, declared).rows
        seen = f"{rows} rows"
    lines = [f"the data fit the study: {_columns(declared)}", seen]
    text = "\n".join(line for each in lines for line in wrapped(each))
    say({"fits": True, "rows": rows}, text, as_json)


def _columns(study: Study) -> str:
    listed = ", ".join(study.covariates) or "none"
    return f"treatment {study.treatment}, outcome {study.outcome}, covariates: {listed}"
