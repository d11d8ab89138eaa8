"""Quantiles and distribution functions of both arms from noisy counts of outcomes by arm and cell.

    F_a(edge) = noisy weighted count of arm a's outcomes up to the edge / the arm's total weight,

between 0 and 1, at the edges of cells in units of the outcome; quantiles are where F_a crosses a share. Rows
count 1 each (trials), by public balancing weights (`arm_weights.py`), or, where treatments are private, by
inverse propensities that are released first. In: private rows, public weights or covariates, edges of cells.
Out: both arms' histograms with the standard deviation of their noise, from which
`inference/survival/distributions.py` reads everything without further cost.

Proof: `rows/distribution.proof.md`. A replaced row moves the counts by at most 2 in the sum of absolute
changes and the root of 2 in length, as no weight is above 1 (in parts of the largest); the rest is
post-processing. Privacy does not depend on the constants, which split the budget and keep propensities from 0
and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from counterveil.errors import refusal
from counterveil.estimators.arm_weights import weighted_arms, weights_facts
from counterveil.estimators.method import Prepared
from counterveil.estimators.outcome_grids import (
    FOUND,
    NO_EARLIER_RELEASES,
    Edges,
    HistogramRelease,
    histogram_plan,
    histogram_release,
    released_on,
)
from counterveil.estimators.outcome_place import PLACE_QUANTITIES, PLACES
from counterveil.estimators.pairs.budget import known_propensities
from counterveil.estimators.pairs.features import feature_sets
from counterveil.estimators.pairs.models import released_propensities
from counterveil.inference.survival.distributions import NoisyHistograms
from counterveil.privacy import Unit
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import CountChange, Estimator
from counterveil.results.answering import Facts
from counterveil.results.question import Question, adjusted_caveats, causal_caveats
from counterveil.results.survival import QuantilesResult
from counterveil.rows.outcome_cells import NAME, CellCounts, PropensityCellCounts, WeightedCellCounts
from counterveil.rows.public import PublicData
from counterveil.session import Gate
from counterveil.settings.methods import ALLOWED_BIAS, allowed_bias

PAGE = "rows/distribution.proof.md"
# Where treatments are private: the release of propensities, and its part of the budget.
_MODEL = "propensities"
_MODEL_PART = Fraction(1, 3)
# How far propensities are kept from 0 and 1.
_LEAST_PROPENSITY = 0.05


def quantiles_of_arms(
    public: PublicData, question: Question, *, grid: Edges, probs: tuple[float, ...]
) -> Prepared[QuantilesResult]:
    """Return both arms' distributions of a trial; sizes of arms are public where outcomes alone are private."""
    rows = public.rows
    release = histogram_release(public, question, grid, rows)
    arms = public.arm_sizes if question.unit is Unit.OUTCOME else (rows,)
    totals = tuple(float(max(size, 1)) for size in arms)

    def estimate(gate: Gate) -> Facts:
        placed = release.placed(gate, public)
        counts = CellCounts(placed.cells(public.study), placed.pure).release(gate)
        histograms = placed.histograms(counts, totals=totals, design=(1.0, 1.0))
        return _facts(public, question, release=release, histograms=histograms, probs=probs)

    return _prepared(question, release, probs, estimate)


def quantiles_by_weights(
    public: PublicData, question: Question, *, grid: Edges, probs: tuple[float, ...]
) -> Prepared[QuantilesResult]:
    """Return both arms' distributions, weighted towards everybody; outcomes are private."""
    study = public.study
    people = public.columns
    release = histogram_release(public, question, grid, people.rows)
    arms, diagnostics = weighted_arms(people, release.curve_variance)
    bias = allowed_bias(None, study.randomised is True, len(study.covariates))

    def estimate(gate: Gate) -> Facts:
        placed = release.placed(gate, public)
        weights = tuple(arm.weights for arm in arms)
        sums = WeightedCellCounts(placed.cells(study), placed.pure, weights).release(gate)
        histograms = placed.histograms(
            sums,
            totals=tuple(float(arm.total) for arm in arms),
            design=tuple(arm.design for arm in arms),
            inflation=biased(bias),
        )
        facts = _facts(public, question, release=release, histograms=histograms, probs=probs)
        return weights_facts(facts, Estimator.QUANTILES, bias, diagnostics)

    return _prepared(question, release, probs, estimate)


