"""The commands that answer questions: effects, arms, groups, functions, policies, regressions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from counterveil.cli.program import argument, option
from counterveil.cli.requests import (
    AsJson,
    CommandRequest,
    Given,
    Level,
    Out,
    Report,
    check_report,
    options,
    question,
    shared,
    show,
    values_of,
)


@question("estimand", "mechanism", "setting", "trim", "measure", "table")
def estimate(request: CommandRequest) -> None:
    """Estimate the average effect of a treatment."""
    request.ask("ate")


@question("estimand", "mechanism", "setting", without=("epsilon", "delta", "level", "request_id"))
def look(
    request: CommandRequest,
    number: Annotated[int, option("INTEGER", "Which of the planned analyses, from 1 on.", reads=int)],
) -> None:
    """Estimate the effect at a planned interim analysis.

    The access policy plans the looks (`counterveil ledger access-policy --looks`). Their intervals cover
    together. A look that was answered before costs nothing.
    """
    import counterveil as cv
    from counterveil.accounting.access_policy import request_of

    study, book = request.study, request.charged.ledger
    if book is None:
        raise cv.interim.no_plan()
    name = request_of(study.outcome, number)
    dataset = request.charged.dataset or book.datasets()[0].dataset
    before = book.state_of(dataset, name) == "answered"
    asked = {key: value for key, value in request.arguments.items() if key != "request_id"}
    request.publish(study)
    found = cv.interim.look(request.given["data"], study, number=number, **asked)
    charged = replace(request.charged, request_id=name, answered_before=before)
    replace(request, charged=charged).show(found)


@question("mechanism")
def arms(request: CommandRequest) -> None:
    """Estimate the effects of several treatment arms against a reference arm.

    The study file declares the arms and the reference. One epsilon pays for all arms.
    """
    request.ask("arms")


@question("estimand", "mechanism", "setting")
def event_study(
    request: CommandRequest,
    reference: Annotated[
        str | None, option("PERIOD", "A period before treatment; the last one if omitted.")
    ] = None,
) -> None:
    """Estimate the effects in every period of a study of changes, relative to a reference period.

    One epsilon pays for all periods.
    """
    from counterveil.data.domains import LabelIndex

    before = request.study.before
    known = () if before is None else before.labels(request.study.outcome)
    place = None if reference is None else LabelIndex(known).code(reference)
    chosen = reference if place is None else known[place]
    request.ask("event_study", reference=chosen)


@question("mechanism", "setting")
def survival(request: CommandRequest) -> None:
    """Estimate survival curves, their difference, restricted means and the log-rank test.

    The study file declares the time as its outcome, `event`, and `horizon` or `grid`. One epsilon pays for everything.
    """
    request.ask("survival")


@question("mechanism")
def quantiles(
    request: CommandRequest,
    probs: Annotated[
        list[float] | None,
        option(
            "NUMBER",
            "Probability of a quantile to compare, 0.5 for the median; quartiles if omitted. May be repeated.",
            "--prob",
            reads=float,
        ),
    ] = None,
    even: Annotated[
        bool,
        option(
            "", "Even cells over the whole range; else a fifth is spent on where outcomes lie.", "--even-grid"
        ),
    ] = False,
) -> None:
    """Estimate differences of both arms' quantiles, from one release of their distributions."""
    asked = tuple(probs) if probs else (0.25, 0.5, 0.75)
    request.ask("quantiles", probs=asked, grid="even" if even else "found")


@question("mechanism")
def groups(
    request: CommandRequest,
    by: Annotated[
        list[str],
        option(
            "NAME[=CUTS]",
            "A covariate, with cut points if it is a number: age=40,65. May be repeated: several are crossed.",
        ),
    ],
) -> None:
    """Estimate the effects in subgroups defined by covariates.

    One epsilon pays for all subgroups.
    """
    request.ask("groups", by=cut_points(by))


@question()
def cate(request: CommandRequest, out: Out = None) -> None:
    """Estimate the effect as a function of the covariates (CATE).

    One epsilon pays for the whole function.
    """
    request.ask("cate", out)


