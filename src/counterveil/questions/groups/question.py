"""Questions about groups, policies and curves, checked before any data or budget is touched."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

from counterveil.data import Layout, Study
from counterveil.data.features import feature_map, require_covariates
from counterveil.errors import ParameterError
from counterveil.privacy import Number, Unit, exact, show
from counterveil.results.arms_question import refuse_several_arms
from counterveil.results.question import (
    LARGEST_OUTCOME,
    Question,
    refuse_extremes,
    refuse_other_settings,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.session import Plan
from counterveil.settings import Groups, Matching, Weighting
from counterveil.statistics.moments.doubly_robust_plan import Design, affordable, fewest_rows
from counterveil.statistics.moments.scoring import FORMS

# By what is protected, the methods and the type of their settings.
METHODS: dict[Unit, dict[str, type | None]] = {
    Unit.OUTCOME: {
        "difference_in_means": None,
        "weighting": Weighting,
        "matching": Matching,
    },
    Unit.RECORD: dict.fromkeys(FORMS, Groups),
}


def ask_groups(study: Study, method: str, **arguments: Any) -> Question:
    """Return the checked question; nothing here looks at data or budget."""
    refuse_several_arms(study)
    question = Question.ask(method=method, estimand="ATE", **arguments)
    refuse_extremes(study, question.budget)
    known = METHODS[question.unit]
    refuse_unknown_method(method, ("auto", *known), f" with protects={question.unit.value!r}")
    if method in ("weighting", "matching", "adjusted"):
        require_covariates(study, method)
    refuse_other_settings(question, known.get(method, Groups if question.unit is Unit.RECORD else None))
    return question


def ask_records(study: Study, what: str, method: str, **arguments: Any) -> Question:
    """Return the checked question of a policy or a curve, which protect records only."""
    question = ask_groups(study, method, mechanism=None, **arguments)
    if question.unit is not Unit.RECORD:
        raise ParameterError(
            "CV-P543",
            f"{what} protects records only",
            expected='protects="record", which protects outcomes as well',
            got=f"protects={question.unit.value!r}",
            fix="leave protects out",
        )
    if question.method == "arms":
        raise ParameterError(
            "CV-P543",
            f"{what} needs one score a person",
            expected="method='auto', 'scores' or 'adjusted'",
            got="method='arms'",
            fix="leave method out",
        )
    return question


def checked_cost(cost: Number) -> float:
    """Return the cost of one treatment, in units of the outcome, or raise CV-P663 for one beyond every outcome."""
    found = exact(cost, "cost")
    if abs(found) > LARGEST_OUTCOME:
        raise ParameterError(
            "CV-P663",
            "the cost of treatment is out of range",
            expected=f"a cost of at most {float(LARGEST_OUTCOME):g} units of the outcome",
            got=f"cost={show(found)}",
            fix="state the cost of one treatment in units of the outcome",
        )
    return float(found)


# Which form answers a question about groups, policies and curves: what `auto` chooses, from public numbers.


# Supposed of trials when forms are compared: outcomes' standard deviation as a part of half their range, the part
# of their variance that lies between groups, and where scores are clipped, in standard deviations.
_SD, _BETWEEN, _CLIP = 0.35, 0.1, 3.0
# Where this fraction of the rows would afford models, a trial is adjusted.
_PLENTY = 8


def chosen_form(study: Study, question: Question, rows: int, layout: Layout | None, cells: int) -> Question:
    """Return the question with the form that `auto` chooses; reads declarations and public numbers."""
    if question.method == "auto":
        question = replace(question, method=_auto(study, question, rows, layout, cells))
    if question.method == "adjusted":
        _require_affordable(study, question, rows)
    return question


def _auto(study: Study, question: Question, rows: int, layout: Layout | None, cells: int) -> str:
    if study.randomised is not True:
        if layout is not None and set(layout.names) == set(study.covariates):
            return "arms"  # groups of all covariates: nothing is left to adjust for
        if not study.covariates:
            refuse_undeclared_trial(study)
        return "adjusted"
    if study.treated_share is not None and study.covariates and _cheap(study, question, rows):
        return "adjusted"  # with a declared share the models cannot bias it, and they take away variance
    if layout is None:
        return "scores"
    return min(("scores", "arms"), key=lambda form: _expected(form, study, question, rows / cells))


def _expected(form: str, study: Study, question: Question, size: float) -> float:
    """Return the supposed variance of a group's effect in a trial, in squares of half the range."""
    whole = Plan.split(question.budget, {"all": Fraction(1)}, question.mechanism).amount("all")
    unit = (3 * sqrt(2.0) if question.mechanism != "gaussian" else 2.0) / float(whole)
    e = 0.5 if study.treated_share is None else float(study.treated_share)
    both = 1 / (e * (1 - e))
    if form == "scores":
        variance = _SD**2 * (1 + _BETWEEN) * both
        return variance / size + (unit * _CLIP / size) ** 2 * variance
    variance = _SD**2
    return variance * both / size + (unit * _CLIP / size) ** 2 * variance * (1 / e**2 + 1 / (1 - e) ** 2)


def _design(study: Study, question: Question, rows: int) -> Design:
    degree = question.settings.degree if question.settings is not None else 1
    return Design(rows, feature_map(study, degree).size, question.budget, question.mechanism)


def _cheap(study: Study, question: Question, rows: int) -> bool:
    """Return whether models cost little: they would be affordable with a fraction of the rows."""
    return affordable(_design(study, question, max(rows // _PLENTY, 1)))


def _require_affordable(study: Study, question: Question, rows: int) -> None:
    design = _design(study, question, rows)
    if not affordable(design):
        raise ParameterError(
            "CV-P544",
            "the budget is too small to adjust for these covariates",
            expected=f"at least {fewest_rows(design)} rows for {design.features} features and {design.budget}",
            got=f"{rows} rows",
            fix="nothing was spent: declare fewer covariates, use a larger budget (a delta helps most), or "
            "group by all covariates",
        )
