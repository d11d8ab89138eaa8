"""Any learner of effects, made private: learn in separate folds, project on public functions, average, add noise.

Lineage: sample and aggregate (Nissim, Raskhodnikova and Smith 2007), for functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from counterveil.data import Study, Table, public_points, silence
from counterveil.data.features import UnitFeatures
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats, Indices
from counterveil.numerics.bases import Basis, make_basis
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy.caveats import Caveat, Target
from counterveil.results.answering import Facts, settled
from counterveil.results.functions import CateAnswers, CateQuestion, vector_plan
from counterveil.session import BaseSession, Gate, Plan
from counterveil.settings import Cate, FoldQueries
from counterveil.statistics.folds.kernels import PublicFunctions, coefficient_sums, outcome_lines, stacks
from counterveil.statistics.folds.learners import (
    is_stacked,
    learner_name,
    learner_remarks,
    models_of_fold,
    quietly,
)
from counterveil.statistics.folds.sensitivity import FoldFunctions
from counterveil.statistics.moments.functions import axes_of
from counterveil.statistics.moments.kernels.scores import TERM_BITS
from counterveil.statistics.moments.sensitivity import SQUARE_WEIGHT

PAGES = ("statistics/folds/fold_functions.proof.md", "statistics/moments/orthogonal_score.proof.md")
_POINTS = 512
_FEW_COVARIATES = 3
_DEGREES = (4, 3, 2, 1)
# A basis is afforded where its noise, in root mean square, is at most this part of the bound.
_MOST_NOISE = 0.08
_FEWEST_ROWS, _ROWS_A_COLUMN, _FEWEST_FOLDS = 60, 6, 5


@dataclass(frozen=True, slots=True)
class QueryFolding:
    """What is known before a row is read."""

    learner: Any
    features: UnitFeatures
    basis: Basis
    points: Floats  # features of the public points
    projection: PublicFunctions
    folds: int
    bound: float
    plan: Plan


def fold_queries(session: BaseSession, question: CateQuestion) -> CateAnswers:
    """Return a learner's effects at the queries; everything about a person is private."""
    asked = question.queries
    assert asked is not None  # the question refuses this method without queries
    folding = folding_of(session.study, session.table.rows, question)

    def compute(gate: Gate) -> Facts:
        mean, square, sd = release(gate, session.table, folding)
        at = folding.projection.answers(folding.basis.features(asked.columns))
        bound, rank = folding.bound, folding.projection.rank
        reach = np.sqrt(np.einsum("ij,ij->i", at, at)) * bound
        between = max(square - float(mean @ mean) + rank * sd**2, 0.0)
        sampling_sd = sqrt(between / rank / max(folding.folds - 1, 1))
        return Facts(
            queries=asked.rows,
            estimates=tuple(np.clip(bound * (at @ mean), -bound, bound).tolist()),
            sampling=tuple((reach * sampling_sd).tolist()),
            noise=tuple((reach * sd).tolist()),
            method=f"mean of {learner_name(folding.learner)} in folds, on {rank} public functions",
            releases=(("mean coefficients of the folds' functions, and their mean squared length", "all"),),
            not_covered=(
                Caveat.ERRORS_OF_ALL_FOLDS,
                Caveat.NOT_IN_PUBLIC_FUNCTIONS,
            ),
            distinct=len({row.tobytes() for row in at}),
            rank=rank,
            noise_tail="laplace" if question.budget.pure else "normal",
            interval_target=Target.ONE_FOLD,
            details={"folds": folding.folds, "functions": rank, "rows": session.table.rows, "bound": bound},
        )

    return settled(
        CateAnswers,
        session,
        question,
        folding.plan,
        compute,
        pages=PAGES,
        remarks=learner_remarks(folding.learner),
        mechanisms=("ball" if question.budget.pure else "gaussian",),
        said={"folds": folding.folds, "bound": folding.bound, "functions": folding.basis.to_dict()},
    )


