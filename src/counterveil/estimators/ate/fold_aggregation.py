"""Any learner, made private: estimate the effect in separate folds, clip, average, add noise.

Nothing about the learner has to be known. One record lies in one fold, so it moves the average of K clipped
effects by at most 2c/K.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from counterveil.curator import Custody, Gate, Plan
from counterveil.data import Study, Table
from counterveil.estimators.ate.fold_learners import BUILT_IN, effect_of_fold, learner_name, learner_remarks
from counterveil.estimators.ate.fold_settings import (
    FoldSettings,
    chosen_folds,
    fold_request,
    moments_plan,
    require_folds,
)
from counterveil.estimators.ate.ipw_moments import Weighted, release_moments
from counterveil.estimators.ate.unit_features import UnitFeatures
from counterveil.estimators.question import Question
from counterveil.estimators.result import Result
from counterveil.inference import Uncertainty
from counterveil.kernels.fold_split import fold_rows
from counterveil.kernels.inverse_weights import GRID_BITS, moments
from counterveil.privacy import exact
from counterveil.sensitivity.fold_average import FoldAverage

Integers = NDArray[np.int64]

PAGES = ("sensitivity/fold_average.proof.md", "sensitivity/inverse_weighting.proof.md")


@dataclass(frozen=True, slots=True)
class Folding:
    """What is known before a row is read."""

    learner: object
    features: UnitFeatures
    folds: int
    bound: Fraction
    plan: Plan

    @property
    def sensitivity(self) -> FoldAverage:
        """How far one record can move the average."""
        return FoldAverage(self.folds, self.bound)


def fold_aggregation(custody: Custody, question: Question) -> Result:
    """Return the noisy average of a learner's effects in separate folds; everything about a person is private."""
    folding = folding_of(custody.study, custody.table.rows, question)

    def compute(gate: Gate) -> dict[str, object]:
        weighted = release(gate, custody.table, folding)
        return _result(custody, question, folding, weighted).to_dict()

    request = fold_request(custody, question, folding.plan, folding.learner)
    return Result.from_dict(custody.run(request, compute))


def folding_of(study: Study, rows: int, question: Question) -> Folding:
    """Return the public design of a question, or refuse it; no row is looked at."""
    settings = question.settings or FoldSettings()
    require_folds(study, question, rows, settings.folds)
    plan, features = moments_plan(question), UnitFeatures.of(study)
    width = study.outcome_range[1] - study.outcome_range[0]
    bound = width if settings.bound is None else min(exact(settings.bound, "bound"), width)
    folds = settings.folds
    if folds is None:
        folds = chosen_folds(rows, features, plan, float(bound / width))
    return Folding(settings.learner, features, folds, bound, plan)


def release(gate: Gate, table: Table, folding: Folding) -> Weighted:
    """Return the released moments of the folds' effects, each clipped to the bound."""
    steps = fold_effects(table, folding)
    found = moments(steps, np.zeros(len(steps), np.bool_))
    return release_moments(gate, folding.plan, found, folding.bound, 1.0)


def fold_effects(table: Table, folding: Folding) -> Integers:
    """Return every fold's effect in whole parts of 2**-GRID_BITS of the bound, at most one bound in size."""
    z = folding.features.values(table)
    y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * table.outcome.astype(np.float64)
    t = table.treated.astype(np.float64)
    effects = [
        effect_of_fold(folding.learner, z[rows], t[rows], y[rows])
        for rows in fold_rows(table.rows, folding.folds)
    ]
    part = np.clip(np.array(effects) / float(folding.bound), -1.0, 1.0)
    return np.trunc(np.ldexp(part, GRID_BITS)).astype(np.int64)


def uncertainty_of(folding: Folding, weighted: Weighted, level: float) -> Uncertainty:
    """Return the uncertainty of the average from the spread between folds, with K - 1 degrees of freedom."""
    bound, folds = float(folding.bound), folding.folds
    mean_square = weighted.mean**2 - weighted.effect_noise.variance / bound**2
    spread = bound**2 * (weighted.square - mean_square) / (folds - 1)
    # Normal quantiles are used later on; the variance is raised so that at this level they are Student's.
    tail = (1 - level) / 2
    student = float((stdtrit(folds - 1, tail) / ndtri(tail)) ** 2)
    cap = bound**2 / (folds - 1)
    return Uncertainty(weighted.effect_noise, student * spread, student * cap, weighted.variance_noise)


def _result(custody: Custody, question: Question, folding: Folding, weighted: Weighted) -> Result:
    study, name = custody.study, learner_name(folding.learner)
    bound, size = float(folding.bound), custody.table.rows // folding.folds
    own = not isinstance(folding.learner, str) or folding.learner not in BUILT_IN
    caveats = [
        f"bias of the learner ({name}) on about {size} rows, and CONFOUNDING that it does not remove",
        "folds in which the learner fails: they count as an effect of 0, and how many they are is private",
        f"effects of folds beyond {bound:.4g}, which are clipped",
        "clamping of outcomes to the declared range",
    ]
    return Result(
        estimate=bound * weighted.mean,
        uncertainty=uncertainty_of(folding, weighted, question.level),
        guarantee=question.guarantee(custody, PAGES, learner_remarks(folding.learner)),
        spent=question.budget,
        estimand=question.estimand,
        method=f"average over folds of {name}",
        treatment=study.treatment,
        outcome=study.outcome,
        level=question.level,
        releases=(
            ("average of the folds' effects", f"sensitivity {float(folding.sensitivity.mean):.6g}"),
            ("its squares", f"sensitivity {float(folding.sensitivity.square):.6g}"),
        ),
        not_covered=tuple(caveats),
        details={
            "rows": custody.table.rows,
            "law": question.law,
            "learner": name,
            "folds": folding.folds,
            "rows of a fold, about": size,
            "bound of a fold's effect": bound,
        },
        interval_of=f"the expected answer of {name} on about {size} rows" if own else None,
    )