@question("estimand", "mechanism", "measure", "table")
def outcomes(
    request: CommandRequest,
    importance: Annotated[
        list[str] | None,
        option(
            "NAME=NUMBER",
            "An outcome whose noise is to be smaller by this factor than the others'. May be repeated.",
        ),
    ] = None,
) -> None:
    """Estimate the effects on all outcomes of a study file with [outcomes], the primary one first.

    One epsilon pays for all outcomes.
    """
    estimand = request.given["estimand"] or "ATE"
    request.ask("outcomes", importance=by_name(importance), estimand=estimand)


@question("mechanism", without=("method",))
def overlap(request: CommandRequest) -> None:
    """Summarise how alike the arms are when whole records are private.

    Standardised differences of the covariates and shares treated along a released score, each with an interval.
    At outcome level both are free: see the report of `estimate`.
    """
    request.ask("overlap")


@question()
def policy_value(
    request: CommandRequest,
    policy: Annotated[
        Path,
        option(
            "FILE", "A policy written by Policy.save, or an effect model written by `counterveil cate --out`."
        ),
    ],
    cost: Annotated[
        str | None,
        option(
            "NUMBER",
            "Cost of treating one person, in units of the outcome; the policy's own, or 0, if omitted.",
        ),
    ] = None,
) -> None:
    """Estimate the value of a treatment policy against treating nobody and treating everybody."""
    from counterveil.questions.policy import stored_policy

    request.ask("policy_value", policy=stored_policy(policy, cost), cost=cost)


def cut_points(words: list[str]) -> dict[str, list[str] | None]:
    """Return covariates and their cut points from words such as "site" and "age=40,65"."""
    found: dict[str, list[str] | None] = {}
    for word in words:
        name, sign, points = word.partition("=")
        found[name.strip()] = [point.strip() for point in points.split(",")] if sign else None
    return found


def by_name(words: list[str] | None) -> dict[str, str] | None:
    """Return texts by name from words such as "death=2", None where there are none."""
    return {name: text for name, _, text in (word.rpartition("=") for word in words or [])} or None


