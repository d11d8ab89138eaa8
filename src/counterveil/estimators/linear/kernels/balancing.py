"""Weights of a linear effect estimate that trade balance, variance and noise (the largest weight).

The estimate is sum_i w_i Y_i with w_i >= 0 for treated rows, w_i <= 0 for control rows, arm totals +1 and -1,
and outcomes in an interval of length B. Its supposed squared error has three parts, here in units of B^2:

    rho^2 (|u_1|^2 + |u_0|^2 - 2 sum_j rho_j u_1j u_0j)
        + sigma^2 |w - reference|^2 + noise_variance * max|w|^2,

with u_a (p,) the totals of the features in arm a under the weights' sizes, less their target (the features'
mean over those whose effect is asked for). The first is the expected squared bias when an arm's mean outcome
is linear in the features with independent coefficients of variance rho^2, whose correlation between the arms
is rho_j for feature j (`arm_correlation`); the second is the variance of the outcomes around that mean; the
third is the privacy noise: one outcome moves the estimate by at most B max|w| (proof:
`rows/linear/linear_estimate.proof.md`), to which the noise is scaled. rho^2 is `WeightSettings.signal`^2 over
the features' total variance, sigma is `WeightSettings.residual`.

The sum is convex, and `balance_weights` returns its global minimum with a certificate (`gap`, from the dual
problem of `kernels/weight_solver.py`). Weights that balance with squared imbalance in the objective are those
of kernel optimal matching (Kallus 2020). In: features and treatments, which are public; nothing here reads an
outcome. Privacy does not depend on how good the weights are, as noise is scaled to those that are used.

`arm_weights` does the same for one arm alone: squared imbalance towards the features' mean over everybody,
variance, and noise whose scale is proportional to the arm's own largest weight. So each of several arms has
its own cap, as it must where their means are released with noise of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.estimators.linear.kernels.weight_solver import DualProblem, solve
from counterveil.numerics.arm_rows import ArmBalancing, ArmRows, Matrix, Vector
from counterveil.numerics.products import Kind

Target = Literal["ATE", "ATT", "ATC"]
# Treated and control rows.
ArmPair = tuple[ArmRows, ArmRows]

# How far a reference's arm totals may be from one.
_REFERENCE_SUM = 1e-6
_REPAIRS = 4
# A variance below this part of the squares it was taken from is rounding.
_ROUNDING = 1e-12
# Beside sums of products that add up to one, single precision shows what is larger than this.
_SINGLE = 2.0**-24
# Which arms' weights are solved for, treated or not; the other is the target population itself. Where arms are alike,
# it may move with the first.
_BOTH = (True, False)
_SOLVED = {"ATE": _BOTH, "ATT": (False,), "ATC": (True,)}


@dataclass(frozen=True, slots=True)
class WeightSettings:
    """What is supposed of the outcomes, in units of their range B, and how precisely to solve.

    `signal` is the standard deviation, over rows, of the part of the outcome the features explain;
    `residual` that of the rest. `arm_correlation` is the correlation of the former between the arms.
    """

    signal: float = 0.0625
    residual: float = 0.0625
    tolerance: float = 1e-10
    max_iterations: int = 500
    arm_correlation: float | Vector = 0.0

    def __post_init__(self) -> None:
        for name in ("signal", "residual", "tolerance"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise refusal("CV-P260b", name=name, value=value)


@dataclass(frozen=True, slots=True)
class Weights:
    """Signed weights (n,) with arm totals +1 and -1, and how good they are.

    `totals` (2, p) are the feature totals of treated and control rows under the weights' sizes. `cap` is
    max|w|. `imbalance` is the root mean square bias when mean outcomes vary by one standard deviation over the rows.
    `objective` is the error supposed, in units of B^2, noise included. `gap` bounds how far the objective is above
    the least possible one.
    """

    values: Vector
    totals: Matrix
    cap: float
    imbalance: float
    objective: float
    kkt_residual: float
    gap: float
    iterations: int


def balance_weights(
    features: NDArray[np.floating],
    treated: NDArray[np.bool_],
    *,
    noise_variance: float,
    target: Target | None = "ATE",
    reference: Vector | None = None,
    cap: float | None = None,
    settings: WeightSettings | None = None,
    rows: ArmPair | None = None,
) -> Weights:
    """Return the weights of least supposed error for a (n, p) feature matrix and a treatment (n,).

    `noise_variance` is the variance of the noise added when B max|w| is one. With `target="ATT"` the
    treated rows keep equal weights and the controls are balanced towards their mean ("ATC": the other
    way round); where arms are alike, both are balanced towards that mean. With a `reference` (signed weights
    (n,) with arm totals +1 and -1, such as those of matching) weights stay close to it, and with no target they
    balance towards its feature totals. A given `cap` fixes max|w| at most there instead of choosing it. `rows` is
    `arm_rows(features, treated)` where it is at hand.
    """
    settings = settings or WeightSettings()
    _check_arms(features, treated, noise_variance)
    pair = arm_rows(features, treated, precision(settings, len(treated))) if rows is None else rows
    moments = _Moments.of(pair)
    arm_correlation = (
        np.full(features.shape[1], settings.arm_correlation) if np.any(settings.arm_correlation) else None
    )
    sides = _SOLVED[target] if arm_correlation is None and reference is None and target is not None else _BOTH
    goal = None if target is None else _goal(pair, moments, target)
    arms, kept = _arms(pair, treated, goal=goal, sides=sides, reference=_magnitudes(reference, treated))
    floor = max(kept, *(1.0 / arm.size for arm in arms))
    _check_cap(cap, floor)
    price = _Price(settings.signal**2 / moments.total_variance, settings.residual**2, noise_variance)
    solution = solve(
        DualProblem(
            arms=arms,
            kappa=price.rho2 / price.sigma2,
            gamma=price.noise / price.sigma2,
            floor=floor,
            cap=cap,
            arm_correlation=arm_correlation,
        ),
        unit=math.sqrt(moments.total_variance / max(features.shape[1], 1)),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
    )
    weights = [exactly_summing(w, solution.cap) for w in solution.weights]
    values = np.where(treated, kept, -kept)
    for side, w in zip(sides, weights, strict=True):
        values[treated == side] = w if side else -w
    largest = float(np.abs(values).max())
    totals = np.stack([arm.totals / arm.size for arm in pair])
    for side, arm, w in zip(sides, arms, weights, strict=True):
        totals[0 if side else 1] = arm.rows.weighted(w)
    gaps = [totals[0 if side else 1] - arm.target for side, arm in zip(sides, arms, strict=True)]
    imbalance2 = _squared_imbalance(gaps, arm_correlation)
    distance2 = sum(float(((w - a.reference) ** 2).sum()) for a, w in zip(arms, weights, strict=True))
    objective = price.rho2 * imbalance2 + price.sigma2 * distance2 + price.noise * largest**2
    return Weights(
        values=values,
        totals=totals,
        cap=largest,
        imbalance=math.sqrt(imbalance2 / moments.total_variance),
        objective=objective,
        kkt_residual=solution.residual,
        gap=objective - 2.0 * price.sigma2 * solution.lower_bound,
        iterations=solution.iterations,
    )


def _squared_imbalance(gaps: list[Vector], arm_correlation: Vector | None) -> float:
    """Return |u_1|^2 + |u_0|^2 - 2 sum_j rho_j u_1j u_0j for gaps u_a (p,) and correlations rho (p,) of arms."""
    whole = sum(float(gap @ gap) for gap in gaps)
    return (
        whole
        if arm_correlation is None
        else max(whole - 2.0 * float(arm_correlation @ (gaps[0] * gaps[1])), 0.0)
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """What a unit of squared imbalance, of squared distance to the reference and of squared cap costs."""

    rho2: float
    sigma2: float
    noise: float


def exactly_summing(weights: Vector, cap: float) -> Vector:
    """Return the weights moved within [0, cap] so that they sum to one up to rounding.

    Too much is taken in proportion to the weights, too little is given in proportion to the headroom under
    the cap, so no bound is crossed and equal weights stay equal.
    """
    weights = weights.copy()
    for _ in range(_REPAIRS):
        missing = 1.0 - float(weights.sum())
        if missing < 0.0:
            weights /= 1.0 - missing
        elif missing > 0.0:
            headroom = cap - weights
            weights += headroom * min(missing / max(float(headroom.sum()), missing), 1.0)
    return weights


@dataclass(frozen=True, slots=True)
class _Moments:
    """Mean (p,) and total variance of the features over all rows; the variance of constants counts as one."""

    mean: Vector
    total_variance: float

    @classmethod
    def of(cls, pair: ArmPair) -> _Moments:
        n = sum(arm.size for arm in pair)
        mean = (pair[0].totals + pair[1].totals) / n
        squares = sum(arm.squares for arm in pair) / n
        if not math.isfinite(squares):
            raise refusal("CV-P267")
        total_variance = squares - float(mean @ mean)
        return cls(mean, total_variance if total_variance > _ROUNDING * squares else 1.0)


def arm_rows(features: NDArray[np.floating], treated: NDArray[np.bool_], kind: Kind = np.float64) -> ArmPair:
    """Return the treated and the control rows of a (n, p) feature matrix, with the sums that weights depend on.

    Products are found in the precision `kind`.
    """
    treated_rows, control_rows = (
        ArmRows.of(features, np.flatnonzero(arm), kind) for arm in (treated, ~treated)
    )
    return treated_rows, control_rows


def precision(settings: WeightSettings, rows: int) -> Kind:
    """Return in which precision products show the curvature well enough for the steps of the solver."""
    # The curvature beside that of the products, on the scale on which they add up to the number of rows.
    stiff = settings.residual**2 / settings.signal**2
    return np.float32 if rows * _SINGLE <= stiff else np.float64


def _goal(pair: ArmPair, moments: _Moments, target: Target) -> Vector:
    """Return the features' mean (p,) over the rows whose effect is asked for."""
    whose = {"ATT": pair[0], "ATC": pair[1]}.get(target)
    return moments.mean if whose is None else np.asarray(whose.totals / whose.size)


