"""What inverse weighting learns before it weighs: a propensity model and the arms' centres.

Both are one vector, released once. The weights of the model are divided by how far one record can move
them and the arms' totals likewise, so that one noise serves both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp, log, sqrt

import numpy as np

from counterveil.data import Carrier, Sums, Table
from counterveil.data.features import UnitFeatures
from counterveil.numerics.arrays import Floats
from counterveil.numerics.newton import checked_tolerance
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.numerics.whole_logistic import (
    ROWS_AT_ONCE,
    Block,
    Look,
    fit_in_looks,
    logistic_sums,
    look_of,
)
from counterveil.privacy import Estimand, exact
from counterveil.results.question import Question
from counterveil.session import Gate, Kind, KnownSensitivityMechanism, Plan
from counterveil.settings import IPW
from counterveil.statistics.moments.kernels.scores import GRID_BITS, STEPS, Moments
from counterveil.statistics.moments.sensitivity import (
    ARM_COUNT_FACTOR,
    COUNT_FACTOR,
    SQUARE_WEIGHT,
    ArmTotals,
    PenalisedFit,
    WeightedMoments,
)

# What may be chosen about private inverse probability weighting, and the plan that follows from it.


# Part of the budget for the arms' centres where the propensity is declared.
CENTRES = Fraction(3, 20)
# Of a pure budget: the weighted sum, its squares, and the number treated where that has to be known.
_PURE_SHARES = {"effect": Fraction(17, 20), "squares": Fraction(3, 20)}
_PURE_SHARES_COUNTED = {"effect": Fraction(3, 4), "squares": Fraction(1, 8), "count": Fraction(1, 8)}


def ipw_plan(question: Question, settings: IPW, declared: bool) -> Plan:
    """Return the plan: what is learned first, if anything is, and the weighted sums."""
    counted = question.estimand is not Estimand.ATE and not declared
    kinds: dict[str, Kind] = {}
    if question.mechanism == "gaussian":
        shares, kinds = {"moments": Fraction(1)}, {"moments": Kind.VECTOR}
    else:
        shares = _PURE_SHARES_COUNTED if counted else _PURE_SHARES
    if declared and not settings.centred:
        return Plan.split(question.budget, shares, question.mechanism, kinds)
    learned = CENTRES if declared else exact(settings.fit_share, "fit_share")
    rest = {name: share * (1 - learned) for name, share in shares.items()}
    kinds = {"nuisances": Kind.VECTOR} | kinds
    return Plan.split(question.budget, {"nuisances": learned} | rest, question.mechanism, kinds)


# Lengths of the two parts of the vector: their squares sum to one.
_FOR_WEIGHTS, FOR_CENTRES = Fraction(12, 13), Fraction(5, 13)
# Logits are computed in floating point; their range is widened by this much.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Released numbers only: weights of the propensity model (None where declared) and centres, in steps.

    `noise_sd` is that of each weight's noise before it was shrunk by `kept`.
    """

    weights: Floats | None
    centres: tuple[float, float]
    noise_sd: float = 0.0
    kept: float = 1.0

    @property
    def adjusted(self) -> bool:
        """Whether anything of the covariates is left in the scores."""
        return self.weights is not None and bool(self.weights[:-1].any())

    def score_range(self, features: UnitFeatures, clip: float) -> tuple[float, float]:
        """Return the range of scores after clipping: no row can have another one under these weights."""
        if self.weights is None:
            return clip, 1 - clip
        low, high = features.index_range(self.weights[:-1])
        bounds = (_logistic(low + self.weights[-1] - _SLACK), _logistic(high + self.weights[-1] + _SLACK))
        inside = [min(max(bound, clip), 1 - clip) for bound in bounds]
        return inside[0], inside[1]


@dataclass(frozen=True, slots=True)
class Fitting:
    """The public side of the fit: how many rows, which features, which penalty; None where declared."""

    rows: int
    features: UnitFeatures
    penalty: float

    @property
    def sensitivity(self) -> Fraction:
        """How far one record can move the weights."""
        tolerance = checked_tolerance(self.rows, self.features.columns + 1, 2, self.penalty, None)
        reach = self.features.squared_reach + 1
        return PenalisedFit(self.rows, reach, Fraction(self.penalty), Fraction(tolerance)).weights

    @property
    def longest(self) -> float:
        """The longest that fitted weights can be: the objective at its minimum is at most ln 2, its value at 0."""
        return sqrt(2 * log(2) / self.penalty)


