"""Weights of sites, and averages of one number of several sites.

A number is pooled by its roles: estimate e_j, sampling variance, variance of the noise and size n_j of site j. The
average is sum_j w_j e_j, with weights w_j that follow the variances; or sizes and the scales of the noise where a
variance may share noise with its estimate, or where nobody can check it. Means of both arms are averaged by public
weights, before a measure is made of them. Everything else is averaged as it is, by its logarithm if it is a ratio.
Proof: inference/pooling.proof.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, cast

import numpy as np

from counterveil.errors import refusal
from counterveil.inference.measures import (
    ODDS,
    RATIO,
    IndependentArmMeans,
    JointArmMeans,
    NoisyRatio,
    RatioDifference,
)
from counterveil.inference.pooling import (
    POOLING_METHODS,
    ErrorBetweenSites,
    Heterogeneity,
    PooledMeans,
    PooledUncertainty,
    held_weights,
    heterogeneity,
    i_squared_of,
    noise_sds_of_variances,
    noise_variance,
    other_variance,
    paule_mandel,
    pooling_weights,
    released_variance,
    steadied_variances,
    tau_squared_interval,
)
from counterveil.inference.survival.areas import Area
from counterveil.inference.survival.probabilities import Gap
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends, Floats
from counterveil.questions.pooling.agreement import Answers
from counterveil.questions.pooling.known import Logarithm, PooledKnown, PooledRatio, is_ratio
from counterveil.results.effect import (
    Known,
    Linear,
    truncate,
)
from counterveil.results.measures import (
    DIFFERENCE,
    LIFT,
    NEEDED,
    OF_MEANS,
    Measured,
    NumberNeededToTreat,
    difference_of,
)
from counterveil.settings import WeightLimits

# The variance of a number that is lost in noise: not infinite, so that all sites together have a weight.
LOST = 1e150
# What the sites' own numbers are called on the scale on which they are compared.
SCALES = {RATIO: "log ratio", ODDS: "log odds ratio", LIFT: "log of 1 + lift"}


def compared(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> tuple[Floats, Floats]:
    """Return what is compared between sites, differences or logarithms of ratios, and its variances."""
    if measure in OF_MEANS:
        logs = _logarithms(means, measure)
        # Of a mean next to zero they are beyond floats.
        with np.errstate(over="ignore"):
            variances = np.array([one.sampling_sd for one in logs]) ** 2
            variances += np.array([one.noise_sd for one in logs]) ** 2
        return np.array([one.estimate for one in logs]), np.nan_to_num(variances, posinf=LOST)
    differences = [one.values[0] - one.values[1] for one in means]
    return np.array(differences), np.array([one.error_of_difference.total_sd**2 for one in means])


def of_random(measure: str, random: PooledKnown) -> Known:
    """Return the measure over sites whose own numbers have the mean `random`."""
    if measure in OF_MEANS:
        return PooledRatio(random, 0.0 if measure == LIFT else 1.0)
    return NumberNeededToTreat(random) if measure == NEEDED else random


def one_more(measure: str, random: PooledKnown, level: float) -> Ends:
    """Return the ends of an interval for the measure at one more site; of numbers needed to treat, the difference."""
    known = of_random(measure, random)
    return known.one_more(level) if isinstance(known, PooledRatio) else random.one_more(level)


def _logarithms(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> list[Logarithm]:
    """Return the logarithms of the sites' ratios, or odds ratios; that of 1 + lift is that of the ratio."""
    return [Logarithm(Measured(one, ODDS if measure == ODDS else RATIO)) for one in means]


def differing(means: Sequence[IndependentArmMeans | JointArmMeans], measure: str) -> Heterogeneity:
    """Return how far sites differ beyond their errors."""
    return heterogeneity(*compared(means, measure), SCALES.get(measure, DIFFERENCE))


def differing_intervals(estimates: Floats, variances: Floats, level: float) -> dict[str, Ends]:
    """Return intervals for the standard deviation between sites and for I^2."""
    low, high = tau_squared_interval(estimates, variances, level)
    parts = (i_squared_of(low, variances), i_squared_of(high, variances))
    return {"tau": (sqrt(low), sqrt(high)), "i_squared": parts}


def random_effects(
    sites: Sequence[tuple[str, IndependentArmMeans | JointArmMeans]],
    measure: str,
    sizes: Floats,
    bounds: WeightLimits | None,
) -> tuple[PooledKnown, Floats]:
    """Return the mean of what sites are compared by, with equal weights over those that are not lost in noise.

    Public numbers alone order the sites. Released ones say only how many are taken: by the variance between sites, in
    the unit of public variances, which is right for the median site.
    """
    means = [one for _, one in sites]
    estimates, variances = compared(means, measure)
    tau_squared, public = paule_mandel(estimates, variances), public_variances(means, sizes)
    unit = float(np.median(variances / public))
    weights = held(sites, public, sizes, "random_effects", bounds, tau_squared / unit)
    between = ErrorBetweenSites.of(estimates[weights > 0])
    known: Sequence[Known] = (
        _logarithms(means, measure) if measure in OF_MEANS else [difference_of(one) for one in means]
    )
    limits = None if measure in OF_MEANS else _limits([cast("Linear", one).limits for one in known])
    return PooledKnown(tuple(known), tuple(map(float, weights)), limits, tau_squared, between), weights


