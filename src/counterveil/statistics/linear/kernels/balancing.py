"""Solving and factoring small symmetric positive systems without waking the linear algebra library's threads.

Beyond a hundred unknowns or so a library's solver starts threads that cost more than they save, and many
times more when another process holds the second core. Halved until it fits, everything stays with one.

Newton's method on the dual of the capped weighting problem.

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
whose correlation between the arms is `alike`; the second is the variance of the outcomes around that
mean; the third is noise whose scale is proportional to the largest weight. The sum is convex, and
`balance_weights` returns its global minimum with a certificate. Nothing here reads an outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs

from counterveil.errors import refusal
from counterveil.numerics import columns as column_products
from counterveil.numerics.arrays import locked, run
from counterveil.numerics.products import Kind, times

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

    `totals` (p,) are the sums of the rows' features, `products` (p, p) those of the features' products, which
    were found in the precision `kind`.
    """

    columns: NDArray[np.floating]
    start: int
    stop: int
    totals: Vector
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
        # Loops know arrays that may be written to and others as different things: one of both.
        columns, kind = locked(columns), kind if columns.dtype == np.float32 else np.float64
        totals = column_products.totals(columns, start, stop, np.ones(stop - start))
        return cls(columns, start, stop, totals, column_products.products(columns, start, stop, kind), kind)

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

    def scores(self, direction: Vector) -> Vector:
        """Return F @ direction, shape (m,)."""
        return column_products.scores(self.columns, self.start, self.stop, direction)

    def weighted(self, weights: Vector) -> Vector:
        """Return F' weights, shape (p,)."""
        if weights[0] == weights[-1] and (weights == weights[0]).all():
            return float(weights[0]) * self.totals
        return column_products.totals(self.columns, self.start, self.stop, weights)


@dataclass(frozen=True, slots=True)
class Arm:
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


_TILE = 32
# Unknowns up to which the compiled loops are quick.
_COMPILED = 160


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
        return lambda sides: _eliminated(whole, sides)  # positive up to rounding only
    return lambda sides: np.asarray(dpotrs(root.T, sides, lower=0)[0])


def lower_root(matrix: Matrix) -> Matrix:
    """Return L with L L' = matrix in its lower triangle, for the lower triangle of a positive definite matrix.

    A large matrix is halved: with the leading half A and the rows B below it, L holds the root of A, under
    it B times that root's inverse, transposed, and the root of what is left of the other half.
    """
    from counterveil.numerics.loops import write_root

    width = len(matrix)
    root = np.zeros((width, width))
    if width > _COMPILED:
        half = width // 2
        root[:half, :half] = first = lower_root(matrix[:half, :half])
        root[half:, :half] = below = times(matrix[half:, :half], _inverted(first).T)
        root[half:, half:] = lower_root(matrix[half:, half:] - times(below, below.T))
        return root
    if not run(write_root, (np.ascontiguousarray(matrix),), (root,)):
        raise np.linalg.LinAlgError("not positive")
    return root


def inverse_root(matrix: Matrix) -> Matrix:
    """Return an upper triangular W with W W' = matrix^-1, for a symmetric positive definite matrix."""
    return _inverted(lower_root(matrix)).T


def _inverted(root: Matrix) -> Matrix:
    """Return the inverse of a lower triangle; what stands above it does not count."""
    from counterveil.numerics.loops import write_inverse

    width = len(root)
    if width > _COMPILED:
        half = width // 2
        inverse = np.zeros_like(root)
        inverse[:half, :half] = first = _inverted(root[:half, :half])
        inverse[half:, half:] = second = _inverted(root[half:, half:])
        inverse[half:, :half] = -times(second, times(root[half:, :half], first))
        return inverse
    upper = np.zeros((width, width))
    run(write_inverse, (np.ascontiguousarray(root),), (upper,))
    return upper.T


