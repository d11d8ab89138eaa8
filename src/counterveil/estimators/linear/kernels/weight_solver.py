"""Weights of least squared error under a cap, by Newton's method on the dual, with a certificate.

For arms a with m_a rows, features F_a (m_a, p), reference weights r_a and targets c_a (p,), the primal is

    minimise  kappa/2 (sum_a |u_a|^2 - 2 sum_j rho_j u_1j u_0j) + 1/2 sum_a |w_a - r_a|^2 + gamma/2 t^2
    over      u_a = F_a'w_a - c_a (imbalance),  0 <= w_a <= t,  1'w_a = 1,  t >= floor.

This is the supposed squared error of an effect (`kernels/balancing.py`) over 2 sigma^2, sigma being the
standard deviation of outcomes around their mean in parts of the outcome's range. The letters are

- kappa = rho^2 / sigma^2: what a unit of squared imbalance costs, rho^2 being the variance of the mean
  outcome's slope on each feature; larger kappa balances more closely;
- gamma = (variance of the privacy noise at sensitivity one) / sigma^2: what the largest weight costs, as the
  noise is scaled to it;
- t: the cap, an upper bound on all weights, which is chosen with them; floor: the least t that any weights in
  the problem can have (1 / m_a with m_a rows, or the equal weight of an arm that is not solved for);
- rho_j in [0, 1), `arm_correlation` (p,): the supposed correlation of the arms' slopes on feature j; None
  without coupling, which one arm always is.

With multipliers lam_a (p,) of u_a and nu_a of the sum, the inner minimum has the closed form w_a = clip(s_a,
0, t), s_a = r_a - F_a lam_a + nu_a, where the best cap solves sum (s - t)_+ = gamma t or is the floor. The
dual is concave, once differentiable and piecewise quadratic in only (p + 1) numbers an arm: a Newton step
needs the Gram matrix of the rows strictly between 0 and t, plus one rank-one term through which the cap moves
with all rows that touch it. rho_j couples the two arms' multipliers of feature j. The cap is thus found
together with the weights; the optimum over t is global because the primal is jointly convex in (w, t).

In: public columns only, no outcome. Out: `DualSolution`. Why it may be trusted where steps run out: the
dual's value at any multipliers is below every feasible primal value (weak duality), so `lower_bound` is right
for an unconverged solution as well. Privacy does not depend on convergence: noise is scaled to the weights
that are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from counterveil.numerics.arm_rows import ArmBalancing, Matrix, Rows, Vector, factored
from counterveil.numerics.products import Kind

# Added to a sum's curvature, relative to the arm's size, so that the factorisation exists.
_RIDGE = 1e-12
# Rows gathered at once.
_GATHERED_ROWS = 512
# A Newton step is kept whole when it leaves at most this share of the slope it started from; a searched one stops at
# the other share.
_WHOLE_STEP = 0.5
_SEARCHED_STEP = 0.1
_MAX_PROBES = 60
# Most problems are solved in fewer steps; the others are approached through softened ones.
_DIRECT_ITERATIONS = 20
_SOFTENINGS = (300.0, 100.0, 30.0, 10.0, 3.0)
_ROUGH = 1e-4


@dataclass(frozen=True, slots=True)
class DualProblem:
    """The arms and numbers of the primal; a given `cap` fixes t and makes gamma irrelevant.

    Attributes
    ----------
    arms : tuple of ArmBalancing
        One or two arms: features F_a, reference weights r_a, target c_a.
    kappa, gamma : float
        Cost of squared imbalance and of the squared cap, relative to that of sum_i (w_i - r_i)^2.
    floor : float
        Least cap t.
    cap : float, optional
        The cap, where it is given; None finds the best.
    arm_correlation : ndarray of float, shape (p,), optional
        rho_j in [0, 1) for two arms. None leaves the arms uncoupled, and is the only value for one arm.
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
        slopes = multipliers[:, :-1]
        return (
            self.soft * slopes
            if self.arm_correlation is None
            else self.soft * (slopes + self.arm_correlation * slopes[::-1])
        )

    def best_cap(self, scores: Vector, near: float) -> float:
        """Return the given cap, or the t >= floor with sum (s - t)_+ = gamma t for scores s, or the floor.

        `near` is where to look first.
        """
        if self.cap is not None:
            return self.cap
        if self.gamma == 0.0:
            return max(self.floor, float(scores.max()))
        cap = max(near, self.floor)
        first = True
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
    units of a typical feature); `lower_bound` is the dual's value, which no feasible weights beat. Where
    steps ran out before `residual` fell to the tolerance, the weights are the last that were found: they lie
    in [0, cap], sum to one within `residual`, and `lower_bound` still holds.
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
        self.problem = problem
        self.multipliers = multipliers
        self.kind = kind
        ends = np.cumsum([a.size for a in problem.arms])
        self.spans = tuple(
            (slice(int(end) - a.size, int(end)) for a, end in zip(problem.arms, ends, strict=True))
        )
        self.targets = np.stack([arm.target for arm in problem.arms])
        self.scores = np.concatenate([arm.reference for arm in problem.arms])
        for arm, span, m in zip(problem.arms, self.spans, multipliers, strict=True):
            self.scores[span] += m[-1] - arm.rows.scores(m[:-1], kind) if m[:-1].any() else m[-1]
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
                drift[span] -= arm.rows.scores(direction[k, :-1], self.kind)
        trial = self._search(direction, drift, opening)
        before = self.cap
        self.multipliers = self.multipliers + trial.step * direction
        self.scores = trial.scores
        self.weights = trial.weights
        self.cap = trial.cap
        for k, span in enumerate(self.spans):
            # The weights of an arm that does not move change with the cap alone; coupled arms move together.
            if moving[k] or self.scores[span].max() > min(before, self.cap):
                self._slope(k)
        return True

    def _search(self, direction: Matrix, drift: Vector, opening: float) -> _Trial:
        """Return a step that leaves a small share of the opening slope; the slope only falls with the step."""
        feature_direction = direction[:, :-1]
        pulls = self.problem.pulls
        line = float(
            direction[:, -1].sum() - np.vdot(feature_direction, self.targets + pulls(self.multipliers))
        )
        bend = float(np.vdot(feature_direction, pulls(direction)))

        def trial(step: float) -> _Trial:
            scores = self.scores + step * drift
            cap = self.problem.best_cap(scores, self.cap)
            weights = np.clip(scores, 0.0, cap)
            return _Trial(
                step=step,
                scores=scores,
                weights=weights,
                cap=cap,
                slope=line - step * bend - float(drift @ weights),
            )

        high = trial(1.0)
        low = 0.0
        slope_low = opening
        if abs(high.slope) <= _WHOLE_STEP * opening:
            return high
        for _ in range(_MAX_PROBES):
            if high.slope > 0.0:
                low = high.step
                slope_low = high.slope
                probe = high = trial(2.0 * high.step)
            else:
                # The secant, kept inside the middle of the bracket, so that a flat end cannot stall it.
                width = high.step - low
                secant = low + width * slope_low / (slope_low - high.slope)
                probe = trial(min(max(secant, low + 0.1 * width), high.step - 0.1 * width))
                if probe.slope > 0.0:
                    low = probe.step
                    slope_low = probe.slope
                else:
                    high = probe
            if abs(probe.slope) <= _SEARCHED_STEP * opening:
                return probe
        return trial(low) if low > 0.0 else high

    def _slope(self, k: int) -> None:
        """Write an arm's gradient: totals less the target and the quadratic term's slope; one less all weights."""
        weights = self.weights[self.spans[k]]
        totals = self.problem.arms[k].rows.weighted(weights.astype(self.kind, copy=False))
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
        self.arm = arm
        self.problem = problem
        self.free = np.ones(arm.size, np.bool_)
        self.gram = np.empty((arm.width + 1, arm.width + 1))
        self.gram[:-1, :-1] = arm.rows.products
        self.gram[-1, :-1] = self.gram[:-1, -1] = -arm.rows.totals
        self.gram[-1, -1] = arm.size

    def update(self, scores: Vector, cap: float, above: Vector) -> bool:
        """Find the curvature at these scores, and return whether it changed.

        `above` (p+1,) receives the totals of Z over the rows above the cap.
        """
        inside = (scores >= 0.0) & (scores <= cap)
        joined = np.flatnonzero(inside & ~self.free)
        departed = np.flatnonzero(self.free & ~inside)
        changed = len(joined) + len(departed)
        self.free = inside
        if changed > np.count_nonzero(inside):
            self.gram[:] = 0.0
            joined = np.flatnonzero(inside)
            departed = departed[:0]
        for sign, rows in ((1.0, joined), (-1.0, departed)):
            for Z in self._rows(rows):
                self.gram += sign * (Z @ Z.T)
        for Z in self._rows(np.flatnonzero(scores > cap)):
            above += Z.sum(axis=1, dtype=np.float64)
        return changed > 0

    def _rows(self, rows: Rows) -> Iterator[NDArray[np.floating]]:
        """Yield Z' of these rows, (p+1, k), a few at a time."""
        arm_rows = self.arm.rows
        for first in range(0, len(rows), _GATHERED_ROWS):
            block = rows[first : first + _GATHERED_ROWS]
            Z = np.empty((len(self.gram), len(block)), arm_rows.kind)
            Z[:-1] = arm_rows.columns[:, arm_rows.start + block]
            Z[-1] = -1.0
            yield Z

    def whole(self) -> Matrix:
        """Return the curvature (p+1, p+1)."""
        block = self.gram.copy()
        block[np.diag_indices(len(block) - 1)] += self.problem.soft
        # With no free row the sum has no curvature: borrow the whole arm's, the search will stretch it.
        rows = len(self.free)
        block[-1, -1] += _RIDGE * rows if self.free.any() else rows
        return block