def averaged_means(
    sites: Sequence[tuple[str, IndependentArmMeans | JointArmMeans]],
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
) -> tuple[PooledMeans, Floats]:
    """Return the average of both arms' means, by weights that are public, and these."""
    means = [one for _, one in sites]
    weights = held(sites, public_variances(means, sizes), sizes, method, bounds)
    return PooledMeans(tuple(means), tuple(map(float, weights)), tuple(name for name, _ in sites)), weights


def held(
    sites: Answers,
    variances: Floats,
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
    tau_squared: float = 0.0,
) -> Floats:
    """Return the weights of the sites, none above its limit."""
    if bounds is None:
        return pooling_weights(method, sizes, variances, tau_squared)
    least = np.maximum(variances, bounds.least(sites))
    return held_weights(pooling_weights(method, sizes, least, tau_squared), bounds.most(sites), least)


def public_variances(means: list[IndependentArmMeans | JointArmMeans], sizes: Floats) -> Floats:
    """Return what differences are expected to vary by, from public numbers alone.

    Of outcomes that lie half at either end of their range, in arms of one size; noise is as announced.
    """
    noise = np.array([_announced(one) for one in means])
    width = np.array([one.range[1] - one.range[0] for one in means])
    return np.asarray(noise + width**2 / sizes)


def _announced(means: IndependentArmMeans | JointArmMeans) -> float:
    """Return the variance of noise whose scale is public."""
    if isinstance(means, JointArmMeans):
        # The noise of the difference follows the released share treated; that of the mean follows the budget alone,
        # and in arms of one size both are about as large.
        return noise_variance(means.mean_noise)
    return sum(noise_variance(known.noise) for known in means.known)


# Ways of pooling whose weights are made from variances. Where a site's variance may share noise with its estimate,
# weights come from sizes, the scales of the noises, and one sampling variance per person for all sites.
_BY_VARIANCE = ("mvagg", "ivw", "random_effects")


def check_method(method: object) -> None:
    """Raise CV-P506 for a way of pooling that there is not."""
    if not isinstance(method, str) or method not in POOLING_METHODS:
        raise refusal("CV-P506", pooling_methods=" or ".join(map(repr, POOLING_METHODS)), method=method)


@dataclass(frozen=True, slots=True)
class Averaged:
    """What one row of a table becomes: the sites' weights, the error of their average, and how far sites differ."""

    estimate: float
    weights: Floats
    uncertainty: PooledUncertainty
    heterogeneity: Heterogeneity
    limits: Ends | None


def averaged(
    rows: Sequence[tuple[str, Linear]],
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
    independent: bool = False,
) -> Averaged:
    """Return the average of one number of several sites; `independent` says that no variance shares its noise."""
    estimates = np.array([one.estimate for _, one in rows])
    known = [cast("Uncertainty", one.uncertainty) for _, one in rows]
    found = heterogeneity(estimates, np.array([released_variance(each) for each in known]))
    differing = method == "random_effects"
    tau_squared = found.tau_squared if differing else 0.0
    # A weight does not follow a number that may share noise with the estimate, or that nobody can check.
    separate = bounds is None and independent
    steadied = steadied_variances(known, sizes, common=not separate)
    variances = steadied + np.array([other_variance(each) for each in known])
    if not separate:
        variances += noise_sds_of_variances(known)
    weights = held(rows, variances, sizes, method, bounds, tau_squared)
    uncertainty = PooledUncertainty(
        sites=tuple(known),
        weights=tuple(map(float, weights)),
        steadied=tuple(map(float, steadied)) if method in _BY_VARIANCE else None,
        between=tau_squared,
        between_sites=ErrorBetweenSites.of(estimates[weights > 0]) if differing else None,
    )
    limits = _limits([one.limits for _, one in rows])
    # An average of noisy numbers may lie where no effect can; cutting it brings it nearer to any that can.
    average = float(weights @ estimates)
    estimate = truncate((average, average), limits)[0]
    return Averaged(estimate, weights, uncertainty, found, limits)


def _limits(every: Sequence[Ends | None]) -> Ends | None:
    """Return what an average of the sites' effects can be at all, None where a site does not say."""
    known = [ends for ends in every if ends is not None]
    if len(known) < len(every):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def compared_rows(known: Sequence[Known]) -> tuple[Floats, Floats]:
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


def limits_of(known: Sequence[Known]) -> Ends | None:
    """Return what an average can be at all, None where a site does not say."""
    found: list[Ends | None] = []
    for one in known:
        if isinstance(one, NoisyRatio):
            found.append((-one.limit, one.limit))
        elif isinstance(one, RatioDifference):
            found.append((-one.one.limit - one.other.limit, one.one.limit + one.other.limit))
        else:
            found.append(
                (-1.0, 1.0) if isinstance(one, Gap) else one.limits if isinstance(one, Area) else None
            )
    return _limits(found)