def _eliminated(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return the same by elimination in tiles, which takes matrices that rounding made indefinite.

    With the leading tile D and the columns C below it, the rest becomes rest - C D^-1 C', whose leading
    tile is the next pivot.
    """
    width = len(matrix)
    rest, answer = matrix.copy(), sides.copy()
    pivots = []
    for start in range(0, width, _TILE):
        tile, after = slice(start, start + _TILE), slice(start + _TILE, width)
        inverse = np.linalg.inv(rest[tile, tile])
        ratio = rest[after, tile] @ inverse
        for left in range(start + _TILE, width, _TILE):
            column = slice(left, left + _TILE)
            rest[left:, column] -= ratio[left - start - _TILE :] @ rest[column, tile].T
        answer[after] -= ratio @ answer[tile]
        pivots.append((tile, after, inverse, ratio))
    for tile, after, inverse, ratio in reversed(pivots):
        answer[tile] = inverse @ answer[tile] - ratio.T @ answer[after]
    return answer


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
        sides[moving] = _dual_eliminated(problem, curvatures, moving, sides)
    elif problem.alike is not None:
        one, other = curvatures
        solve_coupled(one.root, other.root, problem.alike * problem.soft, _NEAR, sides)
    else:
        for k in np.flatnonzero(moving):
            solve_root(curvatures[k].root, sides[k])


def _dual_eliminated(
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
    `residual` that of the rest. `alike` is the correlation of the former between the arms.
    """

    signal: float = 0.0625
    residual: float = 0.0625
    tolerance: float = 1e-10
    max_iterations: int = 500
    alike: float | Vector = 0.0

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
    target: Target = "ATE",
    reference: Vector | None = None,
    cap: float | None = None,
    settings: WeightSettings | None = None,
    rows: ArmPair | None = None,
) -> Weights:
    """Return the weights of least supposed error for a (n, p) feature matrix and a treatment (n,).

    `noise_variance` is the variance of the noise added when B max|w| is one. With `target="ATT"` the
    treated rows keep equal weights and the controls are balanced towards their mean ("ATC": the other
    way round); where arms are alike, both are balanced towards that mean. With a `reference` (signed weights
    (n,) with arm totals +1 and -1, such as those of matching) weights stay close to it and balance towards
    its feature totals. A given `cap` fixes max|w| at most there instead of choosing it. `rows` is
    `arm_rows(features, treated)` where it is at hand.
    """
    settings = settings or WeightSettings()
    _check(features, treated, noise_variance)
    pair = arm_rows(features, treated, precision(settings, len(treated))) if rows is None else rows
    moments = _Moments.of(pair)
    alike = np.full(features.shape[1], settings.alike) if np.any(settings.alike) else None
    sides = _SOLVED[target] if alike is None else _BOTH
    arms, kept = _arms(pair, treated, _goal(pair, moments, target), sides, _magnitudes(reference, treated))
    floor = max(kept, *(1.0 / arm.size for arm in arms))
    _check_cap(cap, floor)
    price = _Price(settings.signal**2 / moments.total_variance, settings.residual**2, noise_variance)
    solution = solve(
        DualProblem(arms, price.rho2 / price.sigma2, price.noise / price.sigma2, floor, cap, alike),
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
    imbalance2 = _squared_imbalance(gaps, alike)
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


def _squared_imbalance(gaps: list[Vector], alike: Vector | None) -> float:
    """Return the squared gaps (p,) of the arms, less what arms that are `alike` (p,) have in common."""
    whole = sum(float(gap @ gap) for gap in gaps)
    return whole if alike is None else max(whole - 2.0 * float(alike @ (gaps[0] * gaps[1])), 0.0)


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
        squares = sum(float(np.trace(held.products)) for held in pair) / n
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
    goal: Vector,
    sides: tuple[bool, ...],
    reference: Vector | None,
) -> tuple[tuple[Arm, ...], float]:
    """Return the arms to solve for, and the equal weight kept by an arm that is the target itself."""
    arms = []
    for side in sides:
        held = pair[0] if side else pair[1]
        near = np.zeros(held.size) if reference is None else reference[treated == side]
        arms.append(Arm(held, near, goal if reference is None else held.weighted(near)))
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
        (Arm(ArmRows.of(features, rows), np.zeros(len(rows)), mean),),
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
