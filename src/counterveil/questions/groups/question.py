"""Questions about groups, policies and curves, checked before any data or budget is touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, Range, Study, strata_codes
from counterveil.data.domains import Domain
from counterveil.data.features import feature_map, require_covariates
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Number, Unit, exact, show
from counterveil.privacy.caveats import Caveat, Fact
from counterveil.results.answering import Answer, Facts, settled
from counterveil.results.arms import refuse_several_arms
from counterveil.results.question import (
    LARGEST_OUTCOME,
    Question,
    refuse_extremes,
    refuse_other_settings,
    refuse_shape,
    refuse_undeclared_trial,
    refuse_unknown_method,
)
from counterveil.session import BaseSession, Gate
from counterveil.settings import DifferenceInMeans, Groups, Matching, Weighting
from counterveil.statistics.moments.orthogonal import Design, affordable, fewest_rows
from counterveil.statistics.moments.records import Part
from counterveil.statistics.moments.scoring import COUNT_NOISE, SUM_NOISE, Scoring, term_noise

# By what is protected, the methods and the type of their settings.
METHODS: dict[Unit, dict[str, type | None]] = {
    Unit.OUTCOME: {
        "difference_in_means": DifferenceInMeans,
        "weighting": Weighting,
        "matching": Matching,
    },
    Unit.TREATMENT_AND_OUTCOME: {"adjusted": None},
    Unit.RECORD: dict.fromkeys(("arms", "adjusted"), Groups),
}
# Policies and curves need one score a person.
ONE_SCORE = ("scores", "adjusted")


def refuse_ungrouped(study: Study, question: Question, known: Mapping[str, type | None]) -> None:
    """Raise the error of what the methods of a question cannot answer."""
    refuse_shape(study, question.unit)
    refuse_several_arms(study)
    refuse_extremes(study, question.budget)
    method = question.method
    refuse_unknown_method(method, ("auto", *known), f" with protects={question.unit.value!r}")
    if method in ("weighting", "matching", "adjusted"):
        require_covariates(study, method)
    refuse_other_settings(question, known.get(method, Groups if question.unit is Unit.RECORD else None))


def refuse_without_scores(study: Study, question: Question, what: str) -> None:
    """Raise the same for a policy or a curve, which protect records only."""
    if question.unit is not Unit.RECORD:
        raise refusal("CV-P543", what=what, unit=question.unit.value)
    refuse_ungrouped(study, question, dict.fromkeys(ONE_SCORE, Groups))


def checked_cost(cost: Number) -> float:
    """Return the cost of one treatment, in units of the outcome, or raise CV-P663 for one beyond every outcome."""
    found = exact(cost, "cost")
    if abs(found) > LARGEST_OUTCOME:
        raise refusal("CV-P663", largest_outcome=float(LARGEST_OUTCOME), found=show(found))
    return float(found)


# Which form answers a question about groups, policies and curves: what `auto` chooses, from public numbers.


# Supposed of trials when forms are compared: outcomes' standard deviation and how far their mean lies from the middle
# of their range, in parts of half of it; the part of their variance that covariates explain; and the part of the
# budget that sums of adjusted scores get. Scores are taken as far as they reach: clips are found from rows alone.
_SD, _OFF, _EXPLAINED, _CELLS = 0.35, 0.5, 0.2, Fraction(3, 5)
# Where this fraction of the rows would afford models, a trial is adjusted.
_PLENTY = 8


def chosen_form(study: Study, question: Question, rows: int, layout: Layout | None, cells: int) -> Question:
    """Return the question with the form that `auto` chooses; reads declarations and public numbers."""
    if question.method == "auto":
        question = replace(question, method=_auto(study, question, rows, layout, cells))
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
        own = (SUM_NOISE * sd) ** 2 + (COUNT_NOISE * sd * _OFF) ** 2
        return sampling + own * (1 / e**2 + 1 / (1 - e) ** 2)
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


# Public groups: which covariates make them, what each is called, and which one a row is in.


Codes = NDArray[np.int64]
By = str | Sequence[str] | Mapping[str, Sequence[Any] | None]

# More groups than this are a function of the covariates: `cate` is for those.
_MOST_GROUPS = 2000


def layout_of(study: Study, by: By) -> Layout:
    """Return the layout of the groups: covariates by name, cut points where they are given."""
    if isinstance(by, str):
        by = (by,)
    names = tuple(by) if isinstance(by, Mapping | Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise refusal("CV-P541b", by=by)
    cuts: dict[str, tuple[Fraction, ...]] = {}
    if isinstance(by, Mapping):
        for name, points in by.items():
            if points is not None and not isinstance(points, Sequence):
                raise _no_cut_points(name, points)
            if points is not None:
                cuts[name] = tuple(exact(point, f"a cut point of {name!r}") for point in points)
    layout = Layout.of(study, names, cuts)
    if layout.public > _MOST_GROUPS:
        raise refusal("CV-P542", most_groups=_MOST_GROUPS, public=layout.public)
    return layout


def _no_cut_points(name: str, points: object) -> CounterveilError:
    return refusal("CV-P541", name=name, points=points)


def group_names(layout: Layout) -> tuple[str, ...]:
    """Return what every group is called, in the order of their places."""
    labels = [_labels(name, domain) for name, domain in zip(layout.names, layout.domains, strict=True)]
    return tuple(", ".join(parts) for parts in product(*labels))


def _labels(name: str, domain: Domain) -> list[str]:
    if not isinstance(domain, Range):
        return [f"{name}={label}" for label in domain.labels]
    ends = [domain.lo, *domain.cuts, domain.hi]
    last = len(ends) - 2
    return [
        f"{name} in [{show(ends[place])}, {show(ends[place + 1])}{']' if place == last else ')'}"
        for place in range(last + 1)
    ]


@dataclass(slots=True)
class LayoutPlaces:
    """The group of every row of a block."""

    layout: Layout
    in_turn: bool = False

    def __call__(self, part: Part) -> Codes:
        """Return the places of a block's rows."""
        return strata_codes(part.batch.take(part.rows), self.layout)