class _Curvatures:
    """The curvatures of all arms, those of coupled arms together."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem = problem
        self.arms = [_Curvature(arm, problem) for arm in problem.arms]
        arms = list(range(len(self.arms)))
        self.groups = [[k] for k in arms] if problem.arm_correlation is None else [arms]
        self.inverses: dict[int, Callable[[Matrix], Matrix]] = {}

    def direction(self, state: _State, idle: NDArray[np.bool_]) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return the Newton direction, shape (arms, p+1), and which arms move.

        The curvature is one block an arm, the coupling of the arms and, where the cap is free to move, the outer
        product of the totals over all rows at the cap; the latter is added to the inverse by its known effect. An arm
        that is `idle` (solved for the cap as it is) and has no row at the cap stays where it is, unless it is coupled.
        """
        problem = self.problem
        touching = np.zeros_like(state.gradient)
        moving = ~idle | (problem.arm_correlation is not None)
        along, through = np.zeros((2, *touching.shape))
        for group in self.groups:
            for k in group:
                scores = state.scores[state.spans[k]]
                moving[k] |= scores.max() > state.cap
                if moving[k] and self.arms[k].update(scores, state.cap, touching[k]):
                    self.inverses.pop(group[0], None)
            if moving[group].any():
                sides = np.stack([state.gradient[group].ravel(), touching[group].ravel()], axis=1)
                solved = self._inverse(group)(sides).T.reshape(2, len(group), -1)
                along[group], through[group] = solved
        count = -float(touching[:, -1].sum())
        if problem.cap is None and count > 0.0 and state.cap > problem.floor:
            pull = float(np.vdot(touching, through)) + problem.gamma + count
            along -= through * (float(np.vdot(touching, along)) / pull)
        return along, moving

    def _inverse(self, group: list[int]) -> Callable[[Matrix], Matrix]:
        """Return what multiplies by the inverse of the curvature of arms that belong together."""
        if group[0] not in self.inverses:
            blocks = [self.arms[k].whole() for k in group]
            side = len(blocks[0])
            joint = block_diag(*blocks)
            if self.problem.arm_correlation is not None:
                features = np.arange(side - 1)
                joint[side + features, features] = self.problem.arm_correlation * self.problem.soft
            self.inverses[group[0]] = factored(joint)
        return self.inverses[group[0]]


