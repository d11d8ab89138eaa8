"""Newton's method on the dual of the capped weighting problem.

For arms a with features F_a (m_a, p), reference weights r_a and targets c_a, the primal is

    minimise  sum_a [ kappa/2 |u_a|^2 + 1/2 |w_a - r_a|^2 ] - kappa alike u_1'u_0 + gamma/2 t^2
    over      u_a = F_a'w_a - c_a,  0 <= w_a <= t,  1'w_a = 1,  t >= floor.

With multipliers lam_a for u_a and nu_a for the sum, the inner minimum has the closed
form w_a = clip(s_a, 0, t), s_a = r_a - F_a lam_a + nu_a, where the best cap solves
sum (s - t)_+ = gamma t or is the floor. The dual is concave, once differentiable and piecewise
quadratic in only (p + 1) numbers an arm: a Newton step needs the Gram matrix of the rows strictly
between 0 and t, plus one rank-one term through which the cap moves with all rows that touch it. What two arms have
in common couples their multipliers by a multiple of the identity.
The cap is thus found together with the weights; the optimum over t is global because the primal
is jointly convex in (w, t).

Weights of a linear effect estimate that trade balance, variance and the largest weight.

The estimate is sum_i w_i Y_i with w_i >= 0 for treated rows, w_i <= 0 for control rows, arm totals
+1 and -1, and outcomes in an interval of length B. Its error has three parts, here in units of B^2:

    rho^2 (|u_1|^2 + |u_0|^2 - 2 alike u_1'u_0)  +  sigma^2 |w - reference|^2  +  noise_variance * max|w|^2,

with u_a the totals of the features in arm a under the weights' sizes, less their target. The first is the expected
squared bias when an arm's mean outcome is linear in the features with independent coefficients of variance rho^2,
whose correlation between the arms is `arm_correlation`; the second is the variance of the outcomes around that
mean; the third is noise whose scale is proportional to the largest weight. The sum is convex, and
`balance_weights` returns its global minimum with a certificate. Nothing here reads an outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from counterveil.errors import refusal
from counterveil.numerics import columns as column_products
from counterveil.numerics.products import Kind

# One arm of a weighting problem: its rows of the feature matrix, which is kept column by column.
#
# Rows that follow each other are read where they are, scattered ones are copied once. Features may be kept in
# float32; sums are taken in float64.


Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ArmRows:
    """The rows of one arm: the entries `start` to `stop` of every line of `columns` (p, n), a line for each feature.

    `totals` (p,) are the sums of the rows' features, `squares` that of all their squares and `products` (p, p) those of
    the features' products, which alone were found in the precision `kind`.
    """

    columns: NDArray[np.floating]
    start: int
    stop: int
    totals: Vector
    squares: float
    products: Matrix
    kind: Kind

    @classmethod
    def of(cls, features: NDArray[np.floating], rows: Rows, kind: Kind = np.float64) -> ArmRows:
        """Return the arm of some rows, in increasing order, of a (n, p) matrix; `kind` is the precision of products."""
        columns, start, stop = features.T, int(rows[0]), int(rows[-1]) + 1
        if columns.dtype not in (np.float32, np.float64):
            columns = columns.astype(np.float64)
        if stop - start != len(rows) or not columns.flags.c_contiguous:
            columns, start, stop = np.take(columns, rows, axis=1), 0, len(rows)
        kind = kind if columns.dtype == np.float32 else np.float64
        totals, squares = np.zeros(len(columns)), 0.0
        for _, block in column_products.blocks(columns, start, stop, np.float64):
            totals += block.sum(axis=1)
            squares += float(np.einsum("ij,ij->", block, block))
        products = column_products.products(columns, start, stop, kind)
        return cls(columns, start, stop, totals, squares, products, kind)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def exact_products(self) -> Matrix:
        """The products, found in double precision."""
        if self.kind is np.float64:
            return self.products
        return column_products.products(self.columns, self.start, self.stop)

    def scores(self, direction: Vector, kind: Kind = np.float64) -> NDArray[np.floating]:
        """Return F @ direction, shape (m,), found in the precision `kind`."""
        return column_products.scores(self.columns, self.start, self.stop, direction.astype(kind, copy=False))

    def weighted(self, weights: NDArray[np.floating]) -> Vector:
        """Return F' weights, shape (p,), found in the precision of the weights."""
        if weights[0] == weights[-1] and (weights == weights[0]).all():
            return float(weights[0]) * self.totals
        return column_products.totals(self.columns, self.start, self.stop, weights)


