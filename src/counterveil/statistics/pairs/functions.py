"""The effect as a function of public covariates, where a row's treatment and outcome are private together.

Scores of the effect are regressed on public functions, so that weights are a public linear map of them: one vector
beside the models. Lineage: the doubly robust learner (Kennedy 2023), as a series (Semenova and Chernozhukov 2021).
"""

# Proof: pair_scores.proof.md

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.bases import Basis
from counterveil.numerics.products import WholeSum, blocks
from counterveil.numerics.shrinkage import spike_and_slab
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat
from counterveil.results.answering import settled
from counterveil.results.functions import (
    PLAUSIBLE,
    TYPICAL_SD,
    CateModel,
    CateQuestion,
    Unshrunk,
    decided,
    pays,
)
from counterveil.session import BaseSession, Gate, Plan
from counterveil.settings import Series
from counterveil.statistics.linear.functions import (
    BALL_TAIL,
    FALL,
    basis_groups,
    first_size,
    higher,
    largest_basis,
    slab,
    too_many,
)
from counterveil.statistics.outcome_place import Spread
from counterveil.statistics.pairs.effect import (
    ALIGNED,
    FEATURE_BITS,
    LARGEST_WEIGHT,
    MOST_NUMBERS,
    REJECTS,
    SCORE_BITS,
    Choice,
    Models,
    PublicRows,
    Scores,
    Target,
    asked,
    best_scores,
    plan_of,
    provenance,
    release_models,
    searched,
    shortened,
)

EFFECTS = "effects"
# The part of the budget that is left for functions, and of it that of models.
_MODELS = Fraction(3, 10)
# Variances that a covariate's weights may have, in units of the supposed variance of effects; and the least part that
# scores may vary of what models say, and events of their average.
_SCALES, _LEAST_PART = (0.003, 0.03, 0.3, 1.0), 0.25
# Supposed clip of scores, in parts of the outcome's range and of the largest weight: of events, and of numbers whose
# place is searched.
_CLIPS = 0.5, 2 * TYPICAL_SD
# A function of mean square one moves by so much where a pair is replaced.
_PAIR = 2


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """A basis, its values at every row made white (`rows`), and the map from white weights to those of the basis."""

    basis: Basis
    rows: PublicRows
    back: Floats
    mean: Floats

    @classmethod
    def of(cls, table: Table, basis: Basis) -> Functions:
        """Return the functions of a table's public covariates."""
        values = basis.features(table.covariates)
        sizes, vectors = np.linalg.eigh(values.T @ values / table.rows)
        kept = sizes > 1e-9 * float(sizes[-1])
        back = vectors[:, kept] / np.sqrt(sizes[kept])
        white = values @ back
        order = np.ones(white.shape[1], dtype=np.int64)
        return cls(basis, shortened(white, order, np.ones(len(order))), back, values.mean(axis=0))


def function_pays(session: BaseSession, question: CateQuestion) -> bool:
    """Return whether a function is expected to be closer to effects that differ than one number; nothing is spent."""
    table = session.table
    if largest_basis(table, Series()) is None:
        return False
    first = first_size(table)
    return pays(_noise(first, table, question.budget), first, table.rows)


def _noise(size: int, table: Table, budget: Budget) -> float:
    """Return the expected noise of effects, in parts of the outcome's range."""
    on = searched(table.study)
    own = float(dict(_plan(budget, on).amounts)[EFFECTS])
    each = sqrt(size + 2) if budget.pure else 1.0
    return _PAIR * each * size * LARGEST_WEIGHT * _CLIPS[on] / (own * table.rows)


def best_basis(table: Table, budget: Budget, settings: Series) -> Basis | None:
    """Return the functions of the degree that is expected to err least; reads public numbers."""
    found: list[tuple[float, Basis]] = []
    for degree in (settings.degree,) if settings.degree else (1, 2, 3):
        basis = largest_basis(table, replace(settings, degree=degree))
        if basis is None or basis.size * table.rows > MOST_NUMBERS:
            continue
        # Intervals allow for orders beyond the last as for those of a function with a kink.
        left = (
            PLAUSIBLE**2 * degree ** (2 - FALL) * sum(order**-2.0 for order in range(degree + 1, degree + 7))
        )
        sampling = (2 * TYPICAL_SD) ** 2 * basis.size / table.rows
        found.append((_noise(basis.size, table, budget) ** 2 + sampling + left, basis))
    return min(found, key=lambda one: one[0])[1] if found else None


def _plan(budget: Budget, on: bool) -> Plan:
    return plan_of(budget, _MODELS, on, EFFECTS)


