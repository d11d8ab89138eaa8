"""How far sites differ, on the scale on which their numbers are compared: as they are, or by their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, cast

import numpy as np

from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.estimates import Known
from counterveil.inference.heterogeneity import i_squared_of, tau_squared_interval
from counterveil.inference.quotient import LIFT, ODDS, RATIO
from counterveil.inference.site_weights import released_variance
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends, Floats
from counterveil.questions.pooling.known import Logarithm, is_ratio
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS, Measured, NumberNeededToTreat

# The variance of a number that is lost in noise: not infinite, so that all sites together have a weight.
LOST = 1e150
# What the sites' own numbers are called on the scale on which they are compared.
SCALES = {RATIO: "log ratio", ODDS: "log odds ratio", LIFT: "log of 1 + lift"}


def compared(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> tuple[Floats, Floats]:
    """Return what is compared between sites, differences or logarithms of ratios, and its variances."""
    if measure in OF_MEANS:
        logs = logarithms(means, measure)
        # Of a mean next to zero they are beyond floats.
        with np.errstate(over="ignore"):
            variances = np.array([one.sampling_sd for one in logs]) ** 2
            variances += np.array([one.noise_sd for one in logs]) ** 2
        return np.array([one.estimate for one in logs]), np.nan_to_num(variances, posinf=LOST)
    differences = [one.values[0] - one.values[1] for one in means]
    return np.array(differences), np.array([one.error_of_difference.total_sd**2 for one in means])


def compared_known(known: Sequence[Known]) -> tuple[Floats, Floats]:
    """Return what is compared between sites and its variances: estimates, or logarithms of ratios."""
    measure = known[0].measure if isinstance(known[0], Measured) else None
    if measure is not None:
        return compared([cast("Any", one).means for one in known], measure)
    if all(isinstance(one, Linear | NumberNeededToTreat) for one in known):
        linear = [
            cast("Linear", one.difference if isinstance(one, NumberNeededToTreat) else one) for one in known
        ]
        variances = [released_variance(cast("Uncertainty", one.uncertainty)) for one in linear]
        return np.array([one.estimate for one in linear]), np.array(variances)
    scaled = [Logarithm(one) for one in known] if is_ratio(known[0]) else known
    variances = [one.sampling_sd**2 + one.noise_sd**2 for one in scaled]
    estimates = np.nan_to_num([one.estimate for one in scaled], posinf=0.0, neginf=0.0)
    # An infinite variance has no weight; nor may one be zero.
    return estimates, np.nan_to_num(variances, posinf=LOST) + 1e-300


def logarithms(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> list[Logarithm]:
    """Return the logarithms of the sites' ratios, or odds ratios; that of 1 + lift is that of the ratio."""
    return [Logarithm(Measured(one, ODDS if measure == ODDS else RATIO)) for one in means]


def differing_intervals(estimates: Floats, variances: Floats, level: float) -> dict[str, Ends]:
    """Return intervals for the standard deviation between sites and for I^2."""
    low, high = tau_squared_interval(estimates, variances, level)
    parts = (i_squared_of(low, variances), i_squared_of(high, variances))
    return {"tau": (sqrt(low), sqrt(high)), "i_squared": parts}
