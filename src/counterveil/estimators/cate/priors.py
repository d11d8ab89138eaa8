"""How large weights may be before anything is seen: public, in units of half the outcome's range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.bases import Basis
from counterveil.kernels.group_shrinkage import Prior

Floats = NDArray[np.float64]

# Standard deviation of the mean outcome and of the mean effect, in units of half the range.
_LEVEL = 0.5


def effect_prior(common: Basis, effect: Basis, common_length: float, effect_length: float) -> Prior:
    """Return the prior of the weights of the common part and of the effect.

    A function of order k has standard deviation scale/k; functions of the same covariates share a scale.
    `common_length` and `effect_length` are what the features were divided by.
    """
    first, groups, count = _block(common, common_length, 0)
    second, more, total = _block(effect, effect_length, count)
    blocks = np.concatenate((np.zeros(count, np.intp), np.ones(total - count, np.intp)))
    return Prior(np.concatenate((first, second)), np.concatenate((groups, more)), blocks)


def _block(basis: Basis, length: float, start: int) -> tuple[Floats, NDArray[np.intp], int]:
    orders = np.maximum(basis.orders, 1.0)
    base = (length / basis.scale / orders) ** 2
    base[0] *= _LEVEL**2
    places: dict[tuple[int, ...], int] = {}
    groups = [-1]
    for term, size in zip(basis.terms, basis.sizes[1:], strict=True):
        groups += [places.setdefault(term.axes, start + len(places))] * size
    return base, np.array(groups, dtype=np.intp), start + len(places)


def one_prior(basis: Basis, length: float) -> Prior:
    """Return the prior of the weights of one function, by the same rule as that of the effect."""
    base, groups, count = _block(basis, length, 0)
    return Prior(base, groups, np.zeros(count, np.intp))
