"""Effects as a function where only outcomes are private: series regression with noise shaped to its predictions.

Treatment minus its propensity times functions of the covariates makes the rows of the effect, beside the same functions
for the outcome (an R-learner in one regression). Covariates and treatments are public, so that its weights are a public
linear map of the outcomes. They are released in three looks, each around the predictions of the last, with residuals
clipped at a size that was released before: mean outcomes of the arms, a first model, and the effects.

Lineage: Robinson (1988); the R-learner (Nie and Wager 2021); the matrix mechanism (Li et al. 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Table
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.noise_shape import matrix_power
from counterveil.privacy.caveats import Caveat
from counterveil.results.cate_model import CateModel
from counterveil.results.cate_question import CateQuestion
from counterveil.results.one_effect import TYPICAL_SD, Unshrunk, decided, pays
from counterveil.session import Gate, Kind, Plan, Session
from counterveil.settings import Series
from counterveil.statistics.linear.function_design import (
    FEW,
    MOST_FEATURES,
    Functions,
    beyond,
    first_size,
    functions_of,
    largest_basis,
)
from counterveil.statistics.linear.function_looks import (
    Known,
    Look,
    Measured,
    NoiseSize,
    best_look,
    learned,
    nothing,
)
from counterveil.statistics.linear.function_releases import (
    Residuals,
    left_above,
    release_levels,
    release_map,
    release_size,
    release_squares,
    search_names,
)

PAGE = "statistics/linear/linear_map.proof.md"
LEVELS, MODEL, EFFECTS = "arm levels", "model", "effects"
SIZE, SQUARES = "size of residuals", "squares of residuals"
# Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`;
# `python -m experiments.cate.tuning` compares some of them there.
# Parts of the budget in percent: levels, both searches for a size, both squares, the model; effects take the rest.
_FEW_COVARIATES, _MANY_COVARIATES, _PURE = (4, 7, 2, 20), (4, 7, 2, 45), (5, 18, 4, 25)
# The share of residuals that is clipped, times rows and mu a weight of first degree: in the first look and the last.
_CLIPPED, _MOST_CLIPPED = (2.4, 1.2), 0.12
# Nearer to an end of the range than this part of it, or than so many times the share that is clipped, a mean outcome
# may be carried by few people, whom clipping would cut off: nothing is clipped then.
_NEAR_END, _TIMES_CLIPPED = 0.05, 1.25
# A pure budget is worth about a mu of this part of its epsilon.
_PURE_MU = 0.25
# Rows for each function of first degree from which, with more than a few covariates, functions pay.
_ROWS_A_FUNCTION = 80
# Variances of what intervals allow for beyond normal noise: noise of the l2 ball has longer tails.
_BALL_TAIL = 1.25
# Weights beyond the last order are supposed to fall with this power of it.
_BEYOND_FALL = 1.0
# The least squared residual, in parts of the squared clip.
_LEAST_SQUARE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The functions, the plan, and the shares of residuals that the two looks may clip."""

    functions: Functions
    plan: Plan
    clipped: tuple[float, float]
    width: float
    pure: bool


def function_pays(session: Session, question: CateQuestion) -> bool:
    """Return whether a function is expected to be closer to effects that differ than one number; nothing is spent."""
    table = session.table
    largest, first = largest_basis(table, Series()), first_size(table)
    if largest is None:
        return False
    few = len(table.study.covariates) <= FEW
    if not few and table.rows < _ROWS_A_FUNCTION * first:
        return False
    return pays(_noise(table, question, largest.size, first), first, table.rows)


def _noise(table: Table, question: CateQuestion, largest: int, first: int) -> float:
    """Return the noise of effects that is expected of the last look, in parts of the outcome's range.

    Gaussian noise: that of the functions of first degree, with residuals clipped at a typical size. Pure noise is drawn
    for all functions together, so that each has more of it the more there are, and residuals are clipped less closely.
    """
    share = float(np.mean(table.treated))
    part = _effects_part(_parts(len(table.study.covariates), question.budget.pure)) / 100
    if question.budget.pure:
        size, sd = largest, 3 * TYPICAL_SD * sqrt(largest) / (part * float(question.budget.epsilon))
    else:
        size, sd = first, 2 * TYPICAL_SD / (_mu(question) * sqrt(part))
    return size * sd / (2 * share * (1 - share) * table.rows)