def pair_series(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, treatments and outcomes being private."""
    table = session.table
    settings = question.settings if isinstance(question.settings, Series) else Series()
    basis = best_basis(table, question.budget, settings)
    if basis is None:
        raise too_many(session)
    own, choice = asked(session, question)
    assert isinstance(own, CateQuestion)
    choice = replace(choice, plan=_plan(question.budget, searched(session.study)))
    functions = Functions.of(table, basis)

    def compute(gate: Gate) -> CateModel:
        return _released(gate, session, own, choice, functions)

    return settled(CateModel, session, own, choice.plan, compute)


def function_sums(
    rows: PublicRows, scores: Scores, treated: NDArray[np.bool_], outcome: Integers
) -> list[Fraction]:
    """Return the sums of functions times v, and of v^2 times the longest row's length, as exact numbers."""
    total, v = WholeSum(), scores.values(treated, outcome)
    for part in blocks(len(v)):
        total.add(rows.steps[part].T @ v[part][:, None])
    one, squares = 1 << SCORE_BITS, sum(int((v[part] * v[part]).sum()) for part in blocks(len(v)))
    found = [Fraction(int(value), one << FEATURE_BITS) for value in total.whole()[:, 0]]
    return [*found, rows.length * Fraction(squares, one * one)]


def function_sensitivity(rows: PublicRows) -> Fraction:
    """Return a bound on the Euclidean length by which a replaced pair moves these sums."""
    return _PAIR * rows.length


def _released(
    gate: Gate, session: BaseSession, question: CateQuestion, choice: Choice, functions: Functions
) -> CateModel:
    table, rows = session.table, functions.rows
    models, spread = release_models(gate, table, choice)
    target = Target.of(Estimand.ATE, models.propensity)
    size = float(function_sensitivity(rows) / dict(choice.plan.amounts)[EFFECTS])
    noise = size**2 * (rows.z.shape[1] + 2 if question.budget.pure else 1)
    scores = best_scores(choice.rows, models, spread, target, noise)
    found = gate.release_vector(
        EFFECTS,
        lambda: function_sums(rows, scores, table.treated, table.outcome),
        function_sensitivity(rows),
    )
    known = _known(choice.rows, models, spread, functions, scores, found.floats(), found.variance)
    unit = float(session.study.outcome_range[1] - session.study.outcome_range[0]) / 2
    return _model(
        session,
        question,
        choice,
        functions,
        tuple(one * unit**k for one, k in zip(known, (1, 2, 2), strict=True)),
    )


def _known(
    features: PublicRows,
    models: Models,
    spread: Spread,
    functions: Functions,
    scores: Scores,
    released: Floats,
    noise: float,
) -> tuple[Floats, Floats, Floats]:
    """Return white weights, their covariance, and its part that is noise, in halves of the range."""
    rows, clip, middle, e = functions.rows, scores.clip, scores.middle, models.propensity
    weighted = rows.weighted
    inverse = np.linalg.inv(weighted.T @ rows.z)
    said = weighted.T @ (models.treated - models.control + middle) + clip * released[:-1]
    weights = inverse @ said
    # How rows vary is what the models say, as far as squared scores, with what noise may hide of them, allow: scores
    # add up to about nothing.
    own = [np.full(len(e), models.sd**2)] * 2
    if spread.distances is None:
        own = [np.maximum(1 - m**2, _LEAST_PART * models.sd**2) for m in (models.treated, models.control)]
    varies = e * scores.slopes[0] ** 2 * own[0] + (1 - e) * scores.slopes[1] ** 2 * own[1]
    squares = clip**2 * (float(released[-1]) + sqrt(noise)) / float(rows.length) - len(e) * middle**2
    varies *= models.fitted(None) * max(squares / float(varies.sum()), _LEAST_PART)
    sampling = (weighted * varies[:, None]).T @ weighted
    # Products of both models' errors, what a clip loses and weights that are capped: as large along every function.
    second, left, left_sd = models.products(Target.of(Estimand.ATE, e).errors, features)
    left = left if abs(left) > REJECTS * left_sd else 0.0
    extra = (ALIGNED * second + scores.lost**2 + scores.capped + left**2) * np.eye(len(weights))
    drawn = clip**2 * noise * np.eye(len(weights))
    return weights, inverse @ (drawn + sampling + extra) @ inverse, inverse @ drawn @ inverse


def _model(
    session: BaseSession,
    question: CateQuestion,
    choice: Choice,
    functions: Functions,
    known: tuple[Floats, ...],
) -> CateModel:
    white, white_covariance, white_noise = known
    basis, back = functions.basis, functions.back
    weights, covariance, noise = back @ white, back @ white_covariance @ back.T, back @ white_noise @ back.T
    covariance = covariance + (BALL_TAIL - 1.0) * noise if question.budget.pure else covariance
    forth = np.linalg.pinv(back)
    information = forth.T @ np.linalg.inv(white_covariance) @ forth
    steady = information + 1e-10 * np.trace(information) / len(information) * np.eye(len(information))
    width = float(session.study.outcome_range[1] - session.study.outcome_range[0])
    groups = basis_groups(basis)
    sparse = spike_and_slab(steady, information @ weights, groups, slab(basis, width), _SCALES)
    spread = sqrt(float(np.trace(white_noise)))
    said = provenance(session, question, choice, {"functions": basis.size, "noise_of_effects": spread})
    said["method"] = "series regression of doubly robust scores"
    said["not_covered"] = (Caveat.NOT_POLYNOMIAL, *said["not_covered"])
    found = CateModel(
        study=session.study,
        basis=basis,
        weights=sparse.weights,
        covariance=covariance,
        noise_covariance=noise,
        shrinkage=weights - sparse.weights,
        level=question.level,
        spent=question.budget,
        higher=higher(basis, sparse.weights**2 + np.minimum(np.diag(covariance), sparse.variances)),
        **said,
    )
    measured = Unshrunk(weights, covariance, basis.orders, functions.mean)
    return decided(found, measured, question.method == "auto" and question.settings is None)
