"""Least cost of a ridge regression of outcomes in [0, 1], made robust: one outcome moves it by little over 1.

    cost(y, m) = (y - m)^2 + 2 y h(m - 1) + 2 (1 - y) h(-m),   h(d) = 0, d^2/(2g) or d - g/2

as d <= 0, d <= g or beyond, with y an outcome in parts of its range, m the prediction of a line in public
features, and g = 1/32 (`TRANSITION`). Minimised is the total over rows plus n sum_j b_j^2 / s_j, with n rows,
slopes b_j and public strengths s_j.

In: public features and strengths, private outcomes. Out: the least total, to within `slack`, in units of the
range squared and without noise; and `sensitivity`, 1 + g + 2 slack, to which noise is calibrated.

Why it is right: plain least squares lets one outcome move predictions, and their sum of squares, far beyond
1. This cost is the squared residual where m is in [0, 1] and more outside, convex in m, and for any m its
values at two outcomes differ by at most 1 + g; so does its least total over all lines. Its curvature in m is
between 2 and 2 + 2/g: steps in the metric of least squares, damped by 1 + 1/g, shrink the distance to the
least total by a constant factor, and the gradient bounds that distance, so the search ends for all outcomes.
Newton's step is tried first and kept if it does at least as well.

Proof: `rows/linear/residual_variance.proof.md`. A smaller g lowers the bound and slows the search down; the
bound contains it and the error of the search, so that privacy holds for any g and `TOLERANCE`.
"""

# Proof: residual_variance.proof.md

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.inference.searches import in_step
from counterveil.numerics.arm_rows import solve_positive
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import gram, times

Rows = NDArray[np.intp]

# g: how far beyond the range the cost passes from the squared residual to what hardly depends on y.
TRANSITION = Fraction(1, 32)
# The total is found to this, before rounding.
TOLERANCE = 1e-6
# A damped step divides by this, and lowers the distance by one part in it.
_DAMPING = 1 + float(1 / TRANSITION)
# How far the metric may be from that of least squares, which `TOLERANCE` takes for granted.
_METRIC_TOLERANCE = 0.25
# A variance of all features, each times its strength, up to which the metric is far nearer.
MOST_WEIGHTED_SQUARES = 1e6
# Numbers that are read at once, and up to which the rows are copied (8 MB).
_BLOCK = 1 << 17
_SMALL = 1 << 20
# Half the distance from 1 to the next double: the largest relative error of a rounded number.
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

    The penalty is n times the sum of b_j^2 / s_j for the `strengths` s (p,). `covariance` (p, p) is that of
    the rows' features, and `root` (p, p) has root root' = (I + D covariance D)^-1, D^2 having s on its
    diagonal.
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
        gradients = [np.append(2.0 * penalty * line[:-1], 0.0) for line in indices]
        totals = [[float((penalty * line[:-1]) @ line[:-1])] for line in indices]
        excess: list[Floats | None] = [None] * len(indices)
        slopes = np.stack([line[:-1] for line in indices], axis=1)
        level = [line[-1] for line in indices]
        for span, block in self._blocks():
            lines = np.ascontiguousarray((block @ slopes + level).T)
            costs = cost(np.concatenate([y[span] for y in outcomes]), lines.ravel())
            value, slope, curvature = (values.reshape(lines.shape) for values in costs)
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
