"""Effects as functions of covariates (CATE) where only outcomes are private: an R-learner with noisy sums.

    y_i = phi(x_i) . b + (a_i - p(x_i)) phi(x_i) . theta + error,    effect(x) = phi(x) . theta,

in units of the outcome y: treatment a minus its propensity p(x), times functions phi of covariates, makes the
rows of the effect, beside the same functions for the outcome (Nie and Wager 2021, `series_features.py`).
Covariates and treatments are public, so that functions, propensity and all sums over rows may be taken from
the data, and the weights are a public linear map of the outcomes. They are released in three looks, each
around the predictions of the last, the second and third with residuals clipped at a size that was released
before:

- first, mean outcomes of the arms;
- second, a first model of outcomes and effects;
- third, the effects.

Why it is private: with residuals clipped to [-c, c] and public vectors m_i of length at most L, one outcome
moves sum_i m_i r_i by at most min(2 c, range) L in Euclidean length, and noise (Gaussian, or of the l2 ball
for a pure budget) is scaled to that; counts and squares of residuals have bounds of their own. Proof:
`rows/linear/linear_map.proof.md`. What is measured, and in which noise, is chosen by the error that is
expected after it (`series_looks.py`); what looks say together is a normal posterior of all weights
(`series_posterior.py`).

In: public rows, and private outcomes, read through the gate alone (it adds noise and lets each release of the
plan through once; the plan names them and the part of the budget that each pays). Out: a `CateModel` in units
of the outcome, with intervals of the weights before they were shrunk.

Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`, some
of them by `python -m experiments.cate.tuning`; privacy does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS
from counterveil.estimators.linear.series_basis import (
    BALL_TAIL,
    FEW,
    first_size,
    higher,
    largest_basis,
    too_many,
)
from counterveil.estimators.linear.series_features import Functions, functions_of
from counterveil.estimators.linear.series_looks import NoiseSize, SeriesLook, best_look
from counterveil.estimators.linear.series_posterior import LookWeights, Posterior, before_release, updated
from counterveil.estimators.method import Prepared
from counterveil.numerics.arrays import Floats
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.noise_shape import matrix_power
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import Estimator, Noise, Quantity, ReleaseRow, ShapedNoise, TwoSearches
from counterveil.results.answering import Facts
from counterveil.results.functions import (
    TYPICAL_SD,
    CateModel,
    CateQuestion,
    Unshrunk,
    fall_back_to_average,
    is_worthwhile,
)
from counterveil.rows.linear.linear_map import Residuals
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate, Kind, Plan
from counterveil.settings import Series

PAGE = "rows/linear/linear_map.proof.md"
LEVELS = "arm levels"
MODEL = "model"
EFFECTS = "effects"
SIZE = "size of residuals"
SQUARES = "squares of residuals"
# The share of residuals that is clipped, times rows and mu a weight of first degree: in the first look and
# the last.
_CLIPPED = (2.4, 1.2)
_MOST_CLIPPED = 0.12
# Nearer to an end of the range than this part of it, a mean outcome may be carried by few people, whom clipping
# would cut off: nothing is clipped then.
_NEAR_END = 0.05
# Nor where it is nearer than so many times the share that is clipped.
_TIMES_CLIPPED = 1.25
# A pure budget is worth about a mu of this part of its epsilon.
_PURE_MU = 0.25
# Rows for each function of first degree from which, with more than a few covariates, functions pay.
_ROWS_A_FUNCTION = 80
# Supposed clips in standard deviations of outcomes: beside Gaussian noise, and beside pure noise.
_CLIP_SDS = 2
_PURE_CLIP_SDS = 3
# The least squared residual, in parts of the squared clip.
_LEAST_SQUARE = 0.01
# Steps of the search for a size of residuals, on a grid of powers of it from this part of the range.
SEARCH_STEPS = 5
_FINEST = 1.0 / 128
# Standard deviations of a noisy count that are left above the size that is searched for.
_SAFE = 2.0
_NOT_COVERED = (
    Caveat.UNDECLARED_COVARIATES,
    Caveat.NOT_POLYNOMIAL,
    Caveat.UNEVEN_VARIANCE_WITHIN_ARM,
    Caveat.CLAMPING,
    Caveat.CLIPPED_RESIDUALS,
    Caveat.BEYOND_COVARIATES,
    Caveat.COVERAGE_MEASURED,
)


@dataclass(frozen=True, slots=True)
class BudgetPercents:
    """Parts of the budget in percent; effects take the rest.

    Attributes
    ----------
    levels : int
        Mean outcomes of both arms.
    sizes : int
        Both searches for a size of residuals.
    squares : int
        Squares of residuals, in both looks.
    model : int
        The first model of outcomes and effects.
    """

    levels: int
    sizes: int
    squares: int
    model: int

    @property
    def effects(self) -> int:
        """The part of the last look."""
        return 100 - self.levels - self.sizes - self.squares - self.model


_FEW_COVARIATES = BudgetPercents(levels=4, sizes=7, squares=2, model=20)
_MANY_COVARIATES = BudgetPercents(levels=4, sizes=7, squares=2, model=45)
_PURE = BudgetPercents(levels=5, sizes=18, squares=4, model=25)


@dataclass(frozen=True, slots=True, eq=False)
class SeriesDesign:
    """What is public of an answer before anything is released.

    Attributes
    ----------
    functions : Functions
        The basis, and the rows of the regression.
    plan : Plan
        Releases, and what each pays.
    clipped : tuple of two floats
        Shares of residuals that the first and the last look may clip.
    width : float
        Width of the outcome's range.
    pure : bool
        Whether noise is pure.
    """

    functions: Functions
    plan: Plan
    clipped: tuple[float, float]
    width: float
    pure: bool


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What one look measured, the clip of its residuals, and their mean squares of control and treated."""

    weights: LookWeights
    clip: float
    squares: Floats


