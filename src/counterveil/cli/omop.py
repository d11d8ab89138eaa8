"""The command for cohorts in OMOP tables: it writes their study, and with a budget answers the question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from counterveil.cli.program import argument, option
from counterveil.cli.requests import CommandRequest, check_target, question
from counterveil.errors import refusal


@question(
    "estimand",
    "mechanism",
    "setting",
    "measure",
    without=("data", "study", "where"),
    protects=None,
    epsilon=None,
)
def omop(
    request: CommandRequest,
    database: Annotated[str, argument("DATABASE", "A DuckDB file or a PostgreSQL URL.")],
    specification: Annotated[
        Path, option("FILE", "Cohorts, time at risk, exclusions and covariates (TOML).")
    ],
    schema: Annotated[str | None, option("NAME", "Schema of the OMOP tables.")] = None,
    cohort_schema: Annotated[
        str | None, option("NAME", "Schema of the table `cohort`; that of the others if omitted.")
    ] = None,
    study_out: Annotated[
        Path | None, option("FILE", "Also write the study file, for `counterveil ledger access-policy`.")
    ] = None,
) -> None:
    """Compare two cohorts in OMOP tables: an effect, or survival curves if the specification says so.

    One row is made of each person, in the database. Who is eligible, and so their number, is public by declaration.
    Without --epsilon only tables and columns are checked and the study file is printed: no row is read.
    """
    import counterveil as cv

    check_target(study_out)
    found = cv.omop.cohort_study(database, specification, schema, cohort_schema)
    if study_out is not None:
        study_out.write_text(found.study.to_toml(), encoding="utf-8")
    given = request.arguments
    if given["epsilon"] is None:
        request.waiting.close()
        print(found.study.to_toml().rstrip())
        return
    request.publish(found.study)
    if found.study.event is None:
        request.show(cv.ate(found.rows, found.study, **given))
        return
    estimand, measure = given.pop("estimand"), given.pop("measure")
    if estimand is not None or measure != "difference":
        expected = '--estimand and --measure with kind = "binary"'
        raise refusal("CV-D900", expected=expected, got='kind = "survival"')
    request.show(cv.survival(found.rows, found.study, **given))
