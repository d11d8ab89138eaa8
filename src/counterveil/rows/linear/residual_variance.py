"""The variance of a weighted sum from the variance of outcomes around a line in public features.

For each group of rows, an arm or a part of one,
Q is the least over lines (c, b) of the sum of (y_i - c - f_i . b)^2 and of (n/s) b_j^2 / shape_j,
f_i being the row's features less the group's means: a ridge regression of strength s, in which features of a
large shape are fitted more closely. Without features (s = 0) Q is the sum of squares around the
mean; as s grows, it becomes that of the residuals of a regression. With S the
group's sum of squared weights, V adds up S Q / (degrees of freedom), the estimate of S times the variance of an
outcome of that group. Predictions outside the range of outcomes cost more than their square (`ranged_fit`),
so that one outcome moves Q by little more than the range squared, however many features there are.

How far one outcome can move V: `rows/linear/residual_variance.proof.md`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.inference.searches import in_step
from counterveil.numerics.arm_rows import ArmRows, inverse_root, solve_positive
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import gram, times
from counterveil.rows.linear.weighted_sum import exact_dot

# The least cost of a ridge line through outcomes in [0, 1], which one outcome moves by little more than 1.
#
# The squared residual (y - m)^2 of a prediction m depends on y without bound as m leaves [0, 1], and least
# squares lets one outcome move predictions far: their sum of squares can move by many times 1. Here
#
#     cost(y, m) = (y - m)^2 + 2 y h(m - 1) + 2 (1 - y) h(-m),   h(d) = 0, d^2/(2g) or d - g/2
#
# as d <= 0, d <= g or beyond. It is the squared residual where the prediction is in the range and more outside,
# convex in m, and for any m its values at two outcomes differ by at most 1 + g. So does its least total over
# all lines, with any penalty on the slopes: `residual_variance.proof.md`.
#
# In m its curvature is between 2 and 2 + 2/g: steps in the metric of least squares, damped by 1 + 1/g, shrink
# the distance to the least total by a constant factor, and the gradient bounds that distance. Newton's
# step is tried first and kept if it does at least as well.


Rows = NDArray[np.intp]

# g: how far beyond the range the cost passes from the squared residual to what hardly depends on y.
TRANSITION = Fraction(1, 32)
# The total is found to this, before rounding.
TOLERANCE = 1e-6
# A damped step divides by this, and lowers the distance by one part in it.
_DAMPING = 1 + float(1 / TRANSITION)
# How far the metric may be from that of least squares, which `TOLERANCE` takes for granted, and a variance of all
# features, each times its strength, up to which it is far nearer.
_METRIC_TOLERANCE, MOST_WEIGHTED_SQUARES = 0.25, 1e6
# Numbers read at once, and up to which the rows are copied (8 MB).
_BLOCK, _SMALL = 1 << 17, 1 << 20
_UNIT = 2.0**-53


def cost(y: Floats, m: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the cost of predictions m for outcomes y in [0, 1], its slope in m and half its curvature; (n,) each."""
    g = float(TRANSITION)
    residual = m - y
    value = residual * residual
    slope = 2.0 * residual
    curvature = np.ones_like(m)
    outside = np.flatnonzero((m < 0.0) | (m > 1.0))
    if len(outside):
        above = m[outside] > 1.0
        beyond = np.where(above, m[outside] - 1.0, -m[outside])
        weight = 2.0 * np.where(above, y[outside], 1.0 - y[outside])
        value[outside] += weight * np.where(beyond <= g, beyond * beyond / (2.0 * g), beyond - g / 2.0)
        slope[outside] += weight * np.where(above, 1.0, -1.0) * np.minimum(beyond / g, 1.0)
        curvature[outside] += np.where(beyond <= g, weight / (2.0 * g), 0.0)
    return value, slope, curvature


@dataclass(frozen=True, slots=True)
class Point:
    """A line (c, b) as (p+1,) numbers, c last, with the total there, its gradient, and half its Hessian's excess.

    `excess` is what rows between squared residual and beyond add to the Hessian of least squares.
    """

    place: Floats
    total: float
    gradient: Floats
    excess: Floats | None