def release_nuisances(gate: Gate, source: Carrier, fitting: Fitting | None, settings: IPW) -> Nuisances:
    """Return the released weights and centres."""
    middle = STEPS / 2
    if fitting is None and not settings.centred:
        return Nuisances(None, (middle, middle))
    values = nuisance_vector(source, fitting, settings)
    for_weights, for_centres = _lengths(fitting, settings)
    released = gate.release_vector("nuisances", values, Fraction(1))
    found, sd = released.floats(), sqrt(released.variance)
    centres = (middle, middle)
    if settings.centred:
        scale = float(ArmTotals().joint / for_centres)
        centres = arm_centres(found[-3:] * scale, sd * scale, source.rows)
    if fitting is None:
        return Nuisances(None, centres)
    scale = float(fitting.sensitivity / for_weights)
    weights, kept = found[: fitting.features.columns + 1] * scale, 1.0
    if settings.shrink:
        weights, kept = shrunk(weights, sd * scale, fitting.longest)
    return Nuisances(weights, centres, sd * scale, kept)


def nuisance_vector(source: Carrier, fitting: Fitting | None, settings: IPW) -> list[Fraction]:
    """Return fitted weights and arms' totals; one record moves the whole by one at most."""
    for_weights, for_centres = _lengths(fitting, settings)
    values: list[Fraction] = []
    if fitting is not None:
        unit = for_weights / fitting.sensitivity
        values += [Fraction(weight) * unit for weight in fitted_weights(source, fitting)]
    if settings.centred:
        values += [total * for_centres / ArmTotals().joint for total in arm_totals(source)]
    return values


def fitted_weights(source: Carrier, fitting: Fitting) -> Floats:
    """Return the weights of the propensity model before noise, the intercept last; a pass a step."""
    features = fitting.features

    def look(weights: Floats) -> Look:
        sums = source.run(partial(model_sums, features=features, weights=weights))
        return look_of(sums, source.rows, weights, fitting.penalty)

    def reach(direction: Floats) -> float:
        low, high = features.index_range(direction[:-1])
        # Widened by more than rounding can take off.
        return max(abs(low + float(direction[-1])), abs(high + float(direction[-1]))) * (1 + _SLACK)

    return fit_in_looks(look, reach, source.rows, features.columns + 1, fitting.penalty)


def model_sums(block: Table, features: UnitFeatures, weights: Floats) -> Sums:
    """Return the sums of `logistic_sums` over the rows of a block."""
    return logistic_sums(unit_rows(block, features), weights)


def unit_rows(table: Table, features: UnitFeatures) -> Iterator[Block]:
    """Yield the features of a table's rows and who was treated, a few rows at a time."""
    for part, z in features.blocks(table, ROWS_AT_ONCE):
        yield z, table.treated[part]


def _lengths(fitting: Fitting | None, settings: IPW) -> tuple[Fraction, Fraction]:
    """Return how far one record may move the weights' and the totals' parts of the vector."""
    if fitting is None or not settings.centred:
        return Fraction(1), Fraction(1)
    return _FOR_WEIGHTS, FOR_CENTRES


def arm_totals(source: Carrier) -> list[Fraction]:
    """Return (sum t y, sum (1-t) y, ARM_COUNT_FACTOR sum t), y mapped to [-1, 1]; exact."""
    ((first, second, treated),) = source.run(doubled_sums)
    return [Fraction(first, STEPS), Fraction(second, STEPS), treated * ARM_COUNT_FACTOR]


def doubled_sums(block: Table) -> Sums:
    """Return the sums of 2 y - STEPS over the treated and over the others, y in steps, and the number treated."""
    doubled = 2 * block.outcome - STEPS
    first, treated = int(doubled[block.treated].sum()), int(np.count_nonzero(block.treated))
    return (np.array([first, int(doubled.sum()) - first, treated]),)


def arm_centres(totals: Floats, sd: float, rows: int) -> tuple[float, float]:
    """Return both arms' means in steps, from noisy totals; where noise is large, near the middle."""
    least = max(float(LEAST_SHARE) * rows, 1.0)
    count = min(max(float(totals[2]) / float(ARM_COUNT_FACTOR), least), max(rows - least, 1.0))
    centres = []
    for total, size in ((totals[0], count), (totals[1], rows - count)):
        # The factor size^2/(size^2 + sd^2) shrinks a mean that is mostly noise towards the middle.
        mean = min(max(float(total) * size / (size**2 + sd**2), -1.0), 1.0)
        centres.append(round((mean + 1) / 2 * STEPS))
    return float(centres[0]), float(centres[1])


