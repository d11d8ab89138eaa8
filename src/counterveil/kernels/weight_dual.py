"""Newton's method on the dual of the capped weighting problem.

For arms a with features F_a (m_a, p), reference weights r_a and targets c_a, the primal is

    minimise  sum_a [ kappa/2 |F_a'w_a - c_a|^2 + 1/2 |w_a - r_a|^2 ] + gamma/2 t^2
    over      0 <= w_a <= t,  1'w_a = 1,  t >= floor.

With multipliers lam_a for u_a = F_a'w_a - c_a and nu_a for the sum, the inner minimum has the closed
form w_a = clip(s_a, 0, t), s_a = r_a - F_a lam_a + nu_a, where the best cap solves
sum (s - t)_+ = gamma t or is the floor. The dual is concave, once differentiable and piecewise
quadratic in only (p + 1) numbers an arm: a Newton step needs the Gram matrix of the rows strictly
between 0 and t, plus one rank-one term through which the cap moves with all rows that touch it.
The cap is thus found together with the weights; the optimum over t is global because the primal
is jointly convex in (w, t).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.weight_arms import Arm, Matrix, Rows, Vector
from counterveil.kernels.weight_factor import factored

# A Newton step is kept whole when it leaves at most this share of the slope it started from.
_WHOLE_STEP = 0.5
# A searched step stops at this share of the starting slope.
_SEARCHED_STEP = 0.1
_MAX_PROBES = 60
# Added to a sum's curvature, relative to the arm's size, so that the factorisation exists.
_RIDGE = 1e-12
# Most problems are solved in fewer steps; the others are approached through softened ones.
_DIRECT_ITERATIONS = 20
_SOFTENINGS = (300.0, 100.0, 30.0, 10.0, 3.0)
_ROUGH = 1e-4


@dataclass(frozen=True, slots=True)
class DualProblem:
    """The arms and numbers of the primal; `cap` fixes t and makes gamma irrelevant."""

    arms: tuple[Arm, ...]
    kappa: float
    gamma: float
    floor: float
    cap: float | None = None

    def best_cap(self, scores: Vector) -> float:
        """Return the t that minimises the inner problem at these scores."""
        if self.cap is not None:
            return self.cap
        above = scores[scores > self.floor]
        if self.gamma == 0.0 or not len(above):
            return float(max(self.floor, above.max(initial=self.floor)))
        cap = self.floor
        while True:
            # Newton on a convex decreasing function: it climbs and ends on the exact piece.
            raised = float(above.sum()) / (len(above) + self.gamma)
            if raised <= cap:
                return cap
            cap, before = raised, len(above)
            above = above[above > cap]
            if len(above) == before:
                return cap


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


class _State:
    """The current multipliers with everything derived from them."""

    def __init__(self, problem: DualProblem, multipliers: Matrix) -> None:
        self.problem = problem
        self.spans = _spans(problem.arms)
        self.move(multipliers)

    def move(self, multipliers: Matrix) -> None:
        """Take new multipliers, shape (arms, p+1), and compute all that follows from them."""
        arms = self.problem.arms
        self.multipliers = multipliers
        self.scores = np.concatenate(
            [a.reference - a.scores(m[:-1]) + m[-1] for a, m in zip(arms, multipliers, strict=True)]
        )
        self.cap = self.problem.best_cap(self.scores)
        self.weights = np.clip(self.scores, 0.0, self.cap)
        self.gradient = np.empty_like(multipliers)
        for k in range(len(arms)):
            self._slope(k)

    def shift(self, step: Matrix, drift: Vector) -> None:
        """Add to the multipliers, and to the scores what follows; arms whose weights stay are not read."""
        before = self.weights
        self.multipliers, self.scores = self.multipliers + step, self.scores + drift
        self.cap = self.problem.best_cap(self.scores)
        self.weights = np.clip(self.scores, 0.0, self.cap)
        for k, span in enumerate(self.spans):
            if step[k].any() or not np.array_equal(self.weights[span], before[span]):
                self._slope(k)

    def _slope(self, k: int) -> None:
        arm, weights, m = self.problem.arms[k], self.weights[self.spans[k]], self.multipliers[k]
        self.gradient[k, :-1] = arm.totals(weights) - arm.target - m[:-1] / self.problem.kappa
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
        value = 0.5 * self.problem.gamma * self.cap**2
        for arm, span, m in zip(self.problem.arms, self.spans, self.multipliers, strict=True):
            weights = self.weights[span]
            value += float(m[-1] - m[:-1] @ arm.target - 0.5 * (m[:-1] @ m[:-1]) / self.problem.kappa)
            value += float(0.5 * ((weights - arm.reference) ** 2).sum())
            value += float(weights @ (arm.reference - self.scores[span]))
        return value


class _Curvature:
    """Gram matrices of the free rows, kept up to date by the rows that change sides; all rows are free at first."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem = problem
        self.free = [np.ones(a.size, dtype=bool) for a in problem.arms]
        self.grams = [a.whole_gram() for a in problem.arms]
        self.solvers: list[Callable[[Matrix], Matrix] | None] = [None for _ in problem.arms]

    def direction(self, state: _State, idle: NDArray[np.bool_]) -> Matrix:
        """Return the Newton direction, shape (arms, p+1).

        The curvature is one block an arm plus, where the cap is free to move, the outer product of the totals
        over all rows at the cap; the latter is added to the blocks' inverses by its known effect. An arm that is
        `idle` (solved for the cap as it is) and has no row at the cap stays where it is.
        """
        along, through, touching = (np.zeros_like(state.gradient) for _ in range(3))
        for k, (arm, span) in enumerate(zip(self.problem.arms, state.spans, strict=True)):
            scores = state.scores[span]
            above = np.flatnonzero(scores > state.cap)
            if idle[k] and not len(above):
                continue
            touching[k] = arm.border(above)
            solver = self._solver(k, arm, (scores >= 0.0) & (scores <= state.cap))
            along[k], through[k] = solver(np.column_stack([state.gradient[k], touching[k]])).T
        count = -float(touching[:, -1].sum())
        if self.problem.cap is None and count > 0.0 and state.cap > self.problem.floor:
            pull = float((touching * through).sum()) + self.problem.gamma + count
            along -= through * (float((touching * along).sum()) / pull)
        return along

    def _solver(self, k: int, arm: Arm, free: NDArray[np.bool_]) -> Callable[[Matrix], Matrix]:
        """Return what multiplies by the inverse of an arm's block."""
        known = self.solvers[k]
        if known is not None and np.array_equal(free, self.free[k]):
            return known
        self._update(k, arm, free)
        block = self.grams[k].copy()
        diagonal = np.einsum("ii->i", block)
        diagonal[:-1] += 1.0 / self.problem.kappa
        # With no free row the sum has no curvature: borrow the whole arm's, the search will stretch it.
        diagonal[-1] += _RIDGE * arm.size if self.free[k].any() else arm.size
        self.solvers[k] = found = factored(block)
        return found

    def _update(self, k: int, arm: Arm, free: NDArray[np.bool_]) -> None:
        joined: Rows = np.flatnonzero(free & ~self.free[k])
        left: Rows = np.flatnonzero(self.free[k] & ~free)
        if len(joined) + len(left) < np.count_nonzero(free):
            for chosen, sign in ((joined, 1.0), (left, -1.0)):
                if len(chosen):
                    self.grams[k] += sign * arm.gram(chosen)
        else:
            self.grams[k] = arm.gram(np.flatnonzero(free))
        self.free[k] = free