def function_pays(public: PublicData, question: CateQuestion) -> bool:
    """Return whether a function is expected to be closer to effects that differ than one number; nothing is spent."""
    columns = public.columns
    largest = largest_basis(columns, Series())
    first = first_size(columns)
    if largest is None:
        return False
    few = len(columns.study.covariates) <= FEW
    if not few and columns.rows < _ROWS_A_FUNCTION * first:
        return False
    return is_worthwhile(_noise(columns, question, largest.size, first), first, columns.rows)


def _noise(public: PublicRows, question: CateQuestion, largest: int, first: int) -> float:
    """Return the noise of effects that is expected of the last look, in parts of the outcome's range.

    Gaussian noise: that of the functions of first degree, with residuals clipped at a typical size. Pure
    noise is drawn for all functions together, so that each has more of it the more there are, and residuals
    are clipped less closely.
    """
    share = float(np.mean(public.treated))
    effects_share = _budget_percents(len(public.study.covariates), question.budget.pure).effects / 100
    if question.budget.pure:
        size = largest
        sd = _PURE_CLIP_SDS * TYPICAL_SD * sqrt(largest) / (effects_share * float(question.budget.epsilon))
    else:
        size = first
        sd = _CLIP_SDS * TYPICAL_SD / (_mu(question) * sqrt(effects_share))
    return size * sd / (2 * share * (1 - share) * public.rows)


def series(public: PublicData, question: CateQuestion) -> Prepared[CateModel]:
    """Return the effect as a function of the covariates, prepared for its releases."""
    settings = question.settings if isinstance(question.settings, Series) else Series()
    columns = public.columns
    functions = functions_of(columns, settings)
    if functions is None:
        raise too_many(columns)
    design = _design(functions, question)
    automatic = question.method == "auto" and question.settings is None

    def estimate(gate: Gate) -> Facts:
        facts, measured = _released(gate, design)
        return fall_back_to_average(facts, measured, level=question.level, automatic=automatic)

    return Prepared(
        question=question,
        plan=design.plan,
        estimate=estimate,
        answer=CateModel,
        pages=(PAGE,),
        mechanisms=("ball", question.mechanism) if design.pure else ("gaussian",),
    )


def _design(functions: Functions, question: CateQuestion) -> SeriesDesign:
    low, high = functions.public.study.outcome_range
    size = first_size(functions.public)
    per_weight = functions.rows * _mu(question) / (2 * size)
    first, last = (min(_MOST_CLIPPED, multiple / per_weight) for multiple in _CLIPPED)
    return SeriesDesign(
        functions=functions,
        plan=_plan(functions, question),
        clipped=(first, last),
        width=float(high - low),
        pure=question.budget.pure,
    )


def _mu(question: CateQuestion) -> float:
    budget = question.budget
    return _PURE_MU * float(budget.epsilon) if budget.pure else float(mu_of(budget.epsilon, budget.delta))


def _budget_percents(covariates: int, pure: bool) -> BudgetPercents:
    """Return how the budget is split for this many covariates."""
    if pure:
        return _PURE
    return _FEW_COVARIATES if covariates <= FEW else _MANY_COVARIATES