@dataclass(frozen=True, slots=True)
class RangedFit:
    """A problem: minimise over (c, b) the total cost at m_i = c + (features[rows[i]] - centre) . b, plus a penalty.

    The penalty is n times the sum of b_j^2 / s_j for the `strengths` s (p,). `covariance` (p, p) is that of the
    rows' features, and `root` (p, p) has root root' = (I + D covariance D)^-1, D^2 having s on its diagonal.
    """

    features: NDArray[np.floating]
    rows: Rows
    centre: Floats
    strengths: Floats
    covariance: Floats
    root: Floats
    _copy: list[Floats] = field(default_factory=list, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.metric_error <= _METRIC_TOLERANCE:
            raise refusal("CV-X005", tolerance=_METRIC_TOLERANCE, error=self.metric_error)

    @property
    def metric_error(self) -> float:
        """A bound on the distance from the identity of root' (I + D C D) root, C being the exact covariance.

        What `root` leaves, and rounding: of the covariance, of its centre and of this product.
        """
        scale = np.sqrt(self.strengths)
        p = len(self.centre)
        metric = np.eye(p) + scale[:, None] * self.covariance * scale
        difference = times(np.ascontiguousarray(self.root.T), times(metric, self.root)) - np.eye(p)
        weighted_squares = float(self.strengths @ (np.abs(np.diagonal(self.covariance)) + self.centre**2))
        return float(np.linalg.norm(difference)) + 4 * _UNIT * (len(self.rows) + p * p) * (
            p + weighted_squares
        )

    @property
    def slack(self) -> float:
        """A bound on the error of `least`: the tolerance, and rounding (see the proof page)."""
        gradient_size = sqrt(8.0 + 2.0 * float(self.strengths @ np.diagonal(self.covariance)))
        return TOLERANCE + len(self.rows) * _UNIT * (1000.0 + 10.0 * (len(self.centre) + 3) * gradient_size)

    @property
    def sensitivity(self) -> Fraction:
        """A bound on what one outcome can move `least`."""
        return 1 + TRANSITION + 2 * Fraction(self.slack)

    def least(self, *outcomes: Floats) -> list[float]:
        """Return for each of some (n,) outcomes in [0, 1] the least total, to within `slack`; rows are read for all."""

        def evaluate(which: list[int], indices: list[Floats]) -> list[Point]:
            return self._at([outcomes[i] for i in which], indices)

        minima = in_step([self._search(y) for y in outcomes], evaluate)
        self._copy.clear()
        return minima

    def _search(self, y: Floats) -> Generator[Floats, Point, float]:
        point = yield np.append(np.zeros(len(self.centre)), y.mean())
        while True:
            step = self._step(point.gradient)
            gap = float(point.gradient @ step) / 2
            if gap <= TOLERANCE / 2:
                return point.total
            newton = step if point.excess is None else self._newton(point.gradient, point.excess)
            trial = yield point.place - newton
            if trial.total > point.total - gap / _DAMPING:
                trial = yield point.place - step / _DAMPING
            point = trial

    def _step(self, gradient: Floats) -> Floats:
        """Return the step of least squares; half its product with the gradient bounds the distance to the least."""
        scale = np.sqrt(self.strengths)
        slopes = scale * (self.root @ ((scale * gradient[:-1]) @ self.root))
        return np.append(slopes, gradient[-1]) / (2 * len(self.rows))

    def _newton(self, gradient: Floats, excess: Floats) -> Floats:
        """Return Newton's step."""
        n = len(self.rows)
        half = excess.copy()
        half[:-1, :-1] += n * self.covariance
        half[np.diag_indices(len(half))] += n * np.append(1.0 / self.strengths, 1.0)
        return solve_positive(half, gradient[:, None])[:, 0] / 2

    def _at(self, outcomes: Sequence[Floats], indices: Sequence[Floats]) -> list[Point]:
        """Return for each of the outcomes the point at its (c, b)."""
        penalty = len(self.rows) / self.strengths
        gradients = [np.append(2.0 * penalty * place[:-1], 0.0) for place in indices]
        totals = [[float((penalty * place[:-1]) @ place[:-1])] for place in indices]
        excess: list[Floats | None] = [None] * len(indices)
        slopes = np.stack([place[:-1] for place in indices], axis=1)
        level = [place[-1] for place in indices]
        for span, block in self._blocks():
            lines = np.ascontiguousarray((block @ slopes + level).T)
            costs = cost(np.concatenate([y[span] for y in outcomes]), lines.ravel())
            value, slope, curvature = (one.reshape(lines.shape) for one in costs)
            moved = slope @ block
            for k in range(len(indices)):
                totals[k].append(float(value[k].sum()))
                gradients[k][:-1] += moved[k]
                gradients[k][-1] += slope[k].sum()
                curved = np.flatnonzero(curvature[k] > 1.0)
                if len(curved):
                    wide = np.column_stack([block[curved], np.ones(len(curved))])
                    block_gram = gram(wide * np.sqrt(curvature[k, curved] - 1.0)[:, None])
                    before = excess[k]
                    excess[k] = block_gram if before is None else before + block_gram
        evaluated = zip(indices, map(fsum, totals), gradients, excess, strict=True)
        return [Point(*point) for point in evaluated]

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        columns = len(self.centre)
        if not self._copy and len(self.rows) * columns <= _SMALL:
            self._copy.append(self.features[self.rows] - self.centre)
        step = max(_BLOCK // max(columns, 1), 1)
        for start in range(0, len(self.rows), step):
            span = slice(start, start + step)
            if self._copy:
                yield span, self._copy[0][span]
            else:
                # An arm's rows mostly follow each other.
                rows = self.rows[span]
                follow = rows[-1] - rows[0] + 1 == len(rows)
                yield span, self.features[slice(rows[0], rows[-1] + 1) if follow else rows] - self.centre


@dataclass(frozen=True, slots=True)
class GroupSquares:
    """`factor` times the squares of a group's outcomes around their mean; exact."""

    rows: Rows
    factor: Fraction

    @property
    def first_row(self) -> int:
        """The place of one of its rows."""
        return int(self.rows[0])

    @property
    def largest_move(self) -> Fraction:
        """What one outcome of the group can move, in units of the range squared."""
        return self.factor * Fraction(len(self.rows) - 1, len(self.rows))

    def values(self, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
        """Return the part for each of some integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        of_group = (outcome[self.rows] for outcome in outcomes)
        squares = (Fraction(exact_dot(y, y)) - Fraction(int(y.sum()) ** 2, len(y)) for y in of_group)
        return [self.factor * one / Fraction(4) ** steps_bits for one in squares]


@dataclass(frozen=True, slots=True)
class GroupResidual:
    """`factor` times the least cost of a line through a group's outcomes."""

    fit: RangedFit
    factor: Fraction

    @property
    def first_row(self) -> int:
        """The place of one of its rows."""
        return int(self.fit.rows[0])

    @property
    def largest_move(self) -> Fraction:
        """A bound on what one outcome of the group can move, in units of the range squared."""
        return self.factor * self.fit.sensitivity

    def values(self, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
        """Return the part for each of some integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        of_group = (np.ldexp(one[self.fit.rows].astype(np.float64), -steps_bits) for one in outcomes)
        return [self.factor * Fraction(total) for total in self.fit.least(*of_group)]


@dataclass(frozen=True, slots=True)
class ResidualVariance:
    """V: the sum of all groups' parts. `loading` is what V holds of a mean outcome of variance one.

    With S the sum of squared weights, E V = S (variance around the mean) + loading (variance of the mean)
    when the mean outcome is linear in the features in a random direction.
    """

    groups: tuple[GroupSquares | GroupResidual, ...]
    loading: float

    def largest_row(self, rows: int) -> Fraction:  # noqa: ARG002 - other forms of variance need it
        """Return twice the bound on what one outcome can move; an outcome is in one group."""
        return 2 * max(group.largest_move for group in self.groups)

    def among(self, inside: NDArray[np.bool_]) -> ResidualVariance:
        """Return the part of V of the groups whose rows are `inside`; a group lies inside or outside whole."""
        return replace(self, groups=tuple(group for group in self.groups if inside[group.first_row]))

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return V for integer outcomes in [0, 2**steps_bits], in units of the whole range squared."""
        return self.values([outcome], steps_bits)[0]

    def values(self, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
        """Return V for each of some outcomes."""
        by_group = zip(*(group.values(outcomes, steps_bits) for group in self.groups), strict=True)
        return [sum(one, Fraction(0)) for one in by_group] or [Fraction(0)] * len(outcomes)


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One group's features as far as lines depend on them: centre (p,) and covariance (p, p).

    `weight`: the sum of the group's squared weights. `shape` (p,): how closely each feature is fitted beside the
    others. `roots` keeps for every strength s asked for a W with W W' = (I + s D covariance D)^-1, D^2 having
    the shape on its diagonal, and `taken` what slopes of that strength take.
    `held` are the rows with their sums, where these may have been found in single precision.
    """

    rows: Rows
    centre: Floats
    covariance: Floats
    weight: float
    shape: Floats
    held: ArmRows | None = field(default=None, compare=False, repr=False)
    roots: dict[float, Floats] = field(default_factory=dict, compare=False, repr=False)
    taken: dict[float, tuple[float, float]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        features: NDArray[np.floating],
        weights: Floats,
        inside: NDArray[np.bool_],
        shape: Floats,
        held: ArmRows | None = None,
    ) -> Spectrum:
        """Return the group of the rows `inside`, with the sum of their squared weights; `held` are these rows' sums."""
        rows = np.flatnonzero(inside)
        held = ArmRows.of(features, rows) if held is None else held
        centre = held.totals / len(rows)
        covariance = held.products / len(rows) - np.outer(centre, centre)
        return cls(rows, centre, covariance, float(weights[rows] @ weights[rows]), shape, held)

    def explained(self, strength: float) -> float:
        """Return how many degrees of freedom the slopes take."""
        return self._taken(strength)[0] if strength else 0.0

    def freedom(self, strength: float) -> float:
        """Return the degrees of freedom that a line leaves."""
        return len(self.rows) - 1 - self.explained(strength)

    def loading(self, strength: float) -> float:
        """Return the part of V per unit of variance of a mean outcome in a random direction."""
        remaining = self._taken(strength)[1] if strength else float(np.diagonal(self.covariance).sum())
        return self.weight * len(self.rows) * remaining / self.freedom(strength)

    def weighted_squares(self, strength: float) -> float:
        """Return the second moments of all features added up, each times its strength."""
        return strength * float(self.shape @ (np.diagonal(self.covariance) + self.centre**2))

    def largest_move(self, strength: float) -> float:
        """Return nearly what the part's `largest_move` will be: all but its rounding."""
        return self.weight / self.freedom(strength) * (1 + float(TRANSITION) if strength else 1.0)

    def part(self, features: NDArray[np.floating], strength: float) -> GroupSquares | GroupResidual:
        """Return the group's part of V with slopes of this strength."""
        factor = Fraction(self.weight / self.freedom(strength))
        if not strength:
            return GroupSquares(self.rows, factor)
        exact = self._exact()
        fitted = exact.covariance, exact._root(strength)
        return GroupResidual(
            RangedFit(features, self.rows, self.centre, strength * self.shape, *fitted), factor
        )

    def _exact(self) -> Spectrum:
        """Return the same from products in double precision, which a line's bound on its error takes for granted."""
        if self.held is None or self.held.kind is np.float64:
            return self
        covariance = self.held.exact_products / len(self.rows) - np.outer(self.centre, self.centre)
        return replace(self, covariance=covariance, held=None, roots={}, taken={})

    def _root(self, strength: float) -> Floats:
        if strength not in self.roots:
            scale = np.sqrt(strength * self.shape)
            metric = np.eye(len(self.centre)) + scale[:, None] * self.covariance * scale
            self.roots[strength] = inverse_root(metric)
        return self.roots[strength]

    def _taken(self, strength: float) -> tuple[float, float]:
        """Return the degrees of freedom that slopes take, and what a line leaves of the features' variance.

        The first is the trace of I - W W', the second that of C - C (C + 1/(s shape))^-1 C.
        """
        if strength not in self.taken:
            root = self._root(strength)
            by_slope = np.maximum(1.0 - np.einsum("ij,ij->i", root, root), 0.0)
            self.taken[strength] = float(by_slope.sum()), float((by_slope / (strength * self.shape)).sum())
        return self.taken[strength]


def residual_variance(
    features: NDArray[np.floating], spectra: tuple[Spectrum, ...], strength: float
) -> ResidualVariance:
    """Return V for (n, p) features, with lines of this strength (0: means alone)."""
    return ResidualVariance(
        tuple(spectrum.part(features, strength) for spectrum in spectra),
        sum(spectrum.loading(strength) for spectrum in spectra),
    )
