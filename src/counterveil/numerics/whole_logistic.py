"""Penalised logistic regression whose sums over rows are whole numbers: the same weights however rows are divided.

The objective J, its gradient g and Hessian H >= lam I are those of `newton`, for two arms. A look at the rows adds up
the gradient on a grid of 2**-41 and the curvature as products of rows on a grid of 2**-20; both are exact sums of
terms that depend on one row, so that blocks, their order and their number change no bit of the weights.

**Rounding.** A term of the gradient is off by 2**-42 at most, less than what `gradient_rounding` of `newton` counts for
sums in floating point, so that the tolerances checked there hold here.

**The curvature.** H' is the matrix used: the Gram matrix of rows whose p entries are each off by less than 2**-20, plus
lam. For every v, | |v|_H' - |v|_H | <= 2**-20 sqrt(p) |v| <= 0.096 |v|_H, since lam >= 1e-10 p is checked: H is at most
1.23 H'. H' is a sum of squares plus lam I, hence positive definite.

**The steps.** d = H'^-1 g, delta^2 = g.d, r any number that no |x.d| of a row exceeds. As in `newton`,
J(w - td) <= J(w) - t delta^2 + 1.23 delta^2 (e^{tr} - tr - 1)/r^2.                                           (1)
If r <= 1/4 the whole step t = 1 lowers J by at least delta^2/4, and g shrinks to below 0.6 in the norm of H'^-1 (much
less for usual penalties). If r > 1/4 the whole step is kept where J still falls along d at its end; if not, (1) is
least at t = ln(1 + r/1.23)/r, where J is lower by 1.23 delta^2 h(r/1.23)/r^2, h(s) = (1+s) ln(1+s) - s, and by no less
after the whole step, J being convex. With |x| <= R for all rows that r was taken over, r <= R delta/sqrt(lam): J falls
by at least 1.23 h(1/5) lam/R^2. J starts at ln 2 and stays above 0, so that there are finitely many such steps, and
finitely many of the others with |g| above a tolerance, since delta^2 >= |g|^2/(lam + R^2). The fit never has to be
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from counterveil.numerics.arrays import Floats
from counterveil.numerics.newton import checked_tolerance
from counterveil.numerics.products import WholeSum, projected, steps, whole_gram

_GRADIENT_BITS, _CURVATURE_BITS = 41, 20
# Rows whose terms, up to 2**41 each, doubles add up exactly.
ROWS_AT_ONCE = 2048
# How far H may exceed H', and the reach of a step up to which the whole step is taken without a look.
_CURVED, _NEAR = 1.23, 0.25

# Features (rows, d) of at most 2048 rows, and who of them was treated.
Block = tuple[Floats, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Look:
    """Gradient (p,) and Hessian (p, p) of the objective at some weights."""

    gradient: Floats
    hessian: Floats


def probabilities(z: Floats, weights: Floats) -> Floats:
    """Return 1/(1 + exp(-(z.w + b))) of every row, weights = (w, b); a row's does not depend on the others."""
    found = projected(z, weights[:-1])
    found += weights[-1]
    return np.asarray(expit(found, out=found))


def logistic_sums(row_blocks: Iterable[Block], weights: Floats) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sums of (p - t) x and of p (1 - p) x x' over rows, in whole steps; x has a constant column last."""
    gradient, curvature = WholeSum(), WholeSum()
    for z, treated in row_blocks:
        x = np.empty((z.shape[1] + 1, len(z)))
        x[:-1], x[-1] = z.T, 1.0
        p = probabilities(z, weights)
        terms = x * (p - treated)
        terms *= 2.0**_GRADIENT_BITS
        np.rint(terms, out=terms)
        gradient.add(terms.sum(axis=1).astype(np.int64))
        x *= np.sqrt(p * (1 - p))
        curvature.add(whole_gram(steps(x.T, _CURVATURE_BITS)))
    return gradient.whole(), curvature.whole()


def look_of(sums: tuple[NDArray[Any], ...], rows: int, weights: Floats, penalty: float) -> Look:
    """Return gradient and Hessian from the sums over all rows."""
    gradient, curvature = sums
    mean = np.array([total / (rows << _GRADIENT_BITS) for total in gradient])
    size = rows << 2 * _CURVATURE_BITS
    hessian = np.array([[total / size for total in line] for line in curvature])
    hessian[np.diag_indices(len(hessian))] += penalty
    return Look(mean + penalty * weights, hessian)


def fit_in_looks(
    look: Callable[[Floats], Look], reach: Callable[[Floats], float], rows: int, columns: int, penalty: float
) -> Floats:
    """Return weights whose gradient is within the tolerance of `checked_tolerance`, the intercept last.

    `look` passes over the rows; `reach` bounds |x.d| over all rows that could be, for a direction d. `columns` counts
    the constant one.
    """
    enough = checked_tolerance(rows, columns, 2, penalty, None) / 2
    weights = np.zeros(columns)
    here = look(weights)
    while sqrt(float(here.gradient @ here.gradient)) > enough:
        factor = cho_factor(here.hessian, lower=True, check_finite=False)
        direction = np.asarray(cho_solve(factor, here.gradient, check_finite=False))
        span = reach(direction)
        new = weights - direction
        there = look(new)
        if span > _NEAR and float(there.gradient @ direction) < 0:
            new = weights - log1p(span / _CURVED) / span * direction
            there = look(new)
        weights, here = new, there
    return weights