def _plan(functions: Functions, question: CateQuestion) -> Plan:
    percents = _budget_percents(len(functions.public.study.covariates), question.budget.pure)
    shares = {LEVELS: Fraction(percents.levels, 100), MODEL: Fraction(percents.model, 100)}
    shares[EFFECTS] = Fraction(percents.effects, 100)
    searched = [step for look in (1, 2) for step in search_names(f"{SIZE} {look}")]
    shares |= dict.fromkeys(searched, Fraction(percents.sizes, 100 * len(searched)))
    shares |= {f"{SQUARES} {look}": Fraction(percents.squares, 200) for look in (1, 2)}
    vectors = (LEVELS, MODEL, EFFECTS, f"{SQUARES} 1", f"{SQUARES} 2")
    return Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(vectors, Kind.VECTOR))


def _released(gate: Gate, design: SeriesDesign) -> tuple[Facts, Unshrunk]:
    """Return the fields of the model, and the effect's weights before they were shrunk."""
    functions = design.functions
    public = functions.public
    low, high = (float(end) for end in public.study.outcome_range)
    levels = release_levels(gate, LEVELS, public)
    prediction = levels[public.treated.astype(np.intp)]
    near = float(np.minimum(levels - low, high - levels).min()) / design.width
    posterior = before_release(functions, design.width)
    look = _look(gate, design, posterior, prediction, number=1, near=near)
    posterior = updated(
        functions, posterior, look=look.weights, width=design.width, clipped=design.clipped[0]
    )
    prediction = np.clip((low + high) / 2 + functions.predicted(posterior.weights), low, high)
    before = posterior
    look = _look(gate, design, posterior, prediction, number=2, near=near)
    posterior = updated(
        functions, posterior, look=look.weights, width=design.width, clipped=design.clipped[1]
    )
    return _model(design, before, posterior, look)


def release_levels(gate: Gate, name: str, public: PublicRows) -> Floats:
    """Return the mean outcomes of control and treated, each from the sum over its arm."""
    low, high = public.study.outcome_range
    around_middle = Residuals.of(public, np.full(public.rows, float(low + high) / 2))
    sums = around_middle.release_sums(gate, name)
    levels = float(low + high) / 2 + sums / around_middle.arm_sizes
    return np.asarray(np.clip(levels, float(low), float(high)))


def search_names(name: str) -> tuple[str, ...]:
    """Return the names of the releases of one search for a size."""
    return tuple(f"{name}, step {step + 1}" for step in range(SEARCH_STEPS))


def share_above(share: float, rows: int, noise_variance: float) -> float:
    """Return the share of residuals that a search leaves above: the one asked for, or what noise hides."""
    return max(share, _SAFE * sqrt(noise_variance) / rows)


def find_size(gate: Gate, name: str, residuals: Residuals, share: float) -> float:
    """Return a size that all but about a share of the residuals stay below, by a noisy binary search of counts."""
    rows = len(residuals.treated)
    grid = np.ceil(OUTCOME_STEPS * np.geomspace(_FINEST, 1.0, 2**SEARCH_STEPS)).astype(np.int64)
    low = 0
    high = len(grid) - 1
    for step in search_names(name):
        middle = (low + high) // 2
        count = residuals.release_count(gate, step, int(grid[middle]))
        if float(count) >= rows * (1 - share_above(share, rows, count.noise.variance)):
            high = middle
        else:
            low = min(middle + 1, high)
    return float(int(grid[high]) * residuals.unit)


def _look(
    gate: Gate, design: SeriesDesign, posterior: Posterior, prediction: Floats, *, number: int, near: float
) -> Looked:
    """Return what the first or the last look measures, around a prediction in the outcome's units.

    `near` is how near a mean outcome lies to an end of the range, in parts of it.
    """
    functions = design.functions
    public = functions.public
    share = design.clipped[number - 1]
    name = f"{SIZE} {number}"
    size = find_size(gate, name, Residuals.of(public, prediction), share)
    noise_variance = design.plan.noise(search_names(name)[0], Fraction(1)).variance
    above = share_above(share, public.rows, noise_variance)
    near_bound = near < max(_NEAR_END, _TIMES_CLIPPED * above)
    residuals = Residuals.of(public, prediction, design.width if near_bound else size)
    squares, sds = residuals.release_squares(gate, f"{SQUARES} {number}")
    squares = np.clip(squares + sds, _LEAST_SQUARE * residuals.clip**2, residuals.clip**2)
    effects = number == 2
    name = EFFECTS if effects else MODEL
    max_norm = min(2 * residuals.clip, design.width)
    noise = NoiseSize(max_norm, float(design.plan.amount(name, Kind.VECTOR)), design.pure)
    look = best_look(functions, posterior, float(squares.mean()), noise, effects=effects)
    root = matrix_power(look.shape, 0.5)
    vectors = functions.mapped(look.columns, matrix_power(look.shape, -0.5) @ look.solve)
    white, variance = residuals.release_map(gate, name, vectors, len(look.solve))
    weights = _measured(functions, look, prediction, squares, root=root, white=white, variance=variance)
    return Looked(weights, residuals.clip, squares)