def _arms(
    pair: ArmPair,
    treated: NDArray[np.bool_],
    goal: Vector | None,
    sides: tuple[bool, ...],
    reference: Vector | None,
) -> tuple[tuple[ArmBalancing, ...], float]:
    """Return the arms to solve for, and the equal weight kept by an arm that is the target itself."""
    arms = []
    for side in sides:
        arm = pair[0] if side else pair[1]
        near = np.zeros(arm.size) if reference is None else reference[treated == side]
        arms.append(ArmBalancing(arm, near, arm.weighted(near) if goal is None else goal))
    return tuple(arms), 0.0 if len(sides) > 1 else 1.0 / (len(treated) - arms[0].size)


def _magnitudes(reference: Vector | None, treated: NDArray[np.bool_]) -> Vector | None:
    """Return the reference without its signs, after checking signs and arm totals."""
    if reference is None:
        return None
    fits = reference.shape == treated.shape
    magnitudes = np.where(treated, reference, -reference) if fits else np.zeros(len(treated))
    sums = [float(magnitudes[treated].sum()), float(magnitudes[~treated].sum())]
    near_one = max(abs(s - 1.0) for s in sums) <= _REFERENCE_SUM
    if not (near_one and float(magnitudes.min()) >= 0.0):
        raise refusal("CV-P261", reference=reference.shape, sums=sums[0], sums_2=-sums[1])
    return magnitudes