def series(session: Session, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, only outcomes being private."""
    settings = question.settings if isinstance(question.settings, Series) else Series()
    functions = functions_of(session.table, settings)
    if functions is None:
        raise _too_many(session)
    design = _design(functions, question)

    def compute(gate: Gate) -> dict[str, object]:
        return _released(gate, session, question, design).stored()

    return CateModel.from_dict(session.run(question.request(design.plan, session.study), compute))


def _design(functions: Functions, question: CateQuestion) -> Design:
    low, high = functions.table.study.outcome_range
    size = first_size(functions.table)
    per_weight = functions.rows * _mu(question) / (2 * size)
    first, last = (min(_MOST_CLIPPED, part / per_weight) for part in _CLIPPED)
    return Design(
        functions, _plan(functions, question), (first, last), float(high - low), question.budget.pure
    )


def _mu(question: CateQuestion) -> float:
    budget = question.budget
    return _PURE_MU * float(budget.epsilon) if budget.pure else float(mu_of(budget.epsilon, budget.delta))


def _parts(covariates: int, pure: bool) -> tuple[int, int, int, int]:
    """Return the parts of levels, sizes, squares and the model in percent, for this many covariates."""
    if pure:
        return _PURE
    return _FEW_COVARIATES if covariates <= FEW else _MANY_COVARIATES


def _effects_part(parts: tuple[int, int, int, int]) -> int:
    return 100 - sum(parts)


def _plan(functions: Functions, question: CateQuestion) -> Plan:
    parts = _parts(len(functions.table.study.covariates), question.budget.pure)
    levels, sizes, squares, model = parts
    shares = {LEVELS: Fraction(levels, 100), MODEL: Fraction(model, 100)}
    shares[EFFECTS] = Fraction(_effects_part(parts), 100)
    searched = [step for place in (1, 2) for step in search_names(f"{SIZE} {place}")]
    shares |= dict.fromkeys(searched, Fraction(sizes, 100 * len(searched)))
    shares |= {f"{SQUARES} {place}": Fraction(squares, 200) for place in (1, 2)}
    vectors = (LEVELS, MODEL, EFFECTS, f"{SQUARES} 1", f"{SQUARES} 2")
    return Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(vectors, Kind.VECTOR))


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """What a look released, and its residuals' clip and mean squares of control and treated."""

    measured: Measured
    clip: float
    squares: Floats


def _released(gate: Gate, session: Session, question: CateQuestion, design: Design) -> CateModel:
    functions, table = design.functions, design.functions.table
    low, high = (float(end) for end in table.study.outcome_range)
    middle = (low + high) / 2
    levels = release_levels(gate, LEVELS, table)
    prediction = levels[table.treated.astype(np.intp)]
    near = float(np.minimum(levels - low, high - levels).min()) / design.width
    known = nothing(functions, design.width)
    looked = _look(gate, design, known, prediction, 1, near)
    known = learned(functions, known, looked.measured, design.width, design.clipped[0])
    prediction = np.clip(middle + functions.predicted(known.weights), low, high)
    before = known
    looked = _look(gate, design, known, prediction, 2, near)
    known = learned(functions, known, looked.measured, design.width, design.clipped[1])
    return _model(session, question, design, before, known, looked)


def _look(gate: Gate, design: Design, known: Known, prediction: Floats, place: int, near: float) -> _Looked:
    """Return what the first or the last look measures, around a prediction in the outcome's units.

    `near` is how near a mean outcome lies to an end of the range.
    """
    functions, table, last = design.functions, design.functions.table, place == 2
    name, share = f"{SIZE} {place}", design.clipped[place - 1]
    size = release_size(gate, name, Residuals.of(table, prediction), share)
    noise_variance = design.plan.noise(search_names(name)[0], Fraction(1)).variance
    crowded = near < max(_NEAR_END, _TIMES_CLIPPED * left_above(share, table.rows, noise_variance))
    residuals = Residuals.of(table, prediction, design.width if crowded else size)
    squares, sds = release_squares(gate, f"{SQUARES} {place}", residuals)
    squares = np.clip(squares + sds, _LEAST_SQUARE * residuals.clip**2, residuals.clip**2)
    name = EFFECTS if last else MODEL
    reach = min(2 * residuals.clip, design.width)
    noise = NoiseSize(reach, float(design.plan.amount(name, Kind.VECTOR)), design.pure)
    look = best_look(functions, known, float(squares.mean()), noise, effects=last)
    measured = _measured(gate, name, functions, look, residuals, prediction, squares)
    return _Looked(measured, residuals.clip, squares)


def _measured(
    gate: Gate,
    name: str,
    functions: Functions,
    look: Look,
    residuals: Residuals,
    prediction: Floats,
    squares: Floats,
) -> Measured:
    root, inverse = matrix_power(look.shape, 0.5), matrix_power(look.shape, -0.5)
    white, variance = release_map(gate, name, functions, look.columns, inverse @ look.solve, residuals)
    low, high = (float(end) for end in functions.table.study.outcome_range)
    known = functions.products(prediction - (low + high) / 2)
    values = root @ white + look.solve @ known[look.columns]
    noise = root @ root * variance
    covariance = noise + look.sampling(functions, squares)
    return Measured(look.measured, values, covariance, noise, look.design(functions))


@dataclass(frozen=True, slots=True, eq=False)
class _Unshrunk:
    """Weights of the effect as measured, with what no look measured as known before, and their covariance."""

    weights: Floats
    covariance: Floats
    noise: Floats


def _unshrunk(functions: Functions, before: Known, found: Measured) -> _Unshrunk:
    """Return the weights that intervals are about.

    A measured weight is A Z theta + noise. What A Z holds of other weights is taken off as far as they were known
    before, and the rest of it, with all that was not measured, has the covariance in which it was known.
    """
    size = functions.size
    picked = np.zeros_like(found.design)
    picked[np.arange(len(found.places)), found.places] = 1.0
    others = found.design - picked
    weights = before.weights[size:].copy()
    own = found.places - size
    weights[own] = found.values - others @ before.weights
    # How the error of every effect weight depends on the error of what was known before.
    carried = np.zeros((size, 2 * size))
    carried[np.arange(size), np.arange(size) + size] = 1.0
    carried[own] = -others
    covariance = carried @ before.cautious @ carried.T
    noise = np.zeros((size, size))
    noise[np.ix_(own, own)] = found.noise
    covariance[np.ix_(own, own)] += found.covariance
    return _Unshrunk(weights, covariance, noise)


def _model(
    session: Session, question: CateQuestion, design: Design, before: Known, known: Known, looked: _Looked
) -> CateModel:
    functions, size = design.functions, design.functions.size
    unshrunk = _unshrunk(functions, before, looked.measured)
    weights = known.weights[size:]
    tail = (_BALL_TAIL - 1.0) * unshrunk.noise if design.pure else 0.0
    mechanism = "l2-ball noise" if design.pure else "Gaussian noise"
    used = ("ball", question.mechanism) if design.pure else ("gaussian",)
    found = CateModel(
        study=session.study,
        method="series regression (R-learner), noise shaped to its predictions",
        basis=functions.basis,
        weights=weights,
        covariance=unshrunk.covariance + tail,
        noise_covariance=unshrunk.noise,
        shrinkage=unshrunk.weights - weights,
        level=question.level,
        guarantee=question.guarantee(session, (PAGE,), mechanisms=used),
        spent=question.budget,
        releases=_releases(mechanism),
        not_covered=_NOT_COVERED,
        details={
            "rows": functions.rows,
            "functions": size,
            "measured_functions": len(looked.measured.places),
            "clip": looked.clip,
            "residual_sd": sqrt(float(looked.squares.mean())),
            "noise_of_effects": _mean_noise(functions, unshrunk.noise),
            "budget_split": _split(design.plan),
        },
        higher=_higher(functions, known),
    )
    mean = functions.plain[:size, 0] / functions.plain[0, 0] * float(functions.basis.scale[0])
    measured = Unshrunk(unshrunk.weights, unshrunk.covariance + tail, functions.basis.orders, mean)
    return decided(found, measured, question.method == "auto" and question.settings is None)


def _mean_noise(functions: Functions, noise: Floats) -> float:
    """Return the root mean square over the rows of the noise in the unshrunk effects."""
    size = functions.size
    return sqrt(max(float(np.einsum("ij,ji->", functions.plain[:size, :size], noise)), 0.0) / functions.rows)


def _higher(functions: Functions, known: Known) -> tuple[Basis, Floats] | None:
    """Return functions beyond the basis and the variance of each.

    Weights of a covariate go on from the larger of its last two, falling with a power of the order: as those of a
    function with a kink do.
    """
    found = beyond(functions.basis)
    if found is None:
        return None
    basis, orders, groups = found
    size, own = functions.size, functions.groups[: functions.size]
    squares = known.weights[size:] ** 2 + np.diag(known.cautious)[size:]
    variances = np.zeros(len(orders))
    for group in np.unique(groups[groups > 0]):
        last = float(functions.basis.orders[own == group].max())
        ends = (own == group) & (functions.basis.orders >= last - 1)
        more = groups == group
        variances[more] = squares[ends].max() * (last / orders[more]) ** (2 * _BEYOND_FALL)
    return basis, variances


def _releases(mechanism: str) -> tuple[tuple[str, str], ...]:
    return (
        ("mean outcomes of the arms", mechanism),
        ("sizes of residuals", f"two searches of {len(search_names(''))} noisy counts each"),
        ("squares of residuals by arm", mechanism),
        ("a first model of outcomes and effects", f"{mechanism} in the shape of its predictions"),
        ("effects", f"{mechanism} in the shape of their predictions"),
    )


def _split(plan: Plan) -> str:
    """Return the parts of the budget in words, searches added up."""
    parts: dict[str, float] = {}
    for name, part in plan.parts.items():
        key = SIZE if name.startswith(SIZE) else SQUARES if name.startswith(SQUARES) else name
        parts[key] = parts.get(key, 0.0) + part
    return ", ".join(f"{name} {part:.0%}" for name, part in parts.items())


_NOT_COVERED = (
    Caveat.UNDECLARED_COVARIATES,
    Caveat.NOT_POLYNOMIAL,
    Caveat.UNEVEN_VARIANCE_WITHIN_ARM,
    Caveat.CLAMPING,
    Caveat.CLIPPED_RESIDUALS,
    Caveat.BEYOND_COVARIATES,
    Caveat.COVERAGE_MEASURED,
)


def _too_many(session: Session) -> CounterveilError:
    size = first_size(session.table)
    return refusal("CV-P526", most_features=MOST_FEATURES, size=size, rows=session.table.rows)