def shrunk(weights: Floats, sd: float, longest: float) -> tuple[Floats, float]:
    """Return the weights times what is likely to be signal (James and Stein's rule), and the slopes' factor.

    Where the noise is longer than any fitted weights can be, nothing of the slopes is kept.
    """
    size = (len(weights) - 1) * sd**2
    slopes = max(0.0, 1 - size / max(float(weights[:-1] @ weights[:-1]), 1e-300))
    if size >= longest**2:
        slopes = 0.0
    intercept = max(0.0, 1 - sd**2 / max(float(weights[-1]) ** 2, 1e-300))
    return np.append(weights[:-1] * slopes, weights[-1] * intercept), slopes


def _logistic(logit: float) -> float:
    return 1 / (1 + exp(-logit)) if logit > -700 else 0.0


# The release of a sum of bounded contributions with their squares, for intervals at the price of the sum.


@dataclass(frozen=True, slots=True)
class Weighted:
    """Released: means of u and of u^2 over the weighted rows, the denominator, and the noise distributions.

    `effect_noise` is that of the effect and `variance_noise` that of its sampling variance, in units of the
    outcome; `count_variance` is that of the denominator's noise.
    """

    mean: float
    square: float
    rows: int
    size: float
    count_variance: float
    effect_noise: KnownSensitivityMechanism
    variance_noise: KnownSensitivityMechanism


def release_moments(
    gate: Gate, plan: Plan, found: Moments, unit: Fraction, part: float | Estimand
) -> Weighted:
    """Return the released moments; `unit` is the scale of contributions in units of the outcome.

    `part` is the part of the rows that the sum is divided by; an estimand where it has to be released.
    """
    counted = isinstance(part, Estimand)
    sums = (Fraction(found.total, 1 << GRID_BITS), Fraction(found.squares, 1 << 2 * GRID_BITS))
    sensitivity = WeightedMoments(counted)
    if plan.mechanism == "gaussian":
        total, squares, count, count_variance = _together(gate, sums, found.treated, sensitivity)
    else:
        total, squares, count, count_variance = _apart(gate, sums, found.treated, sensitivity)
    size = _clamped(count, part, found.rows) if isinstance(part, Estimand) else part * found.rows
    factor = unit / Fraction(size)
    if plan.mechanism == "gaussian":
        noise = plan.coordinate_noise("moments", sensitivity.joint * factor)
        square_noise = plan.coordinate_noise("moments", sensitivity.joint / SQUARE_WEIGHT * factor**2)
    else:
        noise = plan.noise("effect", sensitivity.total * factor)
        square_noise = plan.noise("squares", sensitivity.squares * factor**2)
    mean, square = float(total) / found.rows, float(squares) / found.rows
    return Weighted(mean, square, found.rows, size, count_variance, noise, square_noise)


def _together(
    gate: Gate, sums: tuple[Fraction, Fraction], treated: int, sensitivity: WeightedMoments
) -> tuple[Fraction, Fraction, Fraction, float]:
    """Return sum, squares and count from one Gaussian vector, and the variance of the count's noise."""
    values = [sums[0], SQUARE_WEIGHT * sums[1]]
    if not sensitivity.counted:
        noisy = gate.release_vector("moments", values, sensitivity.joint).values
        return noisy[0], noisy[1] / SQUARE_WEIGHT, Fraction(0), 0.0
    released = gate.release_vector("moments", [*values, COUNT_FACTOR * treated], sensitivity.joint)
    total, squares, count = released.values
    return (
        total,
        squares / SQUARE_WEIGHT,
        count / COUNT_FACTOR,
        released.variance / float(COUNT_FACTOR) ** 2,
    )


def _apart(
    gate: Gate, sums: tuple[Fraction, Fraction], treated: int, sensitivity: WeightedMoments
) -> tuple[Fraction, Fraction, Fraction, float]:
    """Return the same from releases with noise of their own."""
    total = gate.release("effect", sums[0], sensitivity.total).value
    squares = gate.release("squares", sums[1], sensitivity.squares).value
    if not sensitivity.counted:
        return total, squares, Fraction(0), 0.0
    count = gate.release("count", Fraction(treated), sensitivity.count)
    return total, squares, count.value, count.noise.variance


def _clamped(treated: Fraction, estimand: Estimand, rows: int) -> float:
    """Return the size of the arm that is averaged over, not below a small part of the rows."""
    size = float(treated) if estimand is Estimand.ATT else rows - float(treated)
    return min(max(size, float(LEAST_SHARE) * rows, 1.0), float(rows))