def effect(
    model: Annotated[Path, argument("MODEL", "An effect model written by `counterveil cate --out`.")],
    rows: Annotated[str, argument("ROWS", "A CSV or Parquet file with the covariates of people.")],
    level: Annotated[
        float | None,
        option("NUMBER", "Confidence level of the intervals; the model's own if omitted.", reads=float),
    ] = None,
    band: Annotated[
        bool, option("", "Simultaneous intervals, which hold for all rows together.", "--band")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a released effect model for given people.

    The model was paid for when it was released; evaluating it costs nothing.
    """
    import counterveil as cv

    found = cv.results.CateModel.load(model)
    values = found.effect(rows)
    low, high = (found.band if band else found.interval)(rows, level)
    lines = [
        {"effect": float(value), "low": float(one), "high": float(two)}
        for value, one, two in zip(values, low, high, strict=True)
    ]
    first = [text for text in (found.guarantee.warning, found.warning) if text]
    if as_json:
        print(json.dumps({"notes": first, "level": level or found.level, "effects": lines}, indent=2))
        return
    for text in first:
        print(f"*** {text} ***")
    print("effect,low,high")
    for line in lines:
        print(f"{line['effect']:.6g},{line['low']:.6g},{line['high']:.6g}")


_CONFOUNDER = options(
    float | None,
    "NUMBER",
    treatment_r2="Share that a confounder explains of the residual variance of the treatment.",
    outcome_r2="Share that it explains of the residual variance of the outcome.",
    baseline="Mean outcome of untreated people, from public sources; E-values are then exact ratios.",
    outcome_sd="Standard deviation of outcomes, from public sources.",
    level="Confidence level of the intervals; the result's own if omitted.",
)


@shared("report", "as_json", more=_CONFOUNDER)
def sensitivity(
    given: Given,
    result: Annotated[
        Path, argument("RESULT", "A result as `estimate`, `arms`, `groups` or `pool` print it with --json.")
    ],
) -> None:
    """How strong must unmeasured confounding be to explain a released effect away?

    E-values, robustness values and bounds on bias are computed from released numbers. No data are read and nothing
    is spent.
    """
    from counterveil.results.effect import load, no_effects

    report, as_json = given.pop("report"), given.pop("as_json")
    check_report(report)
    found = load(result, _read_answer, lambda got: no_effects(got, "`counterveil estimate --json`"))
    show(found.sensitivity(**given), report, as_json)


def _read_answer(facts: dict[str, Any]) -> Any:
    """Return the result that was written: of several arms, of groups, pooled, or of one effect."""
    from counterveil import results
    from counterveil.questions.pooling.effects import PooledNumberNeededToTreat, PooledResult
    from counterveil.questions.pooling.measures import PooledMeasure
    from counterveil.questions.pooling.tables import PooledTable
    from counterveil.results.effect import kind_of

    names = ("Result", "MeasureResult", "RatioResult", "ArmsResult", "GroupsResult", "OutcomesResult")
    kinds = {name: getattr(results, name) for name in names}
    kinds |= {
        kind.__name__: kind for kind in (PooledResult, PooledMeasure, PooledNumberNeededToTreat, PooledTable)
    }
    return kind_of(facts, kinds).from_dict(facts)


def pool(
    files: Annotated[
        list[Path], argument("FILES", "Results of the sites, as `counterveil estimate --json` prints them.")
    ],
    method: Annotated[
        str,
        option("NAME", '"mvagg", "ivw", "all", "largest" or "random_effects".', values=values_of("method")),
    ] = "mvagg",
    level: Level = 0.95,
    max_weight: Annotated[
        float | None,
        option(
            "NUMBER",
            "Largest weight of one site; the variances that sites report are then ignored.",
            reads=float,
        ),
    ] = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Pool the released effects of several sites.

    No data are read and nothing is spent.
    """
    import counterveil as cv

    check_report(report)
    bounds = None if max_weight is None else cv.settings.WeightLimits(max_weight)
    show(cv.pool(files, method=method, level=level, weight_limits=bounds), report, as_json)


Released = Annotated[Path, argument("MOMENTS", "Moments written by `counterveil moments --out`.")]
SomeLevel = Annotated[
    float | None,
    option("NUMBER", "Confidence level of the intervals; the moments' own if omitted.", reads=float),
]


@question("mechanism", without=("method", "report"))
def moments(
    request: CommandRequest,
    outcomes: Annotated[
        list[str] | None,
        option(
            "NAME", "A covariate that is an outcome or a received treatment. May be repeated.", "--outcome"
        ),
    ] = None,
    terms: Annotated[
        list[str] | None,
        option("TERM", 'Released too: "a:b", "I(a**2)" or "log(a)". May be repeated.', "--term"),
    ] = None,
    robust: Annotated[
        list[str] | None,
        option("FORMULA", "A regression that is asked with HC1 errors. May be repeated.", "--robust"),
    ] = None,
    out: Out = None,
) -> None:
    """Release second moments of all columns, for regressions that cost nothing.

    One epsilon pays for every regression among the columns: see `counterveil regress`.
    """
    request.ask("moments", out, outcomes=outcomes or [], terms=terms or [], robust=robust or [])


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
        list[str] | None, option("NAME", "A column to adjust for. May be repeated.", "--control")
    ] = None,
    level: SomeLevel = None,
    as_json: AsJson = False,
) -> None:
    """Effects of an assignment and, for those who comply, of what they received.

    Intention to treat, take-up and complier effect from one release of moments. Nothing is spent.
    """
    import counterveil as cv

    asked: dict[str, Any] = {
        "assigned": assigned,
        "outcome": outcome,
        "controls": controls or (),
        "level": level,
    }
    show(cv.results.Moments.load(moments).compliance(received, **asked), None, as_json)
