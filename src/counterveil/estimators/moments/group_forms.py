"""Which form of scores groups and policies of records are answered with, from public numbers alone.

Without a declared trial confounders are adjusted for. In a trial sums by arm and adjusted scores are compared
by the variance of a group's effect that is supposed beforehand,

    sampling + noise:    V / (e (1 - e)) / n + (noise of a cell's sums)^2,

with e the share treated, n the rows of a group and V the variance of outcomes. What is supposed steers the
choice; privacy and intervals do not rest on it.

In: declarations of the study, the question, and numbers of rows and cells. Out: the question with its form
("arms", "scores" or "adjusted") and its noise. Variances are in squares of half the range of the outcome.
Nothing is released here; `rows/moments/group_scores.proof.md` proves every form private, whichever is chosen.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from counterveil.data import Layout, Study
from counterveil.data.features import feature_map
from counterveil.errors import refusal
from counterveil.estimators.moments.adjustment_budget import Design, affordable, fewest_rows
from counterveil.estimators.moments.cell_tallies import COUNT_NOISE, SUM_NOISE, term_noise
from counterveil.results.question import Question, refuse_undeclared_trial
from counterveil.rows.public import PublicData

# Supposed of trials when forms are compared: outcomes' standard deviation and how far their mean lies from the middle
# of their range, in parts of half of it.
_SD = 0.35
_OFF = 0.5
# The part of outcomes' variance that covariates explain, and the part of the budget that sums of adjusted scores get.
# Scores are taken as far as they reach: clips are found from rows alone.
_EXPLAINED = 0.2
_CELLS = Fraction(3, 5)
# Where this fraction of the rows would afford models, a trial is adjusted.
_PLENTY = 8


def chosen_form(study: Study, question: Question, rows: int, layout: Layout | None, cells: int) -> Question:
    """Return the question with the form that `auto` chooses; reads declarations and public numbers."""
    if question.method == "auto":
        question = replace(question, method=_auto(study, question, rows, layout=layout, cells=cells))
    if question.method == "adjusted":
        _require_affordable(study, question, rows)
    return replace(question, mechanism=_arm_noise(question)) if question.method == "arms" else question


def _arm_noise(question: Question) -> str:
    """Return the noise of sums by arm: terms of a row add up to one, so that pure noise is the smaller for them."""
    return "staircase" if question.open_noise else question.mechanism


def _auto(study: Study, question: Question, rows: int, layout: Layout | None, cells: int) -> str:
    if study.randomised is not True:
        if layout is not None and set(layout.names) == set(study.covariates):
            return "arms"  # groups of all covariates: nothing is left to adjust for
        if not study.covariates:
            refuse_undeclared_trial(study)
        return "adjusted"
    # With a declared share the models cannot bias the effect, and they take away variance.
    adjusts = study.treated_share is not None and study.covariates and _cheap(study, question, rows)
    if layout is None:
        return "adjusted" if adjusts else "scores"
    forms = ("arms", "adjusted") if adjusts else ("arms",)
    return min(forms, key=lambda form: _expected(form, study, question, rows / cells))


def _expected(form: str, study: Study, question: Question, size: float) -> float:
    """Return the supposed variance of a group's effect in a trial, in squares of half the range."""
    e = 0.5 if study.treated_share is None else float(study.treated_share)
    sampling = _SD**2 / (e * (1 - e)) / size
    if form == "arms":
        sd = term_noise(question.budget, _arm_noise(question), Fraction(1), models=False) / size
        noise_variance = (SUM_NOISE * sd) ** 2 + (COUNT_NOISE * sd * _OFF) ** 2
        return sampling + noise_variance * (1 / e**2 + 1 / (1 - e) ** 2)
    sd = term_noise(question.budget, question.mechanism, _CELLS, models=True) / size
    return (1 - _EXPLAINED) * sampling + (SUM_NOISE * sd * (1 + _OFF) / min(e, 1 - e)) ** 2


def _design(study: Study, question: Question, rows: int) -> Design:
    return Design(rows, feature_map(study, 1).size, question.budget, question.mechanism)


def _cheap(study: Study, question: Question, rows: int) -> bool:
    """Return whether models cost little: they would be affordable with a fraction of the rows."""
    return affordable(_design(study, question, max(rows // _PLENTY, 1)))


def _require_affordable(study: Study, question: Question, rows: int) -> None:
    design = _design(study, question, rows)
    if not affordable(design):
        raise refusal(
            "CV-P544", design=fewest_rows(design), features=design.features, budget=design.budget, rows=rows
        )


def one_score_form(public: PublicData, question: Question) -> Question:
    """Return the question with the form that `auto` chooses, and pure noise for the few sums of plain scores.

    A ledger that adds up Gaussian noise counts pure noise dearly, and keeps it.
    """
    chosen = chosen_form(public.study, question, public.rows, layout=None, cells=1)
    smaller = chosen.method == "scores" and chosen.open_noise and public.account_rule == "sum"
    return replace(chosen, mechanism="staircase") if smaller else chosen
