"""Which sites enter an average of independent estimates, and with which weights.

    average = sum_j w_j b_j,    variance = sum_j w_j^2 v_j,    sum_j w_j = 1.

Site j has the estimate b_j, its variance v_j (squared units of the estimate) and its size N_j (people), all
public or released. Out: weights w (J,), parts of 1. Methods are sizes ("all", w_j in proportion to N_j), the
largest site alone, inverse variances ("ivw"), sizes within the subset of sites whose average varies least
("mvagg"), and equal weights of the sites that are not lost in noise ("random_effects").

Why: for weights in proportion to N_j the best subset consists of the sites of smallest N_j v_j, so that J
candidates are compared instead of 2^J. Proof: `inference/subset_pooling.proof.md`; that averages keep their
coverage: `inference/pooling.proof.md`. Weights made of noisy variances would favour sites whose variance came
out too small by chance: these are first shrunk towards what all sites say together. Nothing here reads rows;
privacy does not depend on which weights are taken.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from counterveil.inference.between_sites import quiet_sites
from counterveil.inference.heterogeneity import paule_mandel
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats


# Proof: subset_pooling.proof.md
def best_subset(sizes: Floats, variances: Floats) -> NDArray[np.bool_]:
    """Return which sites to pool, with weights in proportion to their sizes, for the least variance.

    sizes (J,) are positive, variances (J,) are not negative. The variance of a subset I is
    sum N_j^2 v_j / (sum N_j)^2; the least one is that of some sites with the smallest N_j v_j.
    """
    order = np.argsort(sizes * variances, kind="stable")
    people = np.cumsum(sizes[order])
    variance = np.cumsum(sizes[order] ** 2 * variances[order])
    count = int(np.argmin(variance / people**2)) + 1
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    chosen[order[:count]] = True
    return chosen


POOLING_METHODS = ("mvagg", "ivw", "all", "largest", "random_effects")
# The normal distribution's 97.5 % point.
_TWO_SIDED = 1.959964


def pooling_weights(method: str, sizes: Floats, variances: Floats, tau_squared: float = 0.0) -> Floats:
    """Return the weights (J,) of the sites, which add up to one.

    `tau_squared` is the variance between sites, for `random_effects` alone.
    """
    if method == "largest":
        weights = np.zeros(len(sizes))
        weights[int(np.argmax(sizes))] = 1.0
    elif method == "all":
        weights = sizes / sizes.sum()
    elif method == "mvagg":
        weights = np.where(best_subset(sizes, variances), sizes, 0.0)
    elif method == "random_effects":
        weights = quiet_sites(variances, tau_squared).astype(np.float64)
    else:
        weights = 1 / variances
    return np.asarray(weights / weights.sum())


def held_weights(weights: Floats, most: Floats, variances: Floats) -> Floats:
    """Return weights (J,) of which none is above its `most`; what is taken off goes to the others in proportion.

    Where the others have no weight, it goes to them by inverse variance. `most` adds up to at least one.
    """
    limited = weights.copy()
    held = np.zeros(len(weights), dtype=np.bool_)
    for _ in range(len(weights)):
        over = ~held & (limited > most)
        if not over.any():
            break
        held |= over
        limited[held] = most[held]
        share = limited[~held] if limited[~held].sum() > 0 else 1 / variances[~held]
        limited[~held] = (1 - limited[held].sum()) * share / share.sum()
    return np.asarray(limited)


def noise_variance(distribution: NoiseDistribution | None) -> float:
    """Return the variance of a noise; where it has none, that of a normal distribution with the same 95 % range."""
    if distribution is None:
        return 0.0
    if isfinite(distribution.variance):
        return distribution.variance
    return float(distribution.quantile(np.array([0.975]))[0] / _TWO_SIDED) ** 2


def other_variance(uncertainty: Uncertainty) -> float:
    """Return the variance of an estimate that is not sampling: noise and small terms."""
    return uncertainty.extra + uncertainty.ball_variance + noise_variance(uncertainty.noise)


def released_variance(uncertainty: Uncertainty) -> float:
    """Return the variance of an estimate: sampling as released, inside its bounds, plus noise.

    At least the variance of the noise, which is known: a site whose released sampling variance came out
    negative is not taken for a better one than that.
    """
    return uncertainty.sampling_sd**2 + other_variance(uncertainty)


def steadied_variances(sites: list[Uncertainty], sizes: Floats, common: bool = False) -> Floats:
    """Return sampling variances (J,) for weighing: released ones, shrunk towards their mean as far as their noise says.

    Weights made from noisy variances favour sites whose variance came out too small by chance. Variances
    per person are therefore shrunk towards their mean; those that differ by more than noise explains keep
    their differences (empirical Bayes), and what stays unsure of each is put on top. With `common` all sites
    have the mean, so that no weight follows a site's own number. A variance that was not released stays at
    its largest.
    """
    variances = np.array([site.variance_cap for site in sites])
    noisy = np.array([site.variance_noise is not None for site in sites])
    if not noisy.any():
        return variances
    chosen = [site for site in sites if site.variance_noise is not None]
    size = sizes[noisy]
    caps = variances[noisy]
    per_person = size * np.array([site.variance for site in chosen])
    noise = size**2 * np.array([noise_variance(site.variance_noise) for site in chosen])
    # The variance between sites of the variance per person; one site alone says nothing about it.
    differing = paule_mandel(per_person, noise) if len(chosen) > 1 else float(noise.max())
    differing = 0.0 if common else differing
    precision = 1 / (noise + differing)
    centre = float(precision @ per_person / precision.sum())
    reliability = differing * precision
    shrunk = np.maximum(centre + reliability * (per_person - centre), 0.0)
    variances[noisy] = np.minimum((shrunk + np.sqrt(reliability * noise)) / size, caps)
    return variances


def noise_sds_of_variances(sites: list[Uncertainty]) -> Floats:
    """Return the standard deviation of the noise of every released variance, at most its cap: what intervals add."""
    caps = np.array([site.variance_cap for site in sites])
    return np.asarray(np.minimum(np.sqrt([noise_variance(site.variance_noise) for site in sites]), caps))
