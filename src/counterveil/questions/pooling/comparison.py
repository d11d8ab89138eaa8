"""How far sites differ, on the scale on which their numbers are compared: plain, or logarithms.

In come the released estimates of J sites with their errors, out come J numbers b_j on that scale and their
variances v_j, sampling and noise together: differences in units of the outcome, or log(ratio_j), whose error
is that of the ratio over the ratio (delta method). Of b_j and v_j follow intervals for tau, the standard
deviation of the sites' true numbers (Q-profile, `inference.heterogeneity`), and for I^2, its part of what
they differ by. A ratio near zero has a logarithm with no end: its variance is `LOST`, which weighs next to
nothing.

All of it is post-processing of released numbers: nothing is spent, and privacy does not depend on it.
"""

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
# Added to variances of compared numbers, so that none is zero.
_LEAST_VARIANCE = 1e-300
# What the sites' own numbers are called on the scale on which they are compared.
SCALES = {RATIO: "log ratio", ODDS: "log odds ratio", LIFT: "log of 1 + lift"}


def compared(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> tuple[Floats, Floats]:
    """Return what is compared between sites, differences or logarithms of ratios, and its variances."""
    if measure in OF_MEANS:
        logs = logarithms(means, measure)
        # Of a mean next to zero they are beyond floats.
        with np.errstate(over="ignore"):
            variances = np.array([log.sampling_sd for log in logs]) ** 2
            variances += np.array([log.noise_sd for log in logs]) ** 2
        return np.array([log.estimate for log in logs]), np.nan_to_num(variances, posinf=LOST)
    differences = [site.values[0] - site.values[1] for site in means]
    return np.array(differences), np.array([site.error_of_difference.total_sd**2 for site in means])


def compared_known(estimates: Sequence[Known]) -> tuple[Floats, Floats]:
    """Return what is compared between sites and its variances: estimates, or logarithms of ratios."""
    measure = estimates[0].measure if isinstance(estimates[0], Measured) else None
    if measure is not None:
        return compared([cast("Any", estimate).means for estimate in estimates], measure)
    if all(isinstance(estimate, Linear | NumberNeededToTreat) for estimate in estimates):
        linear = [
            cast("Linear", estimate.difference if isinstance(estimate, NumberNeededToTreat) else estimate)
            for estimate in estimates
        ]
        variances = [released_variance(cast("Uncertainty", estimate.uncertainty)) for estimate in linear]
        return np.array([estimate.estimate for estimate in linear]), np.array(variances)
    scaled = [Logarithm(estimate) for estimate in estimates] if is_ratio(estimates[0]) else estimates
    variances = [estimate.sampling_sd**2 + estimate.noise_sd**2 for estimate in scaled]
    values = np.nan_to_num([estimate.estimate for estimate in scaled], posinf=0.0, neginf=0.0)
    # An infinite variance has no weight; nor may one be zero.
    return values, np.nan_to_num(variances, posinf=LOST) + _LEAST_VARIANCE


def logarithms(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> list[Logarithm]:
    """Return the logarithms of the sites' ratios, or odds ratios; that of 1 + lift is that of the ratio."""
    return [Logarithm(Measured(site, ODDS if measure == ODDS else RATIO)) for site in means]


def differing_intervals(estimates: Floats, variances: Floats, level: float) -> dict[str, Ends]:
    """Return intervals for the standard deviation between sites and for I^2."""
    low, high = tau_squared_interval(estimates, variances, level)
    return {
        "tau": (sqrt(low), sqrt(high)),
        "i_squared": (i_squared_of(low, variances), i_squared_of(high, variances)),
    }
