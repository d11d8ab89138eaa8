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
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics import columns as column_products
from counterveil.statistics.linear.kernels.small_systems import Arm, Matrix, Vector, factored

# How far, squared, the coupled equations of a step are solved.
_NEAR = 1e-8
# Added to a sum's curvature, relative to the arm's size, so that the factorisation exists.
_RIDGE = 1e-12
# Rows gathered at once.
_TOGETHER = 256
# Most problems are solved in fewer steps; the others are approached through softened ones.
_DIRECT_ITERATIONS = 20
_SOFTENINGS = (300.0, 100.0, 30.0, 10.0, 3.0)
_ROUGH = 1e-4


@dataclass(frozen=True, slots=True)
class DualProblem:
    """The arms and numbers of the primal; `cap` fixes t and makes gamma irrelevant.

    `alike` is in [0, 1), and 0 with one arm.
    """

    arms: tuple[Arm, ...]
    kappa: float
    gamma: float
    floor: float
    cap: float | None = None
    alike: Vector | None = None

    @property
    def soft(self) -> Vector:
        """What the dual's quadratic term adds to the curvature of an arm's multipliers, shape (p,)."""
        if self.alike is None:
            return np.full(self.arms[0].width, 1.0 / self.kappa)
        return np.asarray(1.0 / (self.kappa * (1.0 - self.alike**2)))

    def pulls(self, multipliers: Matrix) -> Matrix:
        """Return the slopes of the dual's quadratic term, shape (arms, p), at these multipliers, (arms, p+1)."""
        own = multipliers[:, :-1]
        return self.soft * own if self.alike is None else self.soft * (own + self.alike * own[::-1])

    @property
    def terms(self) -> tuple[float, float, float]:
        """Floor, gamma and cap (-1 where it is chosen), as the loops take them."""
        return self.floor, self.gamma, -1.0 if self.cap is None else self.cap


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
        """Take multipliers, shape (arms, p+1), and compute all that follows from them."""
        from counterveil.statistics.linear.kernels.dual_loops import settle

        self.problem, self.multipliers = problem, multipliers
        self.spans = _spans(problem.arms)
        self.targets = np.stack([arm.target for arm in problem.arms])
        self.scores = np.concatenate([arm.reference for arm in problem.arms])
        for arm, span, m in zip(problem.arms, self.spans, multipliers, strict=True):
            self.scores[span] += m[-1] - arm.held.scores(m[:-1]) if m[:-1].any() else m[-1]
        self.weights, self.drift = np.empty_like(self.scores), np.zeros_like(self.scores)
        self.gradient = np.empty_like(multipliers)
        self.cap = settle(self.drift, 0.0, *problem.terms, problem.floor, self.scores, self.weights)
        for k in range(len(problem.arms)):
            self._slope(k)

    def advance(self, direction: Matrix, moving: NDArray[np.bool_]) -> bool:
        """Move along a direction, shape (arms, p+1), of the arms that are `moving`; return whether the dual climbs."""
        from counterveil.numerics.loops import add_scores
        from counterveil.statistics.linear.kernels.dual_loops import advance

        for k, (arm, span) in enumerate(zip(self.problem.arms, self.spans, strict=True)):
            self.drift[span] = direction[k, -1]
            if moving[k]:
                held = arm.held
                add_scores(held.columns, held.start, held.stop, -direction[k, :-1], self.drift[span])
        pulls = np.stack([self.problem.pulls(self.multipliers), self.problem.pulls(direction)])
        given = (direction, self.drift, self.gradient, self.targets, pulls)
        moved = (self.multipliers, self.scores, self.weights)
        before, cap = self.cap, advance(*given, *self.problem.terms, self.cap, *moved)
        if cap < 0.0:
            return False
        self.cap = cap
        for k, span in enumerate(self.spans):
            # The weights of an arm that does not move change with the cap alone; coupled arms move together.
            if moving[k] or self.scores[span].max() > min(before, cap):
                self._slope(k)
        return True

    def _slope(self, k: int) -> None:
        from counterveil.statistics.linear.kernels.dual_loops import write_gradient

        held, weights = self.problem.arms[k].held, self.weights[self.spans[k]]
        pull = np.ascontiguousarray(self.problem.pulls(self.multipliers)[k])
        write_gradient(held.columns, held.start, weights, self.targets[k], pull, self.gradient[k])

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

    With Z = [F, -1] it is Z'Z, (p+1, p+1) with a buffer beside.
    """

    def __init__(self, arm: Arm, problem: DualProblem) -> None:
        self.arm, self.problem = arm, problem
        width, side = arm.width, arm.width + 1 + column_products.BUFFER
        self.free = np.ones(arm.size, np.bool_)
        self.gram = np.zeros((side, side))
        self.gram[:width, :width], self.gram[width, :width] = arm.held.products, -arm.held.totals
        self.gram[width, width] = arm.size
        self.root = np.zeros((width + 1, width + 1))
        self.block = np.empty((width + 1, _TOGETHER), arm.held.kind)

    def factor(self, scores: Vector, cap: float, above: Vector) -> bool:
        """Find the curvature at these scores, and return whether its root is at hand.

        `above` (p+1,) receives the totals of Z over the rows above the cap.
        """
        from counterveil.statistics.linear.kernels.dual_loops import factor_arm

        held, own = self.arm.held, (self.free, self.block, self.gram, self.root, above)
        return factor_arm(held.columns, held.start, scores, cap, self.problem.soft, _RIDGE, *own)

    def whole(self) -> Matrix:
        """Return the curvature (p+1, p+1), of which the lower triangle counts."""
        block = self.gram[: len(self.root), : len(self.root)].copy()
        block[np.diag_indices(self.arm.width)] += self.problem.soft
        block[-1, -1] += _RIDGE * self.arm.size if self.free.any() else self.arm.size
        return block


def _direction(
    state: _State, curvatures: list[_Curvature], idle: NDArray[np.bool_]
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return the Newton direction, shape (arms, p+1), and which arms move.

    The curvature is one block an arm, the coupling of the arms and, where the cap is free to move, the outer product of
    the totals over all rows at the cap; the latter is added to the inverse by its known effect. An arm that is
    `idle` (solved for the cap as it is) and has no row at the cap stays where it is, unless it is coupled.
    """
    problem, touching = state.problem, np.zeros_like(state.gradient)
    moving, rooted = ~idle | (problem.alike is not None), True
    for k, (curvature, span) in enumerate(zip(curvatures, state.spans, strict=True)):
        moving[k] = moving[k] or state.scores[span].max() > state.cap
        if moving[k]:
            rooted = curvature.factor(state.scores[span], state.cap, touching[k]) and rooted
    along, through = np.where(moving[:, None], state.gradient, 0.0), touching.copy()
    count = -float(touching[:, -1].sum())
    for sides in (along, through) if count > 0.0 else (along,):
        _divide(problem, curvatures, moving, rooted, sides)
    if problem.cap is None and count > 0.0 and state.cap > problem.floor:
        pull = float(np.vdot(touching, through)) + problem.gamma + count
        along -= through * (float(np.vdot(touching, along)) / pull)
    return along, moving


