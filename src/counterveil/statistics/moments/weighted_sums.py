"""The release of a sum of bounded contributions with their squares, for intervals at the price of the sum."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Estimand
from counterveil.session import Gate, KnownSensitivityMechanism, Plan
from counterveil.statistics.moments.kernels.scores import GRID_BITS, RowSums
from counterveil.statistics.moments.sensitivity import COUNT_FACTOR, SQUARE_WEIGHT, WeightedMoments


@dataclass(frozen=True, slots=True)
class WeightedMeans:
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
    gate: Gate, plan: Plan, found: RowSums, unit: Fraction, part: float | Estimand
) -> WeightedMeans:
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
    return WeightedMeans(mean, square, found.rows, size, count_variance, noise, square_noise)


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