@dataclass(frozen=True, slots=True)
class ArmBalancing:
    """The rows of one arm and what is asked of their weights.

    `reference` (m,) holds the weights to stay close to, `target` (p,) the feature totals to reach.
    """

    held: ArmRows
    reference: Vector
    target: Vector

    @property
    def size(self) -> int:
        """Number of rows of the arm."""
        return self.held.size

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.target)


def solve_positive(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return matrix^-1 sides for a symmetric positive definite (w, w) matrix and (w, k) sides."""
    return factored(matrix)(sides)


def factored(matrix: Matrix) -> Callable[[Matrix], Matrix]:
    """Return a function that multiplies (w, k) sides by the inverse of a symmetric positive definite (w, w) matrix.

    Its lower triangle is read.
    """
    try:
        root = lower_root(matrix)
    except np.linalg.LinAlgError:
        whole = np.tril(matrix) + np.tril(matrix, -1).T
        return lambda sides: np.asarray(
            np.linalg.solve(whole, sides), np.float64
        )  # positive up to rounding only
    return lambda sides: np.asarray(dpotrs(root, sides, lower=1)[0])


def lower_root(matrix: Matrix) -> Matrix:
    """Return the lower triangle L with L L' = matrix, for the lower triangle of a positive definite matrix."""
    found, fault = dpotrf(matrix, lower=1, clean=1)
    if fault:
        raise np.linalg.LinAlgError("not positive")
    return np.asarray(found)


def inverse_root(matrix: Matrix) -> Matrix:
    """Return an upper triangular W with W W' = matrix^-1, for a symmetric positive definite matrix."""
    return np.asarray(dtrtri(lower_root(matrix), lower=1)[0]).T


# Added to a sum's curvature, relative to the arm's size, so that the factorisation exists.
_RIDGE = 1e-12
# Rows gathered at once.
_TOGETHER = 512
# A Newton step is kept whole when it leaves at most this share of the slope it started from; a searched one stops at
# the other share.
_WHOLE_STEP, _SEARCHED_STEP = 0.5, 0.1
_MAX_PROBES = 60
# Most problems are solved in fewer steps; the others are approached through softened ones.
_DIRECT_ITERATIONS = 20
_SOFTENINGS = (300.0, 100.0, 30.0, 10.0, 3.0)
_ROUGH = 1e-4


@dataclass(frozen=True, slots=True)
class DualProblem:
    """The arms and numbers of the primal; `cap` fixes t and makes gamma irrelevant.

    `arm_correlation` is in [0, 1), and 0 with one arm.
    """

    arms: tuple[ArmBalancing, ...]
    kappa: float
    gamma: float
    floor: float
    cap: float | None = None
    arm_correlation: Vector | None = None

    @property
    def soft(self) -> Vector:
        """What the dual's quadratic term adds to the curvature of an arm's multipliers, shape (p,)."""
        if self.arm_correlation is None:
            return np.full(self.arms[0].width, 1.0 / self.kappa)
        return np.asarray(1.0 / (self.kappa * (1.0 - self.arm_correlation**2)))

    def pulls(self, multipliers: Matrix) -> Matrix:
        """Return the slopes of the dual's quadratic term, shape (arms, p), at these multipliers, (arms, p+1)."""
        own = multipliers[:, :-1]
        return (
            self.soft * own
            if self.arm_correlation is None
            else self.soft * (own + self.arm_correlation * own[::-1])
        )

    def best_cap(self, scores: Vector, near: float) -> float:
        """Return the given cap, or the t >= floor with sum (s - t)_+ = gamma t for scores s, or the floor.

        `near` is where to look first.
        """
        if self.cap is not None:
            return self.cap
        if self.gamma == 0.0:
            return max(self.floor, float(scores.max()))
        cap, first = max(near, self.floor), True
        while True:
            # Newton on a convex decreasing function: from anywhere it steps below the end, then it climbs to it.
            above = scores[scores > cap]
            raised = max(float(above.sum()) / (len(above) + self.gamma), self.floor)
            if raised == cap or (raised < cap and not first):
                return cap
            cap, first, scores = raised, False, scores if first else above


@dataclass(frozen=True, slots=True)
class DualSolution:
    """Weights in [0, cap] for each arm, with the certificate.

    `residual` is the largest violation of the equations (sums, and totals against multipliers in
    units of a typical feature); `lower_bound` is the dual's value, which no feasible weights beat.
    """

    weights: tuple[Vector, ...]
    cap: float
    residual: float
    lower_bound: float
    iterations: int


@dataclass(frozen=True, slots=True)
class _Trial:
    """Where a step leads: scores (n,), the weights clip(scores, 0, cap), and how the dual still climbs there."""

    step: float
    scores: Vector
    weights: Vector
    cap: float
    slope: float


class _State:
    """The current multipliers with everything derived from them; sums over rows are found in the precision `kind`."""

    def __init__(self, problem: DualProblem, multipliers: Matrix, kind: Kind) -> None:
        """Take multipliers, shape (arms, p+1), and compute all that follows from them."""
        self.problem, self.multipliers, self.kind = problem, multipliers, kind
        self.spans = _spans(problem.arms)
        self.targets = np.stack([arm.target for arm in problem.arms])
        self.scores = np.concatenate([arm.reference for arm in problem.arms])
        for arm, span, m in zip(problem.arms, self.spans, multipliers, strict=True):
            self.scores[span] += m[-1] - arm.held.scores(m[:-1], kind) if m[:-1].any() else m[-1]
        self.cap = problem.best_cap(self.scores, problem.floor)
        self.weights = np.clip(self.scores, 0.0, self.cap)
        self.gradient = np.empty_like(multipliers)
        for k in range(len(problem.arms)):
            self._slope(k)

    def advance(self, direction: Matrix, moving: NDArray[np.bool_]) -> bool:
        """Move along a direction, shape (arms, p+1), of the arms that are `moving`; return whether the dual climbs."""
        opening = float(np.vdot(direction, self.gradient))
        if not opening > 0.0:
            return False
        drift = np.empty_like(self.scores)
        for k, (arm, span) in enumerate(zip(self.problem.arms, self.spans, strict=True)):
            drift[span] = direction[k, -1]
            if moving[k]:
                drift[span] -= arm.held.scores(direction[k, :-1], self.kind)
        trial, before = self._search(direction, drift, opening), self.cap
        self.multipliers = self.multipliers + trial.step * direction
        self.scores, self.weights, self.cap = trial.scores, trial.weights, trial.cap
        for k, span in enumerate(self.spans):
            # The weights of an arm that does not move change with the cap alone; coupled arms move together.
            if moving[k] or self.scores[span].max() > min(before, self.cap):
                self._slope(k)
        return True

    def _search(self, direction: Matrix, drift: Vector, opening: float) -> _Trial:
        """Return a step that leaves a small share of the opening slope; the slope only falls with the step."""
        own, pulls = direction[:, :-1], self.problem.pulls
        line = float(direction[:, -1].sum() - np.vdot(own, self.targets + pulls(self.multipliers)))
        bend = float(np.vdot(own, pulls(direction)))

        def trial(step: float) -> _Trial:
            scores = self.scores + step * drift
            cap = self.problem.best_cap(scores, self.cap)
            weights = np.clip(scores, 0.0, cap)
            return _Trial(step, scores, weights, cap, line - step * bend - float(drift @ weights))

        high, low, slope_low = trial(1.0), 0.0, opening
        if abs(high.slope) <= _WHOLE_STEP * opening:
            return high
        for _ in range(_MAX_PROBES):
            if high.slope > 0.0:
                low, slope_low = high.step, high.slope
                found = high = trial(2.0 * high.step)
            else:
                # The secant, kept inside the middle of the bracket, so that a flat end cannot stall it.
                width = high.step - low
                secant = low + width * slope_low / (slope_low - high.slope)
                found = trial(min(max(secant, low + 0.1 * width), high.step - 0.1 * width))
                if found.slope > 0.0:
                    low, slope_low = found.step, found.slope
                else:
                    high = found
            if abs(found.slope) <= _SEARCHED_STEP * opening:
                return found
        return trial(low) if low > 0.0 else high

    def _slope(self, k: int) -> None:
        """Write an arm's gradient: totals less the target and the quadratic term's slope; one less all weights."""
        weights = self.weights[self.spans[k]]
        totals = self.problem.arms[k].held.weighted(weights.astype(self.kind, copy=False))
        self.gradient[k, :-1] = totals - self.targets[k] - self.problem.pulls(self.multipliers)[k]
        self.gradient[k, -1] = 1.0 - weights.sum()

    def residuals(self, unit: float) -> Vector:
        """Return for each arm the largest entry of the gradient, totals measured in `unit`."""
        sizes = np.abs(self.gradient)
        return np.asarray(np.maximum(sizes[:, :-1].max(axis=1, initial=0.0) / unit, sizes[:, -1]))

    def residual(self, unit: float) -> float:
        """Return the largest of them."""
        return float(self.residuals(unit).max())

    def lower_bound(self) -> float:
        """Return the dual's value at the current multipliers."""
        pulls = self.problem.pulls(self.multipliers)
        value = 0.5 * self.problem.gamma * self.cap**2 - 0.5 * float(np.vdot(pulls, self.multipliers[:, :-1]))
        for arm, span, m in zip(self.problem.arms, self.spans, self.multipliers, strict=True):
            weights = self.weights[span]
            value += float(m[-1] - m[:-1] @ arm.target)
            value += float(0.5 * ((weights - arm.reference) ** 2).sum())
            value += float(weights @ (arm.reference - self.scores[span]))
        return value


class _Curvature:
    """One arm's Gram matrix of the free rows, kept up to date by the rows that change sides; at first all are free.

    With Z = [F, -1] it is Z'Z, (p+1, p+1).
    """

    def __init__(self, arm: ArmBalancing, problem: DualProblem) -> None:
        self.arm, self.problem = arm, problem
        self.free = np.ones(arm.size, np.bool_)
        self.gram = np.empty((arm.width + 1, arm.width + 1))
        self.gram[:-1, :-1] = arm.held.products
        self.gram[-1, :-1] = self.gram[:-1, -1] = -arm.held.totals
        self.gram[-1, -1] = arm.size

    def update(self, scores: Vector, cap: float, above: Vector) -> bool:
        """Find the curvature at these scores, and return whether it changed.

        `above` (p+1,) receives the totals of Z over the rows above the cap.
        """
        inside = (scores >= 0.0) & (scores <= cap)
        joined, left = np.flatnonzero(inside & ~self.free), np.flatnonzero(self.free & ~inside)
        changed, self.free = len(joined) + len(left), inside
        if changed > np.count_nonzero(inside):
            self.gram[:] = 0.0
            joined, left = np.flatnonzero(inside), left[:0]
        for sign, rows in ((1.0, joined), (-1.0, left)):
            for Z in self._rows(rows):
                self.gram += sign * (Z @ Z.T)
        for Z in self._rows(np.flatnonzero(scores > cap)):
            above += Z.sum(axis=1, dtype=np.float64)
        return changed > 0

    def _rows(self, rows: Rows) -> Iterator[NDArray[np.floating]]:
        """Yield Z' of these rows, (p+1, k), a few at a time."""
        held = self.arm.held
        for first in range(0, len(rows), _TOGETHER):
            part = rows[first : first + _TOGETHER]
            Z = np.empty((self.arm.width + 1, len(part)), held.kind)
            Z[:-1] = held.columns[:, held.start + part]
            Z[-1] = -1.0
            yield Z

    def whole(self) -> Matrix:
        """Return the curvature (p+1, p+1)."""
        block = self.gram.copy()
        block[np.diag_indices(self.arm.width)] += self.problem.soft
        # With no free row the sum has no curvature: borrow the whole arm's, the search will stretch it.
        block[-1, -1] += _RIDGE * self.arm.size if self.free.any() else self.arm.size
        return block


class _Curvatures:
    """The curvatures of all arms, those of coupled arms together."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem, self.arms = problem, [_Curvature(arm, problem) for arm in problem.arms]
        places = list(range(len(self.arms)))
        self.groups = [[k] for k in places] if problem.arm_correlation is None else [places]
        self.inverses: dict[int, Callable[[Matrix], Matrix]] = {}

    def direction(self, state: _State, idle: NDArray[np.bool_]) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return the Newton direction, shape (arms, p+1), and which arms move.

        The curvature is one block an arm, the coupling of the arms and, where the cap is free to move, the outer
        product of the totals over all rows at the cap; the latter is added to the inverse by its known effect. An arm
        that is `idle` (solved for the cap as it is) and has no row at the cap stays where it is, unless it is coupled.
        """
        problem, touching = self.problem, np.zeros_like(state.gradient)
        moving = ~idle | (problem.arm_correlation is not None)
        along, through = np.zeros((2, *touching.shape))
        for group in self.groups:
            for k in group:
                own = state.scores[state.spans[k]]
                moving[k] |= own.max() > state.cap
                if moving[k] and self.arms[k].update(own, state.cap, touching[k]):
                    self.inverses.pop(group[0], None)
            if moving[group].any():
                sides = np.stack([state.gradient[group].ravel(), touching[group].ravel()], axis=1)
                found = self._inverse(group)(sides).T.reshape(2, len(group), -1)
                along[group], through[group] = found
        count = -float(touching[:, -1].sum())
        if problem.cap is None and count > 0.0 and state.cap > problem.floor:
            pull = float(np.vdot(touching, through)) + problem.gamma + count
            along -= through * (float(np.vdot(touching, along)) / pull)
        return along, moving

    def _inverse(self, group: list[int]) -> Callable[[Matrix], Matrix]:
        """Return what multiplies by the inverse of the curvature of arms that belong together."""
        if group[0] not in self.inverses:
            blocks = [self.arms[k].whole() for k in group]
            side, joint = len(blocks[0]), block_diag(*blocks)
            if self.problem.arm_correlation is not None:
                features = np.arange(side - 1)
                joint[side + features, features] = self.problem.arm_correlation * self.problem.soft
            self.inverses[group[0]] = factored(joint)
        return self.inverses[group[0]]


def solve(problem: DualProblem, *, unit: float, tolerance: float, max_iterations: int) -> DualSolution:
    """Return the weights that solve the problem; `unit` is the typical size of a feature.

    Most of the way is gone by sums in the precision of the arms' products.
    """
    kind, curvatures = problem.arms[0].held.kind, _Curvatures(problem)
    state = _State(problem, _equal_weights(problem), kind)
    rough = max(tolerance, _ROUGH)
    iterations = _climb(state, curvatures, unit, rough, min(max_iterations, _DIRECT_ITERATIONS))
    if state.residual(unit) > rough and iterations < max_iterations:
        spent, multipliers = _approach(problem, unit)
        state = _State(problem, multipliers, np.float64)
        iterations += spent
    elif kind is not np.float64:
        state = _State(problem, state.multipliers, np.float64)
    iterations += _climb(state, curvatures, unit, tolerance, max_iterations - iterations)
    return DualSolution(
        weights=tuple(state.weights[span] for span in state.spans),
        cap=state.cap,
        residual=state.residual(unit),
        lower_bound=state.lower_bound(),
        iterations=iterations,
    )


def _equal_weights(problem: DualProblem) -> Matrix:
    """Return the multipliers at which each arm's weights are its reference plus an equal share of the rest."""
    multipliers = np.zeros((len(problem.arms), problem.arms[0].width + 1))
    for arm, m in zip(problem.arms, multipliers, strict=True):
        m[-1] = (1.0 - arm.reference.sum()) / arm.size
    return multipliers


def _approach(problem: DualProblem, unit: float) -> tuple[int, Matrix]:
    """Return iterations spent and multipliers near the optimum, by way of problems with softer corners.

    Dividing kappa and gamma by a common number makes the quadratic term dominate, and fewer rows change
    sides at a step; the optimal multipliers grow about in proportion, which carries them to the next problem.
    """
    multipliers = _equal_weights(problem)
    iterations, before = 0, _SOFTENINGS[0]
    for softening in _SOFTENINGS:
        softer = replace(problem, kappa=problem.kappa / softening, gamma=problem.gamma / softening)
        state = _State(softer, multipliers * (before / softening), problem.arms[0].held.kind)
        iterations += _climb(state, _Curvatures(softer), unit, _ROUGH, _DIRECT_ITERATIONS)
        multipliers, before = state.multipliers, softening
    return iterations, multipliers * before


def _climb(state: _State, curvatures: _Curvatures, unit: float, tolerance: float, max_iterations: int) -> int:
    """Take Newton steps until the equations hold to the tolerance; return how many."""
    iterations = 0
    while not (idle := state.residuals(unit) <= tolerance).all() and iterations < max_iterations:
        iterations += 1
        if not state.advance(*curvatures.direction(state, idle)):
            break
    return iterations


def _spans(arms: tuple[ArmBalancing, ...]) -> tuple[slice, ...]:
    ends = np.cumsum([a.size for a in arms])
    return tuple(slice(int(end) - a.size, int(end)) for a, end in zip(arms, ends, strict=True))


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
    _check(features, treated, noise_variance)
    pair = arm_rows(features, treated, precision(settings, len(treated))) if rows is None else rows
    moments = _Moments.of(pair)
    arm_correlation = (
        np.full(features.shape[1], settings.arm_correlation) if np.any(settings.arm_correlation) else None
    )
    sides = _SOLVED[target] if arm_correlation is None and reference is None and target is not None else _BOTH
    goal = None if target is None else _goal(pair, moments, target)
    arms, kept = _arms(pair, treated, goal, sides, _magnitudes(reference, treated))
    floor = max(kept, *(1.0 / arm.size for arm in arms))
    _check_cap(cap, floor)
    price = _Price(settings.signal**2 / moments.total_variance, settings.residual**2, noise_variance)
    solution = solve(
        DualProblem(arms, price.rho2 / price.sigma2, price.noise / price.sigma2, floor, cap, arm_correlation),
        unit=math.sqrt(moments.total_variance / max(features.shape[1], 1)),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
    )
    weights = [exactly_summing(w, solution.cap) for w in solution.weights]
    values = np.where(treated, kept, -kept)
    for side, w in zip(sides, weights, strict=True):
        values[treated == side] = w if side else -w
    largest = float(np.abs(values).max())
    totals = np.stack([held.totals / held.size for held in pair])
    for side, arm, w in zip(sides, arms, weights, strict=True):
        totals[0 if side else 1] = arm.held.weighted(w)
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
    """Return the squared gaps (p,) of the arms, less what arms that are `arm_correlation` (p,) have in common."""
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
        n = sum(held.size for held in pair)
        mean = (pair[0].totals + pair[1].totals) / n
        squares = sum(held.squares for held in pair) / n
        if not math.isfinite(squares):
            raise refusal("CV-P267")
        total_variance = squares - float(mean @ mean)
        return cls(mean, total_variance if total_variance > _ROUNDING * squares else 1.0)


def arm_rows(features: NDArray[np.floating], treated: NDArray[np.bool_], kind: Kind = np.float64) -> ArmPair:
    """Return the treated and the control rows of a (n, p) feature matrix, with the sums that weights depend on.

    Products are found in the precision `kind`.
    """
    one, other = (ArmRows.of(features, np.flatnonzero(arm), kind) for arm in (treated, ~treated))
    return one, other


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
        held = pair[0] if side else pair[1]
        near = np.zeros(held.size) if reference is None else reference[treated == side]
        arms.append(ArmBalancing(held, near, held.weighted(near) if goal is None else goal))
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


def _check(features: NDArray[np.floating], treated: NDArray[np.bool_], noise_variance: float) -> None:
    if features.ndim != 2 or treated.shape != (len(features),) or treated.dtype != np.bool_:
        raise refusal("CV-P262", features=features.shape, treated=treated.shape, dtype=treated.dtype)
    if not treated.any() or treated.all():
        raise refusal("CV-P263", treated=int(treated.sum()), rows=len(treated))
    if not (math.isfinite(noise_variance) and noise_variance >= 0.0):
        raise refusal("CV-P260", noise_variance=noise_variance)


def _check_cap(cap: float | None, floor: float) -> None:
    if cap is not None and not cap >= floor:
        raise refusal("CV-P264", floor=floor, cap=cap)


# Weights of one arm's rows that estimate the mean outcome everybody would have in that arm.
#
# The estimate is sum_i w_i Y_i over the arm's rows, w_i >= 0 with total one. Its supposed error is that of
# `balancing_weights`, for one arm alone: squared imbalance towards the features' mean over everybody, variance,
# and noise whose scale is proportional to the arm's own largest weight. So each of several arms has its own
# cap, as it must where their means are released with noise of their own.


def arm_weights(
    features: NDArray[np.floating], rows: Rows, *, noise_variance: float, settings: WeightSettings
) -> Vector:
    """Return the weights (m,) of the rows (m,), increasing, of a (n, p) feature matrix, of least supposed error.

    `noise_variance` is the variance of the noise added when (range of outcomes) * max w is one.
    """
    n, width = features.shape
    mean = features.mean(axis=0, dtype=np.float64)
    squares = sum(float((features[:, j].astype(np.float64) ** 2).sum()) for j in range(width)) / n
    total_variance = squares - float(mean @ mean)
    total_variance = total_variance if total_variance > 0.0 else 1.0
    variance = settings.residual**2
    problem = DualProblem(
        (ArmBalancing(ArmRows.of(features, rows), np.zeros(len(rows)), mean),),
        kappa=settings.signal**2 / total_variance / variance,
        gamma=noise_variance / variance,
        floor=1.0 / len(rows),
    )
    solution = solve(
        problem,
        unit=math.sqrt(total_variance / max(width, 1)),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
    )
    return exactly_summing(solution.weights[0], solution.cap)
