"""The commands about regressions: moments, which spends, and regress and compliance, which read what it released."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from counterveil.cli.options import AsJson, Out, argument, option
from counterveil.cli.requests import CommandRequest, question, show

Released = Annotated[Path, argument("MOMENTS", "Moments written by `counterveil moments --out`.")]
SomeLevel = Annotated[
    float | None, option("NUMBER", "Confidence level of the intervals; the moments' own if omitted.")
]


@question("mechanism", without=("method", "report"), protects="record")
def moments(
    request: CommandRequest,
    outcomes: Annotated[
        list[str] | None,
        option(
            "NAME", "A covariate that is an outcome or a received treatment; may be repeated.", "--outcome"
        ),
    ] = None,
    terms: Annotated[
        list[str] | None,
        option("TERM", 'Released too: "a:b", "I(a**2)" or "log(a)"; may be repeated.', "--term"),
    ] = None,
    robust: Annotated[
        list[str] | None,
        option("FORMULA", "A regression that is asked with HC1 errors; may be repeated.", "--robust"),
    ] = None,
    out: Out = None,
) -> None:
    """Release second moments of all columns, for regressions that cost nothing.

    One epsilon pays for every regression among the columns: see `counterveil regress`.
    """
    import counterveil as cv

    found = cv.moments(
        request.given["data"],
        request.study,
        outcomes=outcomes or [],
        terms=terms or [],
        robust=robust or [],
        **request.arguments,
    )
    # Printed first: what was paid for is not lost if the file cannot be written.
    request.show(found)
    if out is not None:
        found.save(out)


def regress(
    moments: Released,
    formula: Annotated[
        str, argument("FORMULA", '"y ~ treat + age", or with instruments "y ~ age + [dose ~ offer]".')
    ],
    level: SomeLevel = None,
    cov_type: Annotated[
        str, option("KIND", '"nonrobust", or "HC1" for regressions that moments --robust named.')
    ] = "nonrobust",
    as_json: AsJson = False,
) -> None:
    """Regress a released column on others.

    Least squares, or two-stage least squares with instruments in brackets. The moments were paid for when they were
    released; regressions cost nothing.
    """
    import counterveil as cv

    show(cv.results.Moments.load(moments).regress(formula, level, cov_type=cov_type), None, as_json)


def compliance(
    moments: Released,
    received: Annotated[str, option("NAME", "The column that says who received the treatment.")],
    assigned: Annotated[
        str | None, option("NAME", "The column that was randomised; the study's treatment if omitted.")
    ] = None,
    outcome: Annotated[str | None, option("NAME", "The study's outcome if omitted.")] = None,
    controls: Annotated[
        list[str] | None, option("NAME", "A column to adjust for; may be repeated.", "--control")
    ] = None,
    level: SomeLevel = None,
    as_json: AsJson = False,
) -> None:
    """Effects of an assignment and, for those who comply, of what they received.

    Intention to treat, take-up and complier effect from one release of moments. Nothing is spent.
    """
    import counterveil as cv

    found = cv.results.Moments.load(moments)
    show(
        found.compliance(received, assigned=assigned, outcome=outcome, controls=controls or (), level=level),
        None,
        as_json,
    )