def quantiles_by_scores(
    public: PublicData, question: Question, *, grid: Edges, probs: tuple[float, ...]
) -> Prepared[QuantilesResult]:
    """Return both arms' distributions, weighted by propensities that are released first, or that the design says."""
    study = public.study
    people = public.columns
    by_design = known_propensities(people)
    candidates = feature_sets(people)
    if not candidates:
        raise refusal("CV-P407", features=len(study.covariates), rows=people.rows)
    earlier = NO_EARLIER_RELEASES if by_design is not None else {_MODEL: _MODEL_PART}
    plan = histogram_plan(question.budget, "laplace", grid, earlier)
    release = released_on(study, plan, grid, people.rows)
    bias = allowed_bias(None, False, len(study.covariates))

    def estimate(gate: Gate) -> Facts:
        treated = by_design
        error = np.zeros((1, 1))
        if treated is None:
            treated, error = released_propensities(gate, _MODEL, candidates[0])
        likely = (1 - treated, treated)
        treated = np.clip(treated, _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY)
        propensities = (1 - treated, treated)
        largest = max(float((1 / propensity).max()) for propensity in propensities)
        # Covariates explain no more of any share than its whole variance.
        worst = float(np.linalg.eigvalsh(error)[-1]) * people.rows
        moved = max(
            float(np.mean((1 - propensity) ** 2) / np.mean(1 / propensity)) for propensity in propensities
        )
        placed = release.placed(gate, public)
        sums = PropensityCellCounts(placed.cells(study), placed.pure, propensities, largest).release(gate)
        histograms = placed.histograms(
            sums,
            totals=(),
            design=tuple(float(np.mean(1 / propensity)) / largest for propensity in propensities),
            inflation=biased(bias) + worst * moved,
            # Whoever is likelier in the other arm than weights reach is stood for in part, by how much they weigh.
            left_out=tuple(
                float(np.mean(np.abs(1 - e / propensity)))
                for e, propensity in zip(likely, propensities, strict=True)
            ),
        )
        facts = _facts(public, question, release=release, histograms=histograms, probs=probs)
        facts = weights_facts(facts, Estimator.QUANTILES, bias, {"largest_weight": largest})
        facts["method"] = Estimator.QUANTILES_BY_PROPENSITY
        return facts

    return _prepared(question, release, probs, estimate)


def biased(bias: float) -> float:
    """Return what sampling variances of weighted distributions grow by for a bias of so many standard errors.

    They take nothing off for what covariates explain. Errors vary by the rest alone, and bias is what
    imbalance makes of the explained part: where that is a fifth or more, the usual bias is within what is
    not taken off.
    """
    return max(1.0, (1 + bias**2) / (1 + ALLOWED_BIAS**2))


def _facts(
    public: PublicData,
    question: Question,
    release: HistogramRelease,
    histograms: NoisyHistograms,
    probs: tuple[float, ...],
) -> Facts:
    """Return the fields of an answer that are made of released counts."""
    study = public.study
    weighted = question.method == "weighting"
    caveats = adjusted_caveats(study) if weighted else causal_caveats(study, question.estimand)
    bound = CountChange(2.0 if histograms.heavy else 2**0.5, histograms.heavy)
    place_releases = tuple((PLACE_QUANTITIES[name], bound) for name in PLACES if release.searched)
    return Facts(
        histograms=histograms,
        probs=probs,
        method=Estimator.QUANTILES,
        releases=(*place_releases, (NAME, bound)),
        not_covered=(*caveats, Caveat.UNEVEN_WITHIN_CELLS),
        details={
            "rows": public.rows,
            "cells": len(histograms.edges) - 1,
            "mechanism": "laplace" if histograms.heavy else "gaussian",
        },
    )


def _prepared(
    question: Question,
    release: HistogramRelease,
    probs: tuple[float, ...],
    estimate: Callable[[Gate], Facts],
) -> Prepared[QuantilesResult]:
    if release.searched:
        edges: object = f"{FOUND}, {len(release.edges) - 1}"
    else:
        edges = [str(edge) for edge in release.edges]
    return Prepared(
        question=question,
        plan=release.plan,
        estimate=estimate,
        answer=QuantilesResult,
        pages=PAGE,
        mechanisms=("laplace" if release.pure else "gaussian",),
        description={
            "question": "quantiles",
            "noise": release.plan.mechanism,
            "shares": list(probs),
            "edges": edges,
        },
    )
