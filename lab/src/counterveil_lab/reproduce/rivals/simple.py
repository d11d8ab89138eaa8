"""Simple private estimates and a randomisation test: what somebody who knows the Laplace mechanism would write.

Noise is numpy's, from a seed: these are for comparison, and their guarantees are those of real arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.gaussian_profile import mu_of
from counterveil_lab.reproduce.rivals.encoding import Floats, features
from counterveil_lab.reproduce.rivals.plain import design, scores
from counterveil_lab.reproduce.rivals.protocol import Answer, Budget, Records

# How often noise may exceed the ridge that is made for it.
_RIDGE_LEVEL = 0.05


@cache
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the sensitivity over the standard deviation of the exact Gaussian mechanism."""
    return float(mu_of(Fraction(epsilon), Fraction(delta)))


# Outcomes alone are private: a linear estimate has public coefficients.


def public_scale(coefficients: Floats, records: Records, epsilon: float) -> float:
    """Return the Laplace scale of a linear estimate whose coefficients are public."""
    return records.width * float(np.abs(coefficients).max()) / epsilon


def _linear(coefficients: Floats, records: Records, budget: Budget, seed: int) -> Answer:
    middle = sum(records.outcome_range) / 2
    value = float(coefficients @ (records.outcomes - middle))
    noise = np.random.default_rng(seed).laplace(0, public_scale(coefficients, records, budget.epsilon))
    return Answer(value + float(noise))


def means_coefficients(records: Records) -> Floats:
    """Return the coefficients of the difference in means."""
    treated = int(records.treated.sum())
    return np.asarray(np.where(records.treated, 1 / treated, -1 / (records.rows - treated)))


def ols_coefficients(records: Records) -> Floats:
    """Return the coefficients of the treatment's coefficient in a linear regression."""
    t, x = records.treated.astype(np.float64), design(records)
    left = t - x @ np.linalg.lstsq(x, t, rcond=None)[0]
    return np.asarray(left / float(left @ left))


def weighting_coefficients(records: Records) -> Floats:
    """Return the coefficients of inverse probability weighting, normalised in each arm."""
    t = records.treated
    e = scores(design(records), t.astype(np.float64))
    weights = np.where(t, 1 / e, 1 / (1 - e))
    return np.asarray(np.where(t, weights / weights[t].sum(), -weights / weights[~t].sum()))


def outcome_means(records: Records, budget: Budget, seed: int) -> Answer:
    """Return the difference in means with one Laplace draw."""
    return _linear(means_coefficients(records), records, budget, seed)


def outcome_ols(records: Records, budget: Budget, seed: int) -> Answer:
    """Return the treatment's coefficient of a linear regression with one Laplace draw."""
    return _linear(ols_coefficients(records), records, budget, seed)


def outcome_weighting(records: Records, budget: Budget, seed: int) -> Answer:
    """Return the weighted difference, scores fitted on public columns, with one Laplace draw."""
    return _linear(weighting_coefficients(records), records, budget, seed)


# Records are private.


def gram_rows(records: Records) -> Floats:
    """Return the treatment, the covariates and the outcome with a constant before them, everything in [-1, 1]."""
    low, high = records.outcome_range
    y = 2 * (records.outcomes - low) / (high - low) - 1
    t = 2 * records.treated.astype(np.float64) - 1
    return np.column_stack([np.ones(records.rows), t, features(records), y])