def solve(problem: DualProblem, *, unit: float, tolerance: float, max_iterations: int) -> DualSolution:
    """Return the weights that solve the problem; `unit` is the typical size of a feature.

    Steps end when every equation holds to `tolerance`, or after `max_iterations`: then the weights are not
    yet optimal, no error is raised, and `residual` and `lower_bound` of the solution say how far off they may
    be. Most of the way is gone by sums in the precision of the arms' products.
    """
    kind = problem.arms[0].rows.kind
    curvatures = _Curvatures(problem)
    state = _State(problem, _equal_weights(problem), kind)
    rough = max(tolerance, _ROUGH)
    iterations = _climb(
        state, curvatures, unit=unit, tolerance=rough, max_iterations=min(max_iterations, _DIRECT_ITERATIONS)
    )
    if state.residual(unit) > rough and iterations < max_iterations:
        spent, multipliers = _approach(problem, unit)
        state = _State(problem, multipliers, np.float64)
        iterations += spent
    elif kind is not np.float64:
        state = _State(problem, state.multipliers, np.float64)
    iterations += _climb(
        state, curvatures, unit=unit, tolerance=tolerance, max_iterations=max_iterations - iterations
    )
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
    iterations = 0
    before = _SOFTENINGS[0]
    for softening in _SOFTENINGS:
        softer = replace(problem, kappa=problem.kappa / softening, gamma=problem.gamma / softening)
        state = _State(softer, multipliers * (before / softening), problem.arms[0].rows.kind)
        iterations += _climb(
            state, _Curvatures(softer), unit=unit, tolerance=_ROUGH, max_iterations=_DIRECT_ITERATIONS
        )
        multipliers = state.multipliers
        before = softening
    return iterations, multipliers * before


def _climb(state: _State, curvatures: _Curvatures, unit: float, tolerance: float, max_iterations: int) -> int:
    """Take Newton steps until the equations hold to the tolerance; return how many."""
    iterations = 0
    while not (idle := state.residuals(unit) <= tolerance).all() and iterations < max_iterations:
        iterations += 1
        if not state.advance(*curvatures.direction(state, idle)):
            break
    return iterations