def folding_of(study: Study, rows: int, question: CateQuestion) -> QueryFolding:
    """Return the public design, or refuse it; no row is looked at."""
    settings = question.settings or FoldQueries()
    features = UnitFeatures.of(study)
    fewest = max(_FEWEST_ROWS, _ROWS_A_COLUMN * (features.columns + 2))
    folds = max(_FEWEST_FOLDS, rows // fewest) if settings.folds is None else settings.folds
    if rows // folds < 2:
        raise refusal("CV-P551", folds=2 * folds, count=folds, rows=rows)
    low, high = study.outcome_range
    plan = vector_plan(question, {"coefficients": Fraction(1)})
    points = public_points(study, _POINTS)
    basis = _basis(study, question, folds)
    projection = PublicFunctions.of(basis.features(points))
    values = features.values_of(points, study)
    return QueryFolding(settings.learner, features, basis, values, projection, folds, float(high - low), plan)


def _basis(study: Study, question: CateQuestion, folds: int) -> Basis:
    """Return the largest basis of polynomials whose noise is small beside the bound; else the linear one."""
    chosen = Cate()
    products = len(study.covariates) <= _FEW_COVARIATES
    whole = vector_plan(question, {"all": Fraction(1)}).amounts[0][1]
    for degree in _DEGREES:
        basis = make_basis(tuple(axes_of(study, degree, chosen)), degree, products)
        # l2-ball noise of r numbers has standard deviation sqrt(r + 1) each.
        each = sqrt(basis.size + 2) if question.budget.pure else 1.0
        if 2 * sqrt(basis.size) * each / (folds * float(whole)) <= _MOST_NOISE:
            break
    return basis


def release(gate: Gate, table: Table, folding: QueryFolding) -> tuple[Floats, float, float]:
    """Return the noisy mean coefficients, their noisy mean squared length, and the noise of a coefficient."""
    x, t = folding.features.values(table), table.treated.astype(np.float64)
    low = float(table.study.outcome_range[0])
    y = np.asarray(low + float(table.outcome_unit) * table.outcome, dtype=np.float64)
    found = [
        folding.projection.coefficients(values, folding.bound)
        for values in effects_by_fold(folding, x, t, y, fold_rows(table.rows, folding.folds))
    ]
    totals, squares = coefficient_sums(found)
    one = Fraction(1, folding.folds << TERM_BITS)
    values = [one * total for total in totals] + [SQUARE_WEIGHT * one * squares / 2**TERM_BITS]
    released = gate.release_vector("coefficients", values, FoldFunctions(folding.folds).means)
    noisy = released.floats()
    return noisy[:-1], float(noisy[-1]) / float(SQUARE_WEIGHT), sqrt(released.variance)


def effects_by_fold(
    folding: QueryFolding, x: Floats, t: Floats, y: Floats, folds: list[Indices]
) -> Iterator[Floats]:
    """Yield what the learner says of the points after seeing each fold; zeros where it fails.

    Lines of ours are fitted to many small folds at once.
    """
    points = folding.points
    if isinstance(folding.learner, str) and is_stacked(folds):
        for _, rows in stacks(folds, x.shape[1]):
            with silence():
                first, second = outcome_lines(x[rows], t[rows], y[rows]).transpose(1, 0, 2)
            lines = first - second
            yield from np.nan_to_num(lines[:, :-1] @ points.T + lines[:, -1:], nan=0.0)
    else:
        for rows in folds:
            yield fold_effects(folding.learner, x[rows], t[rows], y[rows], points)


def fold_effects(learner: Any, x: Floats, t: Floats, y: Floats, points: Floats) -> Floats:
    """Return the same of one fold."""

    def learned() -> Floats:
        models = models_of_fold(learner, x, t, y)
        if models is None:
            return np.zeros(len(points))
        return np.asarray(models.treated(points) - models.control(points), dtype=np.float64)

    found = quietly(learned)
    return np.zeros(len(points)) if found is None or found.shape != (len(points),) else found
