"""How much of the outcomes' dependence on covariates is taken out of the variance, decided from public numbers."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.ate.variance_share import TYPICAL_SD, effect_plan
from counterveil.estimators.ate.weighting_design import Weighted
from counterveil.estimators.question import Question
from counterveil.kernels.residual_variance import ResidualVariance, Spectrum, residual_variance

# How strongly directions may be taken out: not at all, or as in ridge regression with ever less penalty. The
# features have a total variance of one, so with p of them directions of strength p go half.
_STRENGTHS = (0.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e5)
# A guess of how much of the outcomes' variance follows the features; it only steers the choice.
_EXPLAINED = 0.5
# The share of the budget at which the choices are compared.
_SHARE = Fraction(1, 4)


def chosen_spread(found: Weighted, treated: NDArray[np.bool_], question: Question) -> ResidualVariance:
    """Return the form of the variance that is expected to give the shortest interval.

    Taking directions out removes from the variance what covariates explain, and costs sensitivity. Only
    as much is taken out as leaves room for the bias that the remaining imbalance causes in expectation.
    """
    arms = (treated, ~treated)
    spectra = tuple(Spectrum.of(found.features, found.weights, arm) for arm in arms)
    squares = sum(spectrum.weight for spectrum in spectra)
    noise = sqrt(effect_plan(question, _SHARE).noise("variance", Fraction(1)).variance)

    def expected(strength: float, move: float) -> float:
        loading = sum(spectrum.loading(strength) for spectrum in spectra)
        typical = float(TYPICAL_SD) ** 2 * ((1 - _EXPLAINED) * squares + _EXPLAINED * loading)
        return typical + noise * move

    allowed = [0.0] + [
        strength
        for strength in _STRENGTHS[1:]
        if sum(spectrum.loading(strength) for spectrum in spectra) >= found.imbalance**2
        and min(spectrum.freedom(strength) for spectrum in spectra) >= 1
    ]
    guess = {s: max(spectrum.typical_move(s) for spectrum in spectra) for s in allowed}
    best = min(allowed, key=lambda strength: expected(strength, guess[strength]))
    plain = residual_variance(found.features, spectra, 0.0)
    if best == 0.0:
        return plain
    form = residual_variance(found.features, spectra, best)
    moves = [max(float(arm.largest_move) for arm in one.arms) for one in (form, plain)]
    return form if expected(best, moves[0]) < expected(0.0, moves[1]) else plain
