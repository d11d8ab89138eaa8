"""The effect as a function of public covariates where treatments and outcomes are private.

Doubly robust scores psi_i (Kennedy 2023) [1]_ are regressed on public functions b(x) of the covariates
(Semenova and Chernozhukov 2021) [2]_. With w_i the public weight of row i, z_i its functions made white (mean
square one, uncorrelated) and G = sum_i w_i z_i z_i',

    coefficients = G^-1 sum_i w_i z_i psi_i,

a public linear map of one released vector, beside the releases of models (`releases.py`). Coefficients are
then shrunk towards zero, covariate by covariate. In: public covariates and released sums. Out: a `CateModel`,
whose effects are in units of the outcome.

Proof: "Functions" of `rows/pairs/pair_scores.proof.md`, by which clipped scores times functions, and their
squares, move by at most twice the longest row; models: `rows/pairs/pair_moments.proof.md`; place of outcomes:
`rows/histogram.proof.md`. All else is post-processing. Numbers of this module were set on designs of
`experiments/third_level`; privacy does not depend on them.

References
----------
.. [1] Kennedy, E. H. (2023). Towards optimal doubly robust estimation of heterogeneous causal effects.
   Electronic Journal of Statistics 17, 3008-3049.
.. [2] Semenova, V. and Chernozhukov, V. (2021). Debiased machine learning of conditional average treatment
   effects and other causal functions. The Econometrics Journal 24, 264-289.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.estimators.linear.series_basis import (
    BALL_TAIL,
    FALL,
    basis_groups,
    first_size,
    higher,
    largest_basis,
    slab,
    too_many,
)
from counterveil.estimators.method import Prepared
from counterveil.estimators.outcome_place import Spread
from counterveil.estimators.pairs.budget import LARGEST_WEIGHT, Choice, chosen, plan_of, searched
from counterveil.estimators.pairs.features import MOST_NUMBERS, PairFeatures, PublicFeatures
from counterveil.estimators.pairs.models import Models
from counterveil.estimators.pairs.provenance import proved, provenance, with_covariates
from counterveil.estimators.pairs.releases import ALIGNED, REJECTS, release_models
from counterveil.estimators.pairs.scores import Scores, Target, best_scores
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.products import blocks
from counterveil.numerics.shrinkage import spike_and_slab
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import Estimator
from counterveil.results.answering import Facts
from counterveil.results.functions import (
    PLAUSIBLE,
    TYPICAL_SD,
    CateModel,
    CateQuestion,
    Unshrunk,
    fall_back_to_average,
    is_worthwhile,
)
from counterveil.rows.pairs.functions import FunctionSums, function_sensitivity
from counterveil.rows.pairs.vectors import shortened
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate
from counterveil.settings import Series

EFFECTS = "effects"
# The part of the budget that models take, of what places leave; functions take the rest.
_MODELS = Fraction(3, 10)
# Degrees that are compared where settings name none.
_DEGREES = (1, 2, 3)
# Orders beyond the last that the choice of a degree allows for.
_BEYOND = 6
# Variances that a covariate's weights may have, in units of the supposed variance of effects.
_SCALES = (0.003, 0.03, 0.3, 1.0)
# The least part that scores may vary of what models say, and events of their average.
_LEAST_PART = 0.25
# Supposed clip of scores, in parts of the outcome's range and of the largest weight: of events, and of
# numbers whose place is searched.
_CLIPS = 0.5, 2 * TYPICAL_SD
# A function of mean square one moves by so much where a pair is replaced.
_PAIR = 2
# Functions whose mean square beside others is below this part of the largest one's depend on them.
_DEPENDENT = 1e-9
# A ridge on the information, in parts of its mean, lest rounding make it singular.
_RIDGE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class WhiteFunctions:
    """The values of functions at every row, made white: made whenever some rows are read, and not held."""

    basis: Basis
    covariates: Mapping[str, Floats]
    back: Floats
    shape: tuple[int, int]

    def __getitem__(self, rows: slice, /) -> Floats:
        """Return the white functions of some rows."""
        return self.basis.features(self.covariates, rows) @ self.back


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """A basis, and its values at every row made white.

    Attributes
    ----------
    basis : Basis
        Functions b of the covariates.
    rows : PublicFeatures
        z = b @ back of every row, with mean square one, and weights of rows.
    back : ndarray of float, shape (k, p)
        Weights of the basis are back @ weights of z.
    mean : ndarray of float, shape (k,)
        Mean of b over the rows.
    """

    basis: Basis
    rows: PublicFeatures
    back: Floats
    mean: Floats

    @classmethod
    def of(cls, public: PublicRows, basis: Basis) -> Functions:
        """Return the functions of public covariates."""
        gram = np.zeros((basis.size, basis.size))
        total = np.zeros(basis.size)
        for span in blocks(public.rows):
            values = basis.features(public.covariates, span)
            gram += values.T @ values
            total += values.sum(axis=0)
        sizes, vectors = np.linalg.eigh(gram / public.rows)
        independent = sizes > _DEPENDENT * float(sizes[-1])
        back = vectors[:, independent] / np.sqrt(sizes[independent])
        white = WhiteFunctions(basis, public.covariates, back, (public.rows, back.shape[1]))
        vectors_of_rows = shortened(white, np.ones(back.shape[1]))
        rows = PublicFeatures(white, vectors_of_rows.scale, vectors_of_rows.weight, vectors_of_rows.length)
        return cls(basis, rows, back, total / public.rows)


@dataclass(frozen=True, slots=True, eq=False)
class WhiteWeights:
    """Weights of white functions as released: (p,), their covariance (p, p), and its part that is noise."""

    weights: Floats
    covariance: Floats
    noise: Floats

    def times(self, unit: float) -> WhiteWeights:
        """Return the same in other units."""
        return WhiteWeights(self.weights * unit, self.covariance * unit**2, self.noise * unit**2)


def function_pays(public: PublicData, question: CateQuestion) -> bool:
    """Return whether a function is expected to be closer to effects that differ than one number; nothing is spent."""
    columns = public.columns
    if largest_basis(columns, Series()) is None:
        return False
    first = first_size(columns)
    return is_worthwhile(_noise(first, columns, question.budget), first, columns.rows)


def _noise(size: int, public: PublicRows, budget: Budget) -> float:
    """Return the expected noise of effects, in parts of the outcome's range."""
    place_searched = searched(public.study)
    amount = float(dict(plan_of(budget, _MODELS, [place_searched], last=EFFECTS).amounts)[EFFECTS])
    ball = sqrt(size + 2) if budget.pure else 1.0
    return _PAIR * ball * size * LARGEST_WEIGHT * _CLIPS[place_searched] / (amount * public.rows)


