"""Effects without privacy, simple private estimates and a randomisation test.

Noise is numpy's, from a seed: these are for comparison, and their guarantees are those of real arithmetic.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.numerics.gaussian_profile import mu_of
from counterveil_lab.reproduce.rivals.encoding import Answer, Budget, Codes, Floats, Records, features

NORMAL = 1.959963984540054
# Beside the mean of the squared features: keeps collinear columns and small arms solvable.
RIDGE = 1e-6
LEAST_SCORE = 0.05
_NEWTON_STEPS = 25


def design(records: Records) -> Floats:
    """Return a constant and the features."""
    return np.column_stack([np.ones(records.rows), features(records)])


def zero(_: Records, __: Budget, ___: int) -> Answer:
    """Return no effect, which needs no data."""
    return Answer(0.0)


def difference(records: Records, _: Budget, __: int) -> Answer:
    """Return the difference in means with its normal interval."""
    arms = records.outcomes[records.treated], records.outcomes[~records.treated]
    error = float(sum(arm.var(ddof=1) / len(arm) for arm in arms)) ** 0.5
    return around(float(arms[0].mean() - arms[1].mean()), error)


def around(value: float, error: float) -> Answer:
    """Return a value with the normal interval of its standard error."""
    return Answer(value, value - NORMAL * error, value + NORMAL * error)


def ols(records: Records, _: Budget, __: int) -> Answer:
    """Return the treatment's coefficient of a linear regression, with a robust (HC1) interval."""
    z, y = np.column_stack([records.treated.astype(np.float64), design(records)]), records.outcomes
    inverse = np.linalg.inv(_ridged(z.T @ z, records.rows))
    left = y - z @ (inverse @ (z.T @ y))
    influence = z @ inverse[0] * left
    scale = records.rows / max(1, records.rows - z.shape[1])
    return around(float(inverse[0] @ (z.T @ y)), float(np.sqrt(scale * (influence**2).sum())))


def _ridged(gram: Floats, rows: int) -> Floats:
    return gram + RIDGE * rows * np.eye(len(gram))


def regressed(x: Floats, y: Floats) -> Floats:
    """Return the coefficients of a linear regression."""
    return np.asarray(np.linalg.solve(_ridged(x.T @ x, max(1, len(y))), x.T @ y))


def scores(x: Floats, treated: Floats) -> Floats:
    """Return propensity scores of a logistic regression, clipped."""
    slopes, ridge = np.zeros(x.shape[1]), RIDGE * len(x) * np.eye(x.shape[1])
    for _ in range(_NEWTON_STEPS):
        found = expit(x @ slopes)
        hessian = x.T @ (x * (found * (1 - found))[:, None]) + ridge
        slopes = slopes + np.linalg.solve(hessian, x.T @ (treated - found) - ridge @ slopes)
    return np.asarray(np.clip(expit(x @ slopes), LEAST_SCORE, 1 - LEAST_SCORE))


def aipw(records: Records, _: Budget, __: int) -> Answer:
    """Return the augmented inverse-weighted effect: a line in each arm and a logistic score."""
    x, t, y = design(records), records.treated.astype(np.float64), records.outcomes
    e = scores(x, t)
    m1, m0 = (x @ regressed(x[own], y[own]) for own in (records.treated, ~records.treated))
    score = m1 - m0 + t * (y - m1) / e - (1 - t) * (y - m0) / (1 - e)
    return around(float(score.mean()), float(score.std(ddof=1)) / records.rows**0.5)


def by_arms(records: Records) -> float:
    """Return the mean difference of a line in each arm; an arm that is empty counts as the middle of the range."""
    x, y = design(records), records.outcomes
    middle = sum(records.outcome_range) / 2
    found = []
    for own in (records.treated, ~records.treated):
        fitted = x @ regressed(x[own], y[own] - middle)
        found.append(middle + np.clip(fitted, -records.width / 2, records.width / 2))
    return float((found[0] - found[1]).mean())


K = 10


def groups(x: Floats, least: int) -> Codes:
    """Return a group for every row: rows are halved at the median of their widest column while both halves keep K."""
    group = np.zeros(len(x), dtype=np.int64)
    waiting, found = [np.arange(len(x))], 0
    while waiting:
        places = waiting.pop()
        halves = _halves(x[places], least)
        if halves is None:
            group[places] = found
            found += 1
        else:
            waiting += [places[halves], places[~halves]]
    return group


def _halves(x: Floats, least: int) -> np.ndarray | None:
    """Return who is below the median of the widest column that can be cut, None if none can be."""
    if len(x) < 2 * least:
        return None
    for column in np.argsort(-np.ptp(x, axis=0), kind="stable"):
        below = x[:, column] < np.median(x[:, column])
        if least <= below.sum() <= len(x) - least:
            return np.asarray(below)
    return None


def k_anonymous(records: Records, _: Budget, __: int) -> Answer:
    """Return the effect after covariates were replaced by their group's mean."""
    if not records.x.shape[1]:
        return Answer(by_arms(records))
    group = groups(features(records), K)
    sizes = np.bincount(group)
    means = [np.bincount(group, weights=column) / sizes for column in records.x.T]
    general = np.column_stack([mean[group] for mean in means])
    # Means of labels are no labels: they are measurements now.
    return Answer(by_arms(replace(records, x=general, values=None)))


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
