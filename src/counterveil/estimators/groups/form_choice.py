"""Which form answers a question about groups, policies and curves: what `auto` chooses, from public numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt

from counterveil.curator import Plan
from counterveil.data import Layout, Study
from counterveil.errors import ParameterError
from counterveil.estimators.ate.doubly_robust_features import feature_map
from counterveil.estimators.ate.doubly_robust_plan import Design, affordable, fewest_rows
from counterveil.estimators.question import Question, refuse_undeclared_trial

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
    whole = Plan.split(question.budget, {"all": Fraction(1)}, question.law).amount("all")
    unit = (3 * sqrt(2.0) if question.law != "gaussian" else 2.0) / float(whole)
    e = 0.5 if study.treated_share is None else float(study.treated_share)
    both = 1 / (e * (1 - e))
    if form == "scores":
        spread = _SD**2 * (1 + _BETWEEN) * both
        return spread / size + (unit * _CLIP / size) ** 2 * spread
    spread = _SD**2
    return spread * both / size + (unit * _CLIP / size) ** 2 * spread * (1 / e**2 + 1 / (1 - e) ** 2)


def _design(study: Study, question: Question, rows: int) -> Design:
    degree = question.settings.degree if question.settings is not None else 1
    return Design(rows, feature_map(study, degree).size, question.budget, question.law)


def _cheap(study: Study, question: Question, rows: int) -> bool:
    """Return whether models cost little: they would be affordable with a fraction of the rows."""
    return affordable(_design(study, question, max(rows // _PLENTY, 1)))


def _require_affordable(study: Study, question: Question, rows: int) -> None:
    design = _design(study, question, rows)
    if not affordable(design):
        raise ParameterError(
            "CV-P544",
            "adjusting for these covariates is not affordable with this budget",
            expected=f"at least {fewest_rows(design)} rows for {design.features} features and {design.budget}",
            got=f"{rows} rows",
            fix="nothing was spent: declare fewer covariates, use a larger budget (a delta helps most), or "
            "group by all covariates",
        )
