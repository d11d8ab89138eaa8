"""Effects of groups of people where everything about a person is private, the group included.

A group's effect is the difference of its arms' mean outcomes, or the mean of its people's doubly robust
scores. Numbers, sums and squares of all groups are one release; a mean is a noisy sum over a noisy number,
whose interval is Fieller's.

Effects are in units of the outcome. Scores are clipped, so that a replaced row moves the sums of two groups
at most, by a bounded length. Proof: `rows/moments/group_scores.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from counterveil.data import Layout, Study
from counterveil.estimators.group_names import group_names
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.cell_tallies import Tallies, cell_variances, model_errors
from counterveil.estimators.moments.group_score import Score
from counterveil.estimators.moments.scoring import Scoring, scoring
from counterveil.inference.estimates import Known
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.privacy.caveats import Caveat, Fact
from counterveil.privacy.provenance import AnyPremise, Estimator, Quantity, ReleaseRow, ScoreBudgetPart
from counterveil.results.answering import Facts, Stored
from counterveil.results.effect import Effect
from counterveil.results.groups import GroupsResult
from counterveil.results.question import Question
from counterveil.rows.moments.placing import LayoutPlaces
from counterveil.rows.public import PublicData
from counterveil.session import Gate

Answer = TypeVar("Answer", bound=Stored)

_ESTIMATORS = {"arms": Estimator.MEANS_IN_GROUPS, "adjusted": Estimator.SCORES_IN_GROUPS}
# What is released, by the name in the plan.
_QUANTITIES = {
    "centre": Quantity.CENTRES_OF_CELLS,
    "histogram": Quantity.SCORE_HISTOGRAM,
    "ranks": Quantity.RANK_HISTOGRAM,
    "norms": Quantity.ROW_LENGTHS,
    "gram": Quantity.TREATMENT_GRAM,
    "cells": Quantity.CELL_SCORES,
}


def record_groups(public: PublicData, question: Question, *, layout: Layout) -> Prepared[GroupsResult]:
    """Return the effects of all groups; which group a person is in is private too."""
    study = public.study
    form = scoring(public, question)

    def estimate(gate: Gate) -> Facts:
        cells, score = form.release(gate, LayoutPlaces(layout), layout.public)
        return Facts(
            groups=_effects(study, question, layout, cells=cells, score=score),
            by=layout.names,
            method=_ESTIMATORS[question.method],
            releases=score_releases(form),
            not_covered=score_caveats(study, question.method, layout.names),
            details=record_details(form),
        )

    return prepared_scores(
        question,
        form,
        estimate,
        answer=GroupsResult,
        description={"question": "groups", "by": layout.describe()},
    )


def prepared_scores(
    question: Question,
    form: Scoring,
    estimate: Callable[[Gate], Facts],
    *,
    answer: type[Answer],
    description: dict[str, Any],
    remarks: tuple[AnyPremise, ...] = (),
) -> Prepared[Answer]:
    """Return a question about scores, prepared for its releases; its pages name the noise too."""
    return Prepared(
        question=question,
        plan=form.plan,
        estimate=estimate,
        answer=answer,
        pages=form.pages,
        mechanisms=(),
        remarks=remarks,
        description=description,
    )


def score_releases(form: Scoring) -> tuple[ReleaseRow, ...]:
    """Return what was released and what part of the budget it took."""
    shares = form.plan.parts
    return tuple(
        (
            _QUANTITIES.get(name, Quantity.OUTCOME_RESIDUAL_MOMENTS),
            ScoreBudgetPart(shares[name], form.plan.kind(name).value if form.pure else None),
        )
        for name, _ in form.plan.amounts
    )


def record_details(form: Scoring) -> dict[str, float | str]:
    """Return the single figures of a request that protects records."""
    details: dict[str, float | str] = {
        "rows": form.rows,
        "mechanism": "laplace" if form.pure else "gaussian",
    }
    if form.form == "adjusted":
        details["features"] = form.features.size
    return details


def score_caveats(study: Study, form: str, by: tuple[str, ...] = ()) -> tuple[Fact, ...]:
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
    not_grouped = [name for name in study.covariates if name not in by]
    return (Caveat.CONFOUNDING_WITHIN_GROUPS if not_grouped or not by else Caveat.CONFOUNDING,)


def cell_ratios(cells: Tallies, score: Score, unit: float, limit: float) -> list[NoisyRatio]:
    """Return what is known about the mean score of every cell; `unit` is half the outcome's range."""
    variances = cell_variances(cells)
    shift, extra = model_errors(cells, score)
    # Of a mean over the size as released, or where that is lost in its noise, over the least that a ratio has.
    extra = extra * (cells.safe_sizes / np.maximum(cells.sizes, cells.size_sd)) ** 2
    return [
        NoisyRatio(
            total=float(cells.totals[cell] - shift[cell]) * unit,
            size=float(cells.sizes[cell]),
            row_variance=float(variances[cell]) * unit**2,
            total_sd=cells.total_sd * unit,
            size_sd=cells.size_sd,
            offset=(cells.centre + score.offset) * unit,
            extra=float(extra[cell]) * unit**2,
            bias=(score.bias + cells.lost) * unit,
            limit=limit,
            heavy=cells.heavy,
        )
        for cell in range(len(cells.sizes))
    ]


def _effects(
    study: Study, question: Question, layout: Layout, cells: Tallies, score: Score
) -> tuple[Effect, ...]:
    low, high = study.outcome_range
    width = float(high - low)
    arms = question.method == "arms"
    ratios = cell_ratios(cells, score, width / 2, width / 2 if arms else width)
    names = group_names(layout)
    if not arms:
        effects: list[Known] = list(ratios)
        sizes = cells.sizes
        size_sd = cells.size_sd
    else:
        effects = [RatioDifference(ratios[2 * g + 1], ratios[2 * g]) for g in range(len(names))]
        sizes = cells.sizes.reshape(-1, 2).sum(axis=1)
        size_sd = cells.size_sd * float(np.sqrt(2))
    return tuple(
        Effect(name, effects[group], question.level, len(names), float(sizes[group]), size_sd)
        for group, name in enumerate(names)
    )