def _measured(
    functions: Functions,
    look: SeriesLook,
    prediction: Floats,
    squares: Floats,
    *,
    root: Floats,
    white: Floats,
    variance: float,
) -> LookWeights:
    """Return A (residuals + prediction) from the released map of residuals; its noise is root root' variance."""
    low, high = (float(end) for end in functions.public.study.outcome_range)
    predicted = functions.products(prediction - (low + high) / 2)
    noise = root @ root * variance
    return LookWeights(
        places=look.measured,
        values=root @ white + look.solve @ predicted[look.columns],
        covariance=noise + look.sampling(functions, squares),
        noise=noise,
        design=look.design(functions),
    )


def _unshrunk(functions: Functions, before: Posterior, look: LookWeights) -> tuple[Floats, Floats, Floats]:
    """Return the weights of the effect that intervals are about, their covariance, and its part that is noise.

    A measured weight is A Z theta + noise. What A Z holds of other weights is taken off as far as they were
    known before, and the rest of it, with all that was not measured, has the covariance in which it was
    known.
    """
    size = functions.size
    picked = np.zeros_like(look.design)
    picked[np.arange(len(look.places)), look.places] = 1.0
    others = look.design - picked
    weights = before.weights[size:].copy()
    measured = look.places - size
    weights[measured] = look.values - others @ before.weights
    # How the error of every effect weight depends on the error of what was known before.
    carried = np.zeros((size, 2 * size))
    carried[np.arange(size), np.arange(size) + size] = 1.0
    carried[measured] = -others
    covariance = carried @ before.cautious @ carried.T
    noise = np.zeros((size, size))
    noise[np.ix_(measured, measured)] = look.noise
    covariance[np.ix_(measured, measured)] += look.covariance
    return weights, covariance, noise


def _model(
    design: SeriesDesign, before: Posterior, posterior: Posterior, look: Looked
) -> tuple[Facts, Unshrunk]:
    """Return the fields of a model of shrunk weights, and the effect's weights before they were shrunk."""
    functions = design.functions
    size = functions.size
    unshrunk, covariance, noise = _unshrunk(functions, before, look.weights)
    weights = posterior.weights[size:]
    tail = (BALL_TAIL - 1.0) * noise if design.pure else 0.0
    model_noise = Noise.BALL if design.pure else Noise.GAUSSIAN
    facts = Facts(
        study=functions.public.study,
        method=Estimator.SERIES,
        basis=functions.basis,
        weights=weights,
        covariance=covariance + tail,
        noise_covariance=noise,
        shrinkage=unshrunk - weights,
        releases=_releases(model_noise),
        not_covered=_NOT_COVERED,
        details={
            "rows": functions.rows,
            "functions": size,
            "measured_functions": len(look.weights.places),
            "clip": look.clip,
            "residual_sd": sqrt(float(look.squares.mean())),
            "noise_of_effects": _mean_noise(functions, noise),
            "budget_split": _split(design.plan),
        },
        higher=higher(functions.basis, posterior.weights[size:] ** 2 + np.diag(posterior.cautious)[size:]),
    )
    mean = functions.plain[:size, 0] / functions.plain[0, 0] * float(functions.basis.scale[0])
    return facts, Unshrunk(unshrunk, covariance + tail, functions.basis.orders, mean)


def _mean_noise(functions: Functions, noise: Floats) -> float:
    """Return the root mean square over the rows of the noise in the unshrunk effects."""
    size = functions.size
    return sqrt(max(float(np.einsum("ij,ji->", functions.plain[:size, :size], noise)), 0.0) / functions.rows)


def _releases(noise: Noise) -> tuple[ReleaseRow, ...]:
    return (
        (Quantity.ARM_LEVELS, noise),
        (Quantity.RESIDUAL_SIZES, TwoSearches(len(search_names("")))),
        (Quantity.RESIDUAL_SQUARES, noise),
        (Quantity.FIRST_MODEL, ShapedNoise(noise, several=False)),
        (Quantity.EFFECTS, ShapedNoise(noise, several=True)),
    )


def _split(plan: Plan) -> str:
    """Return the parts of the budget in words, searches added up."""
    added_to = {f"{SQUARES} {look}": SQUARES for look in (1, 2)}
    added_to |= {step: SIZE for look in (1, 2) for step in search_names(f"{SIZE} {look}")}
    shares: dict[str, float] = {}
    for name, share in plan.parts.items():
        key = added_to.get(name, name)
        shares[key] = shares.get(key, 0.0) + share
    return ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