# What results about groups, policies and curves say in words: methods, releases, and what is not covered.


METHOD_TEXTS = {
    "arms": "difference of the arms' means in every group",
    "adjusted": "mean doubly robust score of every group",
}
_WORDS = {
    "centre": "mean outcome, share treated",
    "histogram": "histogram of the scores, for their clip",
    "ranks": "histogram of the ranking, for its quantiles",
    "norms": "histogram of the rows' lengths",
    "gram": "second moments of covariates, treatment and outcome",
    "cells": "number, sum and squares of the clipped scores in every cell",
}


def settled_scores(
    kind: type[Answer],
    session: BaseSession,
    question: Question,
    found: Scoring,
    compute: Callable[[Gate], Facts],
    said: Mapping[str, Any],
    remarks: tuple[str, ...] = (),
) -> Answer:
    """Return the settled answer of private scores, whose pages name the noise too."""
    asked = (kind, session, question, found.plan, compute)
    return settled(*asked, pages=found.pages, remarks=remarks, mechanisms=(), said=said)


def release_words(found: Scoring) -> tuple[tuple[str, str], ...]:
    """Return what was released and what part of the budget it took."""
    parts = found.plan.parts
    mechanism = "Gaussian noise"
    return tuple(
        (
            _WORDS.get(name, "moments of the outcome's residuals"),
            f"{parts[name]:.0%} of the budget; "
            + (mechanism if not found.pure else f"{found.plan.kind(name).value} of pure noise"),
        )
        for name, _ in found.plan.amounts
    )


def record_details(found: Scoring) -> dict[str, float | str]:
    """Return the single figures of a request that protects records."""
    details: dict[str, float | str] = {
        "rows": found.source.rows,
        "mechanism": "laplace" if found.pure else "gaussian",
    }
    if found.form == "adjusted":
        details["features"] = found.features.size
    return details


def caveats(study: Study, form: str, by: tuple[str, ...] = ()) -> tuple[Fact, ...]:
    """Return what the intervals do not cover."""
    last = Caveat.CLAMPING, Caveat.CLIPPED_SCORES, Caveat.COVERAGE_MEASURED
    if form == "adjusted" and study.treated_share is None:
        beyond = Caveat.OTHER_THAN_FEATURES, Caveat.EXTREME_PROPENSITIES
        return Caveat.UNDECLARED_COVARIATES, *beyond, *last
    return (*_unadjusted(study, by), *last)


def _unadjusted(study: Study, by: tuple[str, ...]) -> tuple[Caveat, ...]:
    """Return what leaves room for confounders where nothing but the groups is adjusted for."""
    if study.randomised is True:
        return ()
    left = [name for name in study.covariates if name not in by]
    return (Caveat.CONFOUNDING_WITHIN_GROUPS if left or not by else Caveat.CONFOUNDING,)