def solve(problem: DualProblem, *, unit: float, tolerance: float, max_iterations: int) -> DualSolution:
    """Return the weights that solve the problem; `unit` is the typical size of a feature."""
    state = _State(problem, _equal_weights(problem))
    iterations = _climb(state, unit, tolerance, min(max_iterations, _DIRECT_ITERATIONS))
    if state.residual(unit) > tolerance and iterations < max_iterations:
        spent, multipliers = _approach(problem, unit)
        state.move(multipliers)
        iterations += spent
        iterations += _climb(state, unit, tolerance, max_iterations - iterations)
    # Steps update the scores by addition; one fresh product makes the certificate free of drift.
    state.move(state.multipliers)
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
        state = _State(softer, multipliers * (before / softening))
        iterations += _climb(state, unit, _ROUGH, _DIRECT_ITERATIONS)
        multipliers, before = state.multipliers, softening
    return iterations, multipliers * before


def _climb(state: _State, unit: float, tolerance: float, max_iterations: int) -> int:
    """Take Newton steps until the equations hold to the tolerance; return how many."""
    curvature = _Curvature(state.problem)
    iterations = 0
    while not (idle := state.residuals(unit) <= tolerance).all() and iterations < max_iterations:
        iterations += 1
        if not _advance(state, curvature.direction(state, idle)):
            break
    return iterations


def _advance(state: _State, direction: Matrix) -> bool:
    """Move the state along the direction; return whether the dual still climbs that way."""
    arms = state.problem.arms
    drift = np.concatenate(
        [
            d[-1] - a.scores(d[:-1]) if d.any() else np.zeros(a.size)
            for a, d in zip(arms, direction, strict=True)
        ]
    )
    opening = float((state.gradient * direction).sum())
    if not opening > 0.0:
        return False
    step = _step_length(state, direction, drift, opening)
    state.shift(step * direction, step * drift)
    return True


def _step_length(state: _State, direction: Matrix, drift: Vector, opening: float) -> float:
    """Return a step that leaves a small share of the opening slope; the slope only falls with the step."""
    problem = state.problem
    along = direction[:, :-1]
    constant = float(direction[:, -1].sum()) - sum(
        float(d @ (a.target + m[:-1] / problem.kappa))
        for d, a, m in zip(along, problem.arms, state.multipliers, strict=True)
    )
    bend = float((along**2).sum()) / problem.kappa

    def slope(step: float) -> float:
        scores = state.scores + step * drift
        np.clip(scores, 0.0, problem.best_cap(scores), out=scores)
        return constant - step * bend - float(drift @ scores)

    low, high, slope_low, slope_high = 0.0, 1.0, opening, slope(1.0)
    if abs(slope_high) <= _WHOLE_STEP * opening:
        return 1.0
    for _ in range(_MAX_PROBES):
        if slope_high > 0.0:
            low, slope_low, high = high, slope_high, 2.0 * high
            trial, slope_trial = high, (slope_high := slope(high))
        else:
            # The secant, kept inside the middle of the bracket, so that a flat end cannot stall it.
            secant = low + (high - low) * slope_low / (slope_low - slope_high)
            trial = min(max(secant, low + 0.1 * (high - low)), high - 0.1 * (high - low))
            slope_trial = slope(trial)
            if slope_trial > 0.0:
                low, slope_low = trial, slope_trial
            else:
                high, slope_high = trial, slope_trial
        if abs(slope_trial) <= _SEARCHED_STEP * opening:
            return trial
    return low if low > 0.0 else high


def _spans(arms: tuple[Arm, ...]) -> tuple[slice, ...]:
    ends = np.cumsum([a.size for a in arms])
    return tuple(slice(int(end) - a.size, int(end)) for a, end in zip(arms, ends, strict=True))
