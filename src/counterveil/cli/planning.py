"""The command `plan`: how wide intervals would be, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from counterveil.cli.effects import by_name, cut_points
from counterveil.cli.requests import Given, check_report, number_or_word, options, parameters, shared, show
from counterveil.errors import refusal

_PEOPLE = "Assumptions"
_QUESTIONS = (
    '"ate", "arms", "outcomes", "groups", "event_study", "cate", "policy_value", "survival", "quantiles", '
    '"moments", "compliance" or "interim" (--rows at each analysis, --epsilon of all).'
)
_OUTCOME_CORRELATION = (
    "Correlation of any two outcomes of a person, of an outcome with the number before it, or of a numerator with "
    "its denominator; 0.5 if omitted."
)
_CONFOUNDING = (
    "Standard deviation of the log-odds of treatment due to the covariates; if omitted 0.5, or 0 in a trial."
)
_BINARY = "Binary outcome: one end of the range or the other; assumed if the range is 0 to 1."
_OWN = [
    *options(list[int], "INTEGER", ..., rows="Number of people in the planned study."),
    *options(list[str], "NUMBER", ..., epsilon="Privacy loss to try."),
    *options(str, "NAME", "ate", question=_QUESTIONS),
    *options(list[str] | None, "NAME[=CUTS]", by="Groups, as for `counterveil groups`."),
    *options(Path | None, "FILE", policy="A policy, as for `counterveil policy-value`."),
    *options(str | None, "FORMULA", formula="A regression, as for `counterveil regress`, for moments."),
    *options(
        str | None, "NAME", received="The covariate that says who received the treatment, for compliance."
    ),
    *options(list[str] | None, "NAME=NUMBER", importance="As for `counterveil outcomes`."),
    *options(bool, "", False, even_grid="As for `counterveil quantiles`."),
    *options(
        str,
        "NAME",
        "obrien_fleming",
        spending='How looks divide the error: "obrien_fleming", "pocock" or "always_valid".',
    ),
    *options(
        str | None, "NAME", test='A test: "superiority", "noninferiority" or "equivalence", with --margin.'
    ),
    *options(float | None, "NUMBER", margin="Margin of the test, in units of the effect."),
    *options(bool, "", False, lower_is_better="A lower outcome is better, for --test."),
    *options(
        float | None,
        "NUMBER",
        power="Power of the test: the least epsilon and number of people are searched.",
        half_width="Wanted half-width: the least epsilon and the least number of people are searched.",
    ),
    *options(
        bool, "", False, compare="Compare every method, and without --protects every level that could answer."
    ),
    *options(int, "INTEGER", 20, draws="Number of simulated studies."),
    *options(int, "INTEGER", 0, seed="Seed of the simulation."),
    *options(
        list[str] | None,
        "[NAME=]NUMBER",
        section=_PEOPLE,
        effect="Effect, in units of the outcome; 0 if omitted. Of several outcomes by name.",
        mean="Mean outcome without treatment; the middle of the range if omitted.",
        sd="Standard deviation of outcomes; a sixth of the range if omitted.",
    ),
    *options(bool | None, "", section=_PEOPLE, binary=("--binary/--no-binary", _BINARY)),
    *options(
        float | None,
        "NUMBER",
        section=_PEOPLE,
        explained="Share of the outcome variance that lines in the covariates explain, 0 to 1; 0.2 if omitted.",
        confounding=_CONFOUNDING,
        correlation="Correlation of neighbouring covariates; 0.3 if omitted.",
        share="Share treated (of several arms: not in the reference); as declared, or arms of one size, if omitted.",
        censoring_rate="Share of people lost to follow-up before the horizon, for survival; 0.2 if omitted.",
        outcome_correlation=_OUTCOME_CORRELATION,
        compliance_rate="Share of people who receive what they are assigned; 0.7 if omitted.",
    ),
    *options(
        str | None,
        "MEAN,SD",
        section=_PEOPLE,
        denominator="Mean and standard deviation of denominators, in a study that has one.",
    ),
    *options(
        str | None,
        "DATA",
        section=_PEOPLE,
        sample="A public sample with the columns of the study, instead of all assumptions.",
    ),
]
_SHARED = ("study", "protects", "delta", "method", "estimand", "level", "mechanism", "measure", "setting")


@shared(*_SHARED, "report", "as_json", more=_OWN, protects=None)
def plan(given: Given) -> None:
    """Plan a study: how wide will the confidence intervals be at each epsilon?

    Studies are simulated from the study file and the assumptions given here, or like a public sample. No private
    data are read.
    """
    import counterveil as cv
    from counterveil.data.progress import Waiting
    from counterveil.questions.policy import stored_policy

    check_report(given["report"])
    own = {each.name: given[each.name] for each in _OWN}
    shared = ("rows", "question", "power", "half_width", "draws", "seed")
    arguments = {name: own[name] for name in shared} | parameters(given)
    if len(own["rows"]) == 1:
        arguments["rows"] = own["rows"][0]
    if own["compare"]:
        arguments["method"] = "all"
    if own["test"] is not None:
        arguments["decision"] = cv.Decision(own["test"], own["margin"], not own["lower_is_better"])
    elif own["margin"] is not None:
        raise refusal(
            "CV-P701", name="margin", expected="--margin with --test", got="--margin", fix="say --test"
        )
    arguments["options"] = {
        "by": None if own["by"] is None else cut_points(own["by"]),
        "policy": None if own["policy"] is None else stored_policy(own["policy"], None),
        "formula": own["formula"],
        "received": own["received"],
        "importance": by_name(own["importance"]),
        "spending": own["spending"],
        "grid": "even" if own["even_grid"] else "found",
    }
    arguments["assumed"] = _assumed(own)
    with Waiting("plan") as waiting:

        def progress(done: int, studies: int) -> None:
            searching = done == studies and own["half_width"] is not None
            waiting.report("searching" if searching else f"{done} of {studies} simulated studies")

        study = cv.Study.from_toml(given["study"])
        found = cv.plan(study, **arguments, progress=progress)
    show(found, given["report"], given["as_json"])


def _assumed(own: Given) -> Any:
    """Return what the options assume of people."""
    import counterveil as cv

    names = (
        "binary",
        "explained",
        "confounding",
        "correlation",
        "share",
        "censoring_rate",
        "outcome_correlation",
        "compliance_rate",
        "sample",
    )
    pair = own["denominator"]
    denominator: Any = None if pair is None else [number_or_word(part) for part in pair.split(",")]
    return cv.Assumptions(
        effect=0.0 if own["effect"] is None else _numbers(own["effect"]),
        mean=_numbers(own["mean"]),
        sd=_numbers(own["sd"]),
        denominator=denominator,
        **{name: own[name] for name in names},
    )


def _numbers(words: list[str] | None) -> Any:
    """Return a number, or numbers by name ("death=0.2"); a text that is none is left for the plan to refuse."""
    if words is not None and len(words) == 1 and "=" not in words[0]:
        return number_or_word(words[0])
    found = by_name(words)
    return None if found is None else {name: number_or_word(text) for name, text in found.items()}