def _divide(
    problem: DualProblem,
    curvatures: list[_Curvature],
    moving: NDArray[np.bool_],
    rooted: bool,
    sides: Matrix,
) -> None:
    """Replace sides, shape (arms, p+1), by the inverse curvature without the cap's part times them."""
    from counterveil.numerics.loops import solve_root
    from counterveil.statistics.linear.kernels.dual_loops import solve_coupled

    if not rooted:
        sides[moving] = _eliminated(problem, curvatures, moving, sides)
    elif problem.alike is not None:
        one, other = curvatures
        solve_coupled(one.root, other.root, problem.alike * problem.soft, _NEAR, sides)
    else:
        for k in np.flatnonzero(moving):
            solve_root(curvatures[k].root, sides[k])


def _eliminated(
    problem: DualProblem, curvatures: list[_Curvature], moving: NDArray[np.bool_], sides: Matrix
) -> Matrix:
    """Return the same of the moving arms for curvatures that rounding made indefinite."""
    blocks = [own.whole() for own, moves in zip(curvatures, moving, strict=True) if moves]
    side = len(blocks[0])
    joint = np.zeros((side * len(blocks), side * len(blocks)))
    for k, block in enumerate(blocks):
        joint[k * side : (k + 1) * side, k * side : (k + 1) * side] = block
    if problem.alike is not None:
        features = np.arange(side - 1)
        joint[side + features, features] = problem.alike * problem.soft
    return factored(joint)(sides[moving].reshape(-1, 1)).reshape(-1, side)


def solve(problem: DualProblem, *, unit: float, tolerance: float, max_iterations: int) -> DualSolution:
    """Return the weights that solve the problem; `unit` is the typical size of a feature."""
    state = _State(problem, _equal_weights(problem))
    iterations = _climb(state, unit, tolerance, min(max_iterations, _DIRECT_ITERATIONS))
    if state.residual(unit) > tolerance and iterations < max_iterations:
        spent, multipliers = _approach(problem, unit)
        state = _State(problem, multipliers)
        iterations += spent
        iterations += _climb(state, unit, tolerance, max_iterations - iterations)
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
    curvatures = [_Curvature(arm, state.problem) for arm in state.problem.arms]
    iterations = 0
    while not (idle := state.residuals(unit) <= tolerance).all() and iterations < max_iterations:
        iterations += 1
        if not state.advance(*_direction(state, curvatures, idle)):
            break
    return iterations


def _spans(arms: tuple[Arm, ...]) -> tuple[slice, ...]:
    ends = np.cumsum([a.size for a in arms])
    return tuple(slice(int(end) - a.size, int(end)) for a, end in zip(arms, ends, strict=True))