def _check_arms(features: NDArray[np.floating], treated: NDArray[np.bool_], noise_variance: float) -> None:
    if features.ndim != 2 or treated.shape != (len(features),) or treated.dtype != np.bool_:
        raise refusal("CV-P262", features=features.shape, treated=treated.shape, dtype=treated.dtype)
    if not treated.any() or treated.all():
        raise refusal("CV-P263", treated=int(treated.sum()), rows=len(treated))
    if not (math.isfinite(noise_variance) and noise_variance >= 0.0):
        raise refusal("CV-P260", noise_variance=noise_variance)


def _check_cap(cap: float | None, floor: float) -> None:
    if cap is not None and not cap >= floor:
        raise refusal("CV-P264", floor=floor, cap=cap)


def arm_weights(
    features: NDArray[np.floating], target: Vector, *, noise_variance: float, settings: WeightSettings
) -> Vector:
    """Return the weights (m,) of an arm's rows, of least supposed error.

    `features` (m, p) are those of the arm; over everybody their total variance is one and their means the `target`.
    `noise_variance` is the variance of the noise added when (range of outcomes) * max w is one.
    """
    size, width = features.shape
    variance = settings.residual**2
    problem = DualProblem(
        (ArmBalancing(ArmRows.of(features, np.arange(size)), np.zeros(size), target),),
        kappa=settings.signal**2 / variance,
        gamma=noise_variance / variance,
        floor=1.0 / size,
    )
    solution = solve(
        problem,
        unit=1.0 / math.sqrt(max(width, 1)),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
    )
    return exactly_summing(solution.weights[0], solution.cap)
