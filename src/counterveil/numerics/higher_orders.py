"""What a basis of finite degree leaves out, judged by the size of its highest functions.

Weights of smooth and of kinked functions fall off with the order. Beyond the last order k of a covariate they
are taken to go on from the larger of the last two, falling like (k / order)^(3/2), with random signs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, Term

# Coefficients are supposed to fall with this power of their order.
_FALL = 1.5
# Further orders that are counted.
_MORE = 6
# Families of functions whose next orders are known.
_FAMILIES = ("legendre", "cosine")


def higher_functions(basis: Basis) -> Basis | None:
    """Return the next orders of every covariate's own functions, all of weight one; None where there are none."""
    axes, terms = [], []
    for axis in basis.axes:
        if axis.family in _FAMILIES:
            axes.append(replace(axis, size=axis.size + _MORE))
            last = len(axes) - 1
            terms += [Term((last,), (axis.size + more,), axis.size + more + 1) for more in range(_MORE)]
    return Basis(tuple(axes), tuple(terms), (0.0, *(1.0,) * len(terms))) if terms else None


def higher_variances(basis: Basis, weights: Floats, covariance: Floats) -> Floats:
    """Return the variance of every function of `higher_functions`, the constant (which has none) first."""
    squares = (weights**2 + np.diag(covariance)) * basis.scale**2
    starts = np.cumsum((0, *basis.sizes))
    variances = [0.0]
    for place, axis in enumerate(basis.axes):
        if axis.family not in _FAMILIES:
            continue
        last = max((_square(basis, squares, starts, place, axis, back) for back in (1, 2)), default=0.0)
        orders = np.arange(axis.size + 1, axis.size + _MORE + 1)
        variances += list(last * (axis.size / orders) ** (2 * _FALL))
    return np.array(variances)


def _square(
    basis: Basis, squares: Floats, starts: NDArray[np.int64], place: int, axis: Axis, back: int
) -> float:
    """Return the squared weight of a covariate's own function `back` orders from the end, 0 if there is none."""
    for number, term in enumerate(basis.terms):
        if term.axes == (place,) and term.groups == (axis.size - back,):
            return float(squares[starts[number + 1]])
    return 0.0