def gram_scale(size: int, budget: Budget) -> float:
    """Return the standard deviation of the noise off the diagonal of a Gram matrix of `size` columns in [-1, 1].

    Gaussian: |z z' - w w'| is at most sqrt(2) size in the Frobenius norm, half of which sits on each side of the
    diagonal. Laplace: sums of |z_i z_j - w_i w_j| are convex in every number, so largest where all are 1 or -1; if m of
    them differ, m (size - m) products do, by 2 each. Squares move by at most 1; the first is constant and the last is
    not released.
    """
    if budget.delta > 0:
        return size / gaussian_mu(budget.epsilon, budget.delta)
    return sqrt(2) * (size**2 // 2 + size - 2) / budget.epsilon


def upper_noise(size: int, budget: Budget, rng: np.random.Generator, count: int) -> Floats:
    """Return noise for the upper halves of `count` Gram matrices, a row for each.

    The number of rows gets none, nor does the sum of squared outcomes, which regression does not read.
    """
    first, second = np.triu_indices(size)
    sd, shape = gram_scale(size, budget), (count, len(first))
    if budget.delta > 0:
        drawn = rng.normal(0, sqrt(2) * sd, shape) / np.where(first == second, 1, sqrt(2))
    else:
        drawn = rng.laplace(0, sd / sqrt(2), shape)
    drawn[:, [0, -1]] = 0.0
    return np.asarray(drawn)


def gram_noise(size: int, budget: Budget, rng: np.random.Generator) -> Floats:
    """Return symmetric noise for a Gram matrix of `size` columns in [-1, 1]; the first is constant."""
    noise = np.zeros((size, size))
    noise[np.triu_indices(size)] = upper_noise(size, budget, rng, 1)[0]
    return noise + np.triu(noise, 1).T


def gram_ridge(gram: Floats, sd: float) -> float:
    """Return a ridge of the noise's size, and what lifts negative eigenvalues to zero.

    Noise of `sd` in a symmetric matrix exceeds the first part, in spectral norm, at most once in twenty draws. AdaSSP
    (Wang 2018) buys the least eigenvalue and adds what that lacks of this part; here it is added in full.
    """
    size = len(gram)
    return sd * sqrt(size * log(2 * size**2 / _RIDGE_LEVEL)) + max(0.0, -float(np.linalg.eigvalsh(gram)[0]))


def noisy_gram(records: Records, budget: Budget, seed: int) -> Answer:
    """Return the treatment's coefficient of a ridge regression from a noisy Gram matrix, at most the range."""
    z = gram_rows(records)
    size = z.shape[1]
    gram = z.T @ z + gram_noise(size, budget, np.random.default_rng(seed))
    left = gram[:-1, :-1]
    ridge = gram_ridge(left, gram_scale(size, budget))
    slopes = np.linalg.solve(left + ridge * np.eye(size - 1), gram[:-1, -1])
    # Twice the coefficient for a treatment of 1 and -1, in units of half the range.
    return Answer(float(np.clip(slopes[1], -1, 1)) * records.width)


# Counts that are further from the released one than this many times 1 / epsilon have no weight.
_REACH = 12


def noisy_counts(records: Records, budget: Budget, seed: int) -> tuple[int, int]:
    """Return the counts of yes among treated and others, each with two-sided geometric noise of epsilon."""
    rng = np.random.default_rng(seed)
    yes = records.outcomes > sum(records.outcome_range) / 2
    stop = 1 - exp(-budget.epsilon)
    noise = rng.geometric(stop, 2) - rng.geometric(stop, 2)
    return int(yes[records.treated].sum() + noise[0]), int(yes[~records.treated].sum() + noise[1])


def fisher(
    first: NDArray[np.int64], second: NDArray[np.int64], sizes: tuple[int, int]
) -> NDArray[np.float64]:
    """Return two-sided p-values of Fisher's test, by how far the first count is from its mean."""
    from scipy.stats import hypergeom  # loaded by those who need it: it takes half a second and 40 MB

    total = first + second
    mean = total * sizes[0] / sum(sizes)
    away = np.abs(first - mean)
    law = hypergeom(sum(sizes), total, sizes[0])
    lower = law.cdf(np.floor(mean - away + 1e-9))
    upper = law.sf(np.ceil(mean + away - 1e-9) - 1)
    return np.asarray(np.clip(lower + upper, 0, 1))


def p_value(records: Records, budget: Budget, seed: int) -> float:
    """Return the private p-value: the mean of Fisher's over the posterior of the counts."""
    sizes = int(records.treated.sum()), int((~records.treated).sum())
    reach = ceil(_REACH / budget.epsilon)
    axes, weights = [], []
    for noisy, size in zip(noisy_counts(records, budget, seed), sizes, strict=True):
        low, high = max(0, min(noisy - reach, size)), min(size, max(noisy + reach, 0))
        counts = np.arange(low, high + 1)
        axes.append(counts)
        weights.append(np.exp(-budget.epsilon * (np.abs(counts - noisy) - np.abs(counts - noisy).min())))
    first, second = np.meshgrid(*axes, indexing="ij")
    weight = np.outer(*weights)
    return float((fisher(first, second, sizes) * weight).sum() / weight.sum())
