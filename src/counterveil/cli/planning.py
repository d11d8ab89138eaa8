"""The command `plan`: how wide intervals would be, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from counterveil.bounded_reading import written_float
from counterveil.cli.effects import by_name, cut_points
from counterveil.cli.requests import Given, Report, check_target, option, parameters, shared, show


def _assumed(text: str, *names: str, metavar: str = "NUMBER") -> Any:
    """Return an option that says what is assumed of the people of a planned study."""
    return option(metavar, text, *names, section="Assumptions")


Rows = Annotated[list[int], option("INTEGER", "Number of people in the planned study.")]
Epsilons = Annotated[list[str], option("NUMBER", "Privacy loss to try.")]
Question = Annotated[
    str,
    option(
        "NAME",
        '"ate", "arms", "outcomes", "groups", "event_study", "cate", "policy_value", "survival", "quantiles", '
        '"moments", "compliance" or "interim" (--rows at each analysis, --epsilon of all).',
    ),
]
Formula = Annotated[str | None, option("FORMULA", "A regression, as for `counterveil regress`, for moments.")]
Received = Annotated[
    str | None, option("NAME", "The covariate that says who received the treatment, for compliance.")
]
Importance = Annotated[list[str] | None, option("NAME=NUMBER", "As for `counterveil outcomes`.")]
Spending = Annotated[
    str, option("NAME", 'How looks divide the error: "obrien_fleming", "pocock" or "always_valid".')
]
Test = Annotated[
    str | None, option("NAME", 'A test: "superiority", "noninferiority" or "equivalence", with --margin.')
]
Margin = Annotated[float | None, option("NUMBER", "Margin of the test, in units of the effect.")]
Lower = Annotated[bool, option("", "A lower outcome is better, for --test.", "--lower-is-better")]
Power = Annotated[
    float | None, option("NUMBER", "Power of the test: the least epsilon and number of people are searched.")
]
By = Annotated[list[str] | None, option("NAME[=CUTS]", "Groups, as for `counterveil groups`.")]
PolicyFile = Annotated[Path | None, option("FILE", "A policy, as for `counterveil policy-value`.")]
Compare = Annotated[
    bool,
    option("", "Compare every method, and without --protects every level that could answer.", "--compare"),
]
HalfWidth = Annotated[
    float | None,
    option("NUMBER", "Wanted half-width: the least epsilon and the least number of people are searched."),
]
Draws = Annotated[int, option("INTEGER", "Number of simulated studies.")]
Seed = Annotated[int, option("INTEGER", "Seed of the simulation.")]
_NUMBERS = "[NAME=]NUMBER"
Effect = Annotated[
    list[str] | None,
    _assumed("Effect, in units of the outcome; 0 if omitted. Of several outcomes by name.", metavar=_NUMBERS),
]
Mean = Annotated[
    list[str] | None,
    _assumed("Mean outcome without treatment; the middle of the range if omitted.", metavar=_NUMBERS),
]
Sd = Annotated[
    list[str] | None,
    _assumed("Standard deviation of outcomes; a sixth of the range if omitted.", metavar=_NUMBERS),
]
Together = Annotated[
    float | None,
    _assumed(
        "Correlation of any two outcomes of a person, of an outcome with the number before it, or of a numerator with "
        "its denominator; 0.5 if omitted."
    ),
]
Denominator = Annotated[
    str | None,
    _assumed("Mean and standard deviation of denominators, for per.", metavar="MEAN,SD"),
]
Complying = Annotated[
    float | None, _assumed("Share of people who receive what they are assigned; 0.7 if omitted.")
]
BinaryOutcome = Annotated[
    bool | None,
    _assumed(
        "Binary outcome: one end of the range or the other; assumed if the range is 0 to 1.",
        "--binary/--no-binary",
        metavar="",
    ),
]
Explained = Annotated[
    float | None,
    _assumed("Share of the outcome variance explained by the covariates, 0 to 1; 0.2 if omitted."),
]
Confounding = Annotated[
    float | None,
    _assumed(
        "Standard deviation of the log-odds of treatment due to the covariates; if omitted 0.5, or 0 in a trial."
    ),
]
Correlation = Annotated[float | None, _assumed("Correlation of neighbouring covariates; 0.3 if omitted.")]
Share = Annotated[float | None, _assumed("Share treated; as declared in the study, or one half, if omitted.")]
Lost = Annotated[
    float | None,
    _assumed("Share of people lost from sight before the horizon, for survival; 0.2 if omitted."),
]
Sample = Annotated[
    str | None,
    _assumed("A public sample with the columns of the study, instead of all assumptions.", metavar="DATA"),
]


@shared(
    *(
        "study",
        "protects",
        "delta",
        "method",
        "estimand",
        "level",
        "mechanism",
        "measure",
        "setting",
        "as_json",
    ),
    protects=None,
)
def plan(
    given: Given,
    rows: Rows,
    epsilon: Epsilons,
    question: Question = "ate",
    by: By = None,
    policy: PolicyFile = None,
    formula: Formula = None,
    received: Received = None,
    importance: Importance = None,
    spending: Spending = "obrien_fleming",
    test: Test = None,
    margin: Margin = None,
    lower_is_better: Lower = False,
    power: Power = None,
    compare: Compare = False,
    half_width: HalfWidth = None,
    draws: Draws = 20,
    seed: Seed = 0,
    effect: Effect = None,
    mean: Mean = None,
    sd: Sd = None,
    binary: BinaryOutcome = None,
    explained: Explained = None,
    confounding: Confounding = None,
    correlation: Correlation = None,
    share: Share = None,
    lost: Lost = None,
    together: Together = None,
    denominator: Denominator = None,
    complying: Complying = None,
    sample: Sample = None,
    report: Report = None,
) -> None:
    """Plan a study: how wide will the confidence intervals be at each epsilon?

    Studies are simulated from the study file and the assumptions given here, or like a public sample. No private
    data are read.
    """
    import counterveil as cv
    from counterveil.data.passes import Waiting
    from counterveil.questions.policy import stored_policy

    check_target(report)
    with Waiting("plan") as waiting:

        def tell(done: int, studies: int) -> None:
            searching = done == studies and half_width is not None
            waiting.tell("searching" if searching else f"{done} of {studies} simulated studies")

        found = cv.plan(
            cv.Study.from_toml(given["study"]),
            rows=rows[0] if len(rows) == 1 else rows,
            epsilon=epsilon,
            question=question,
            by=None if by is None else cut_points(by),
            policy=None if policy is None else stored_policy(policy, None),
            formula=formula,
            received=received,
            importance=by_name(importance),
            spending=spending,
            test=test,
            margin=margin,
            higher_is_better=not lower_is_better,
            power=power,
            half_width=half_width,
            draws=draws,
            seed=seed,
            effect=0.0 if effect is None else _numbers(effect),
            mean=_numbers(mean),
            sd=_numbers(sd),
            binary=binary,
            explained=explained,
            confounding=confounding,
            correlation=correlation,
            share=share,
            lost=lost,
            together=together,
            denominator=None if denominator is None else [_number(part) for part in denominator.split(",")],
            complying=complying,
            sample=sample,
            tell=tell,
            **parameters(given) | ({"method": "all"} if compare else {}),
        )
    show(found, report, given["as_json"])


def _numbers(words: list[str] | None) -> Any:
    """Return a number, or numbers by name ("death=0.2"); a text that is none is left for the plan to refuse."""
    if words is not None and len(words) == 1 and "=" not in words[0]:
        return _number(words[0])
    found = by_name(words)
    return None if found is None else {name: _number(text) for name, text in found.items()}


def _number(text: str) -> Any:
    try:
        return written_float(text)
    except ValueError:
        return text
