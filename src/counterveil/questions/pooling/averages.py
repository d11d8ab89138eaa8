"""Weights of sites, and averages of one number of several sites.

In come released numbers of J sites: the estimate e_j, its sampling variance v_j, the variance s_j^2 of its
noise and the public number of people n_j of site j. Out comes

    sum_j w_j e_j,    sum_j w_j = 1,    with the variance sum_j w_j^2 (v_j + s_j^2),

in the units of the estimates. Weights follow v_j + s_j^2; they follow n_j, s_j^2 and one sampling variance
per person of all sites where v_j may share noise with e_j, since such a weight would favour sites that noise
made large or small, or where nobody can check v_j. Means of both arms are averaged by public weights, before
a measure is made of them; ratios are averaged by their logarithms. Proof: inference/pooling.proof.md.

All of it is post-processing of released numbers: nothing is spent, and privacy does not depend on weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias, cast

import numpy as np

from counterveil.errors import refusal
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans
from counterveil.inference.between_sites import ErrorBetweenSites
from counterveil.inference.estimates import Known, truncate
from counterveil.inference.heterogeneity import paule_mandel
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.quotient import DIFFERENCE, LIFT, NEEDED, RATIO
from counterveil.inference.site_weights import (
    POOLING_METHODS,
    held_weights,
    noise_sds_of_variances,
    noise_variance,
    other_variance,
    pooling_weights,
    steadied_variances,
)
from counterveil.inference.survival.areas import Area
from counterveil.inference.survival.probabilities import Gap
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Ends, Floats
from counterveil.questions.pooling.agreement import Answers
from counterveil.questions.pooling.comparison import LOST, SCALES, compared, compared_known, logarithms
from counterveil.questions.pooling.known import Logarithm, PooledKnown, PooledRatio, is_ratio
from counterveil.report.pooling import METHODS
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS, NumberNeededToTreat, difference_of, known_as
from counterveil.settings import WeightLimits

AnyMeans: TypeAlias = IndependentArmMeans | JointArmMeans
# Ways of pooling whose weights are made from variances. Where a site's variance may share noise with its estimate,
# weights come from sizes, the scales of the noises, and one sampling variance per person for all sites.
_BY_VARIANCE = ("mvagg", "ivw", "random_effects")


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledNumber:
    """One number of several sites as one.

    Attributes
    ----------
    known : Linear, Measured, PooledKnown, PooledRatio or NumberNeededToTreat
        The average with its error, on the scale of the measure.
    weights : ndarray of float, shape (J,)
        Weights of the sites, which add up to one.
    scale : str
        What sites are compared by, such as "difference" or "log ratio".
    means : PooledMeans or None
        Averages of both arms' means, where these were released.
    random : PooledKnown or None
        Mean of what sites are compared by, for random effects of measures.
    """

    known: Any
    weights: Floats
    scale: str = DIFFERENCE
    means: PooledMeans | None = None
    random: PooledKnown | None = None


def pooled_number(
    sites: Answers,
    sizes: Floats,
    *,
    method: str,
    bounds: WeightLimits | None,
    measure: str = DIFFERENCE,
    independent: bool = False,
) -> PooledNumber:
    """Return the average of one number of several sites, by the roles of what they released.

    Parameters
    ----------
    sites : sequence of (str, estimate)
        Names of the sites with their numbers, all of one kind.
    sizes : ndarray of float, shape (J,)
        Public numbers of people behind them.
    method : {"mvagg", "ivw", "all", "largest", "random_effects"}
        How sites are weighted.
    bounds : WeightLimits or None
        Limits on weights.
    measure : str
        Scale of the average; means of arms are averaged before it is made of them.
    independent : bool
        Whether no variance shares noise with its estimate, so that weights may follow variances.
    """
    numbers = [number for _, number in sites]
    if all(isinstance(number, Linear) for number in numbers):
        return _with_variances(sites, sizes, method, bounds, measure=measure, independent=independent)
    if all(isinstance(number, AnyMeans) for number in numbers):
        return _of_means(sites, sizes, method, bounds, measure=measure)
    if is_ratio(numbers[0]):
        average = _with_intervals(
            [(site, Logarithm(number)) for site, number in sites], sizes, method, bounds
        )
        return PooledNumber(known=PooledRatio(average.known), weights=average.weights, scale=SCALES[RATIO])
    return _with_intervals(sites, sizes, method, bounds)


def of_random(measure: str, random: PooledKnown) -> Known:
    """Return the measure over sites whose own numbers have the mean `random`."""
    if measure in OF_MEANS:
        return PooledRatio(random, 0.0 if measure == LIFT else 1.0)
    return NumberNeededToTreat(random) if measure == NEEDED else random


def prediction_ends(measure: str, random: PooledKnown, level: float) -> Ends:
    """Return the ends of an interval for the measure at one more site; of numbers needed to treat, the difference."""
    known = of_random(measure, random)
    return known.one_more(level) if isinstance(known, PooledRatio) else random.one_more(level)


def _with_variances(
    rows: Sequence[tuple[str, Linear]],
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
    *,
    measure: str,
    independent: bool,
) -> PooledNumber:
    """Return the average of numbers with a variance of their own."""
    estimates, own_variances = compared_known([number for _, number in rows])
    errors = [cast("Uncertainty", number.uncertainty) for _, number in rows]
    random = method == "random_effects"
    tau_squared = paule_mandel(estimates, own_variances) if random else 0.0
    # A weight does not follow a number that may share noise with the estimate, or that nobody can check.
    separate = bounds is None and independent
    steadied = steadied_variances(errors, sizes, common=not separate)
    variances = steadied + np.array([other_variance(error) for error in errors])
    if not separate:
        variances += noise_sds_of_variances(errors)
    weights = limited_weights(rows, variances, sizes, method=method, bounds=bounds, tau_squared=tau_squared)
    uncertainty = PooledUncertainty(
        sites=tuple(errors),
        weights=tuple(map(float, weights)),
        steadied=tuple(map(float, steadied)) if method in _BY_VARIANCE else None,
        between=tau_squared,
        between_sites=ErrorBetweenSites.of(estimates[weights > 0]) if random else None,
    )
    limits = _joint_limits([number.limits for _, number in rows])
    # An average of noisy numbers may lie where no effect can; cutting it brings it nearer to any that can.
    average = float(weights @ estimates)
    estimate = truncate((average, average), limits)[0]
    return PooledNumber(known=known_as(measure, Linear(estimate, uncertainty, limits)), weights=weights)


def _of_means(
    sites: Sequence[tuple[str, AnyMeans]],
    sizes: Floats,
    method: str,
    bounds: WeightLimits | None,
    *,
    measure: str,
) -> PooledNumber:
    """Return the measure of averaged means of both arms; for random effects the mean of the sites' measures.

    Public numbers alone order the sites. For random effects released ones say only how many are taken: by the variance
    between sites, in the unit of public variances, which is right for the median site.
    """
    if method not in METHODS:
        raise refusal("CV-P508", methods=" or ".join(map(repr, METHODS)), method=method)
    means = [site_means for _, site_means in sites]
    names = tuple(name for name, _ in sites)
    scale = SCALES.get(measure, DIFFERENCE)
    public = public_variances(means, sizes)
    if method != "random_effects":
        weights = limited_weights(sites, public, sizes, method=method, bounds=bounds)
        averages = PooledMeans(tuple(means), tuple(map(float, weights)), names)
        return PooledNumber(known=known_as(measure, averages), weights=weights, scale=scale, means=averages)
    estimates, variances = compared(means, measure)
    tau_squared = paule_mandel(estimates, variances)
    unit = float(np.median(variances / public))
    weights = limited_weights(
        sites, public, sizes, method=method, bounds=bounds, tau_squared=tau_squared / unit
    )
    between = ErrorBetweenSites.of(estimates[weights > 0])
    of_ratios = measure in OF_MEANS
    numbers: Sequence[Known] = (
        logarithms(means, measure) if of_ratios else [difference_of(site_means) for site_means in means]
    )
    limits = None if of_ratios else _joint_limits([cast("Linear", number).limits for number in numbers])
    weights_of_sites = tuple(map(float, weights))
    random = PooledKnown(
        sites=tuple(numbers),
        weights=weights_of_sites,
        limits=limits,
        between=tau_squared,
        between_sites=between,
    )
    averages = PooledMeans(tuple(means), weights_of_sites, names)
    return PooledNumber(
        known=of_random(measure, random), weights=weights, scale=scale, means=averages, random=random
    )


def _with_intervals(sites: Answers, sizes: Floats, method: str, bounds: WeightLimits | None) -> PooledNumber:
    """Return the average of numbers with intervals of their own.

    No weight follows what a site says of its sampling error: all have one sampling variance per person.
    """
    numbers = [number for _, number in sites]
    sampling = np.array([number.sampling_sd**2 for number in numbers])
    noise = np.array([number.noise_sd**2 for number in numbers])
    sure = np.isfinite(sampling)
    variance_per_person = float(np.mean((sampling * sizes)[sure])) if sure.any() else 1.0
    variances = np.nan_to_num(np.where(sure, variance_per_person / sizes, inf) + noise, posinf=LOST)
    random = method == "random_effects"
    estimates, own_variances = compared_known(numbers)
    tau_squared = paule_mandel(estimates, own_variances) if random else 0.0
    weights = limited_weights(sites, variances, sizes, method=method, bounds=bounds, tau_squared=tau_squared)
    between = ErrorBetweenSites.of(estimates[weights > 0]) if random else None
    weights_of_sites = tuple(map(float, weights))
    average = PooledKnown(
        sites=tuple(numbers),
        weights=weights_of_sites,
        limits=_limits_of(numbers),
        between=tau_squared,
        between_sites=between,
    )
    return PooledNumber(known=average, weights=weights)


def limited_weights(
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


def public_variances(means: Sequence[AnyMeans], sizes: Floats) -> Floats:
    """Return what differences are expected to vary by, from public numbers alone.

    Of outcomes that lie half at either end of their range, in arms of one size; noise is as announced.
    """
    noise = np.array([_announced(site_means) for site_means in means])
    width = np.array([site_means.range[1] - site_means.range[0] for site_means in means])
    return np.asarray(noise + width**2 / sizes)


def _announced(means: AnyMeans) -> float:
    """Return the variance of noise whose scale is public."""
    if isinstance(means, JointArmMeans):
        # The noise of the difference follows the released share treated; that of the mean follows the budget alone,
        # and in arms of one size both are about as large.
        return noise_variance(means.mean_noise)
    return sum(noise_variance(error.noise) for error in means.known)


def check_method(method: object) -> None:
    """Raise CV-P506 for a way of pooling that there is not."""
    if not isinstance(method, str) or method not in POOLING_METHODS:
        raise refusal("CV-P506", pooling_methods=" or ".join(map(repr, POOLING_METHODS)), method=method)


def _joint_limits(every: Sequence[Ends | None]) -> Ends | None:
    """Return what an average of the sites' effects can be at all, None where a site does not say."""
    stated = [ends for ends in every if ends is not None]
    if len(stated) < len(every):
        return None
    return min(low for low, _ in stated), max(high for _, high in stated)


def _limits_of(numbers: Sequence[Known]) -> Ends | None:
    """Return what an average can be at all, None where a site does not say."""
    limits: list[Ends | None] = []
    for number in numbers:
        if isinstance(number, NoisyRatio):
            limits.append((-number.limit, number.limit))
        elif isinstance(number, RatioDifference):
            most = number.one.limit + number.other.limit
            limits.append((-most, most))
        elif isinstance(number, Gap):
            limits.append((-1.0, 1.0))
        else:
            limits.append(number.limits if isinstance(number, Area) else None)
    return _joint_limits(limits)