def best_basis(public: PublicRows, budget: Budget, settings: Series) -> Basis | None:
    """Return the functions of the degree that is expected to err least; reads public numbers."""
    candidates: list[tuple[float, Basis]] = []
    for degree in (settings.degree,) if settings.degree else _DEGREES:
        basis = largest_basis(public, replace(settings, degree=degree))
        if basis is None or basis.size * public.rows > MOST_NUMBERS:
            continue
        # Intervals allow for orders beyond the last as for those of a function with a kink.
        further = sum(order**-2.0 for order in range(degree + 1, degree + 1 + _BEYOND))
        left_out = PLAUSIBLE**2 * degree ** (2 - FALL) * further
        sampling = (2 * TYPICAL_SD) ** 2 * basis.size / public.rows
        candidates.append((_noise(basis.size, public, budget) ** 2 + sampling + left_out, basis))
    return min(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def pair_series(public: PublicData, question: CateQuestion) -> Prepared[CateModel]:
    """Return the effect as a function of the covariates, prepared for its releases."""
    columns = public.columns
    settings = question.settings if isinstance(question.settings, Series) else Series()
    basis = best_basis(columns, question.budget, settings)
    if basis is None:
        raise too_many(columns)
    automatic = question.method == "auto" and question.settings is None
    question = with_covariates(public.study, question)
    choice = chosen(columns, question.budget)
    plan = plan_of(question.budget, _MODELS, [searched(public.study)], last=EFFECTS)
    choice = replace(choice, plan=plan)
    functions = Functions.of(columns, basis)

    def estimate(gate: Gate) -> Facts:
        released = _released(gate, columns, choice=choice, functions=functions, budget=question.budget)
        facts, measured = _model(
            columns, choice, functions=functions, released=released, budget=question.budget
        )
        return fall_back_to_average(facts, measured, level=question.level, automatic=automatic)

    return Prepared(question=question, plan=plan, estimate=estimate, answer=CateModel, **proved(choice))


def _released(
    gate: Gate, public: PublicRows, choice: Choice, functions: Functions, budget: Budget
) -> WhiteWeights:
    """Return the weights as released, in units of the outcome."""
    rows = functions.rows
    ((models, spread),) = release_models(gate, public, choice, [public.study])
    target = Target(Estimand.ATE, models.propensity)
    size = float(function_sensitivity(rows) / dict(choice.plan.amounts)[EFFECTS])
    noise = size**2 * (rows.z.shape[1] + 2 if budget.pure else 1)
    scores = best_scores(choice.features, models, spread=spread, target=target, noise=noise)
    released = FunctionSums(rows, scores).release(gate, EFFECTS)
    weights = _white_weights(
        functions,
        choice.features,
        models,
        spread,
        scores=scores,
        released=released.floats(),
        noise=released.variance,
    )
    low, high = public.study.outcome_range
    return weights.times(float(high - low) / 2)


def _white_weights(
    functions: Functions,
    features: PairFeatures,
    models: Models,
    spread: Spread,
    *,
    scores: Scores,
    released: Floats,
    noise: float,
) -> WhiteWeights:
    """Return white weights, their covariance, and its part that is noise, in halves of the range.

    `released` are the sums of functions with scores, then that of squared scores times the length of the
    longest row, with noise of this variance on each.
    """
    rows = functions.rows
    clip = scores.clip
    middle = scores.middle
    e = models.propensity
    inverse = np.linalg.inv(rows.gram(rows.weight))
    from_models = rows.along(rows.weight * (models.treated - models.control + middle))
    weights = inverse @ (from_models + clip * released[:-1])
    # How rows vary is what the models say, as far as squared scores, with what noise may hide of them, allow:
    # scores add up to about nothing.
    if spread.distances is None:
        least = _LEAST_PART * models.sd**2
        variances = [np.maximum(1 - mean**2, least) for mean in (models.treated, models.control)]
    else:
        variances = [np.full(len(e), models.sd**2)] * 2
    varies = e * scores.slopes[0] ** 2 * variances[0] + (1 - e) * scores.slopes[1] ** 2 * variances[1]
    likely = (float(released[-1]) + sqrt(noise)) / float(rows.length)
    squares = clip**2 * likely - len(e) * middle**2
    varies *= models.fitted(None) * max(squares / float(varies.sum()), _LEAST_PART)
    sampling = rows.gram(rows.weight**2 * varies)
    # Products of both models' errors, what a clip loses and weights that are capped: as large along every
    # function.
    second, shrinkage, shrinkage_sd = models.products(Target(Estimand.ATE, e).errors, features)
    shrinkage = shrinkage if abs(shrinkage) > REJECTS * shrinkage_sd else 0.0
    extra = (ALIGNED * second + scores.lost(likely) ** 2 + scores.capped + shrinkage**2) * np.eye(
        len(weights)
    )
    drawn = clip**2 * noise * np.eye(len(weights))
    return WhiteWeights(
        weights=weights,
        covariance=inverse @ (drawn + sampling + extra) @ inverse,
        noise=inverse @ drawn @ inverse,
    )


def _model(
    public: PublicRows, choice: Choice, functions: Functions, released: WhiteWeights, budget: Budget
) -> tuple[Facts, Unshrunk]:
    """Return the fields of a model of shrunk weights, and the weights before they were shrunk."""
    basis = functions.basis
    back = functions.back
    weights = back @ released.weights
    covariance = back @ released.covariance @ back.T
    noise = back @ released.noise @ back.T
    covariance = covariance + (BALL_TAIL - 1.0) * noise if budget.pure else covariance
    forth = np.linalg.pinv(back)
    information = forth.T @ np.linalg.inv(released.covariance) @ forth
    steady = information + _RIDGE * np.trace(information) / len(information) * np.eye(len(information))
    low, high = public.study.outcome_range
    groups = basis_groups(basis)
    sparse = spike_and_slab(
        steady, information @ weights, groups=groups, base=slab(basis, float(high - low)), scales=_SCALES
    )
    noise_of_effects = sqrt(float(np.trace(released.noise)))
    facts = provenance(public.study, choice, {"functions": basis.size, "noise_of_effects": noise_of_effects})
    facts["method"] = Estimator.SERIES_OF_SCORES
    facts["not_covered"] = (Caveat.NOT_POLYNOMIAL, *facts["not_covered"])
    model = Facts(
        facts,
        study=public.study,
        basis=basis,
        weights=sparse.weights,
        covariance=covariance,
        noise_covariance=noise,
        shrinkage=weights - sparse.weights,
        higher=higher(basis, sparse.weights**2 + np.minimum(np.diag(covariance), sparse.variances)),
    )
    return model, Unshrunk(weights, covariance, basis.orders, functions.mean)
