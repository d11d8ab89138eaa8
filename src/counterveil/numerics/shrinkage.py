"""Taking known noise out of a released second-moment matrix and out of released coefficients.

Normal priors averaged by how well they explain what was seen (Robbins 1956; Efron and Morris 1973), and mixtures of
a spike and slabs for groups of weights of which most may be zero.

The shape of vector noise that costs predictions least, for a public set of moves.

One row may move a released vector by its move m_i, times a unit. Noise of covariance S hides that as well as noise
of variance one hides a move of length one, if m_i' S^-1 m_i <= 1 for every row. Among such S this is the one with
the least mean squared error tr(S L) of predictions, L being the matrix of their loss.

Lineage: the matrix mechanism (Li, Miklau, Hay, McGregor and Rastogi 2015); multiplicative steps as in optimal design
(Silvey, Titterington and Torsney 1978).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from counterveil.numerics.arrays import Floats

# Diagonal entries are near one after standardising; their prior variance around it.
_DIAGONAL_VARIANCE, _LEAST_VARIANCE = 0.09, 0.001
_DIAGONAL = (0.15, 2.5)
_LARGEST_MOMENT = 4.0
_LEAST_PART = 0.75
# Directions of less variance are modelled as if they had this much, or as much as noise could have, if that is less.
_FLOOR, _LEAST_FLOOR = 0.25, 1e-3
# How far above its expectation the unexplained part of the noisy matrix is taken.
_UPPER = 1.4
# Upper estimate of a squared length: this many standard deviations.
_LENGTH_UPPER = 1.3


@dataclass(frozen=True, slots=True)
class Denoised:
    """An estimate of u'u/n, (m, m), its inverse, and its squared error per entry.

    Eigenvalues were raised to a floor: `raised` is the largest part of a second moment that a model
    made with the inverse leaves out for that reason.
    """

    matrix: Floats
    inverse: Floats
    error: float
    raised: float = 0.0

    @property
    def trace(self) -> float:
        """Trace of the inverse."""
        return float(np.trace(self.inverse))

    @property
    def squares(self) -> float:
        """Sum of the squared entries of the inverse."""
        return float((self.inverse**2).sum())

    @property
    def leakage(self) -> float:
        """What is left of a second-order error after one correction with this inverse, as a part of it.

        The third-order error has a mechanism symmetric about zero and is about sqrt(error) times the second-order
        one; twice the root of its dimension more would be the worst case. A third of that is taken.
        """
        return min(1.0, 0.7 * sqrt(self.error * self.squares))


def denoised(noisy: Floats, sd: float) -> Denoised:
    """Return the matrix with the bulk of its noise taken out; `sd` is the noise off the diagonal.

    Noise alone has eigenvalues between -2 sd sqrt(m) and 2 sd sqrt(m). Around the middle of the spectrum,
    eigenvalues inside that band carry nothing; those outside are drawn in by what the noise added.
    """
    m = len(noisy)
    band = 2 * sd * sqrt(m)
    least = min(_DIAGONAL[0], max(band, _LEAST_FLOOR))
    diagonal = np.clip(_drawn_together(np.diag(noisy), 2 * sd * sd), least, _DIAGONAL[1])
    diagonal[0] = 1.0
    root = np.sqrt(diagonal)
    correlation = noisy / np.outer(root, root)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    kept, drawn = _drawn_in(values, band)
    error = _squared_error(correlation, kept, drawn, sd)
    matrix = (vectors * kept) @ vectors.T * np.outer(root, root)
    return floored(matrix, min(error / m**2, 1.5 * sd * sd), band)


def second_moments(noisy: Floats, sd: float) -> tuple[Floats, float]:
    """Return standardised features' second moments with most of their noise taken out, and an entry's squared error.

    As `denoised`, without a constant among the features and without a floor for small eigenvalues that remain.
    """
    m, band = len(noisy), 2 * sd * sqrt(len(noisy))
    diagonal, noise = np.diag(noisy), 2 * sd * sd
    prior = max(float(diagonal.var()) - noise, _LEAST_VARIANCE)
    diagonal = (diagonal * prior + float(diagonal.mean()) * noise) / (prior + noise)
    root = np.sqrt(np.clip(diagonal, min(_DIAGONAL[0], max(band, _LEAST_FLOOR)), _LARGEST_MOMENT))
    correlation = noisy / np.outer(root, root)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    kept, drawn = _drawn_in(values, band)
    error = _squared_error(correlation, kept, drawn, sd)
    return (vectors * kept) @ vectors.T * np.outer(root, root), min(error / m**2, 1.5 * sd * sd)


def low_rank(noisy: Floats, sd: float) -> tuple[Floats, float]:
    """Return a symmetric matrix, mostly of few directions, with noise taken out, and an entry's squared error.

    Eigenvalues within the band of the noise, 2 sd sqrt(m), carry nothing (Gavish and Donoho 2017).
    """
    m, band = len(noisy), 2 * sd * sqrt(len(noisy))
    values, vectors = np.linalg.eigh(noisy)
    kept = np.sign(values) * np.sqrt(np.maximum(values**2 - band**2, 0.0))
    found = (vectors * kept) @ vectors.T
    # What is left is drawn in as a whole (James and Stein 1961).
    noise = max(m * (m + 1) - 2 * m * float(np.count_nonzero(kept)), 1.0) * sd * sd
    left = float(((noisy - found) ** 2).sum())
    part = max(0.0, 1 - noise / left) if left > 0 else 0.0
    error = (min(2 * float(np.count_nonzero(kept)), float(m)) * m * sd * sd + part * noise) / m**2
    return found + part * (noisy - found), error


def _drawn_in(values: Floats, band: float) -> tuple[Floats, Floats]:
    """Return eigenvalues without what the noise added, and how far each is from the middle of them."""
    middle = float(np.clip(np.median(values), 0.3, 1.0))
    off = values - middle
    drawn = np.sign(off) * np.sqrt(np.maximum(off * off - band * band, 0.0))
    # Below the middle there is no room for the whole band, so that a small eigenvalue is mostly noise; and
    # corrections made with an eigenvalue of less than half its true size would not converge.
    return np.maximum(middle + drawn, min(max(band, _LEAST_FLOOR), _LEAST_PART * middle)), drawn


def _squared_error(correlation: Floats, kept: Floats, drawn: Floats, sd: float) -> float:
    """Return an upper estimate of the squared error of all entries together."""
    m = len(correlation)
    unexplained = float(((correlation - np.eye(m)) ** 2).sum() - m * (m - 1) * sd * sd)
    unexplained -= float(((kept - 1.0) ** 2).sum())
    error = min(2.0 * float(np.count_nonzero(drawn)), float(m)) * m * sd * sd
    return error + max(unexplained, 0.0) + _UPPER * m * sd * sd


def _drawn_together(diagonal: Floats, variance: float) -> Floats:
    """Return the diagonal with all entries but the first drawn towards their mean, as far as noise goes."""
    own = diagonal[1:]
    prior_variance = max(float(own.var()) - variance, _LEAST_VARIANCE) if len(own) > 2 else _DIAGONAL_VARIANCE
    centre = float(own.mean()) if len(own) > 2 else 1.0
    found = diagonal.copy()
    found[1:] = (own * prior_variance + centre * variance) / (prior_variance + variance)
    return found


def floored(matrix: Floats, error: float, noise: float) -> Denoised:
    """Return the matrix with eigenvalues below about `noise` raised: in their directions an inverse is noise."""
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values, min(_FLOOR, max(noise, _LEAST_FLOOR)))
    left_out = np.maximum(values, 0.0) * (1 - np.maximum(values, 0.0) / kept) ** 2
    return Denoised(
        (vectors * kept) @ vectors.T, (vectors / kept) @ vectors.T, error, float(left_out.max(initial=0.0))
    )


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Coefficients drawn towards zero by `factor`; what is known about their length and error."""

    values: Floats
    factor: float
    squared: float  # estimate of the true coefficients' squared length
    error: float  # upper estimate of the squared distance from the truth
    noise: float  # squared length of the noise that was in them


def shrunk(raw: Floats, sd: float, inverse: Floats, least: float, most: float) -> Shrunk:
    """Return James-Stein coefficients of `inverse @ (moments + noise of this sd)`, given as `raw`.

    `least` and `most` bound the squared length of the truth where the noise hides it.
    """
    noise = sd * sd * float((inverse**2).sum())
    size = max(float(raw @ raw) - noise, 0.0)
    length_sd = sqrt(2 * noise * noise / len(raw) + 4 * noise * size / len(raw))
    upper = min(max(size + _LENGTH_UPPER * length_sd, least), max(most, least))
    size = min(size, most)
    factor = size / (size + noise) if size > 0 else 0.0
    error = (1 - factor) ** 2 * upper + factor**2 * noise
    return Shrunk(factor * raw, factor, size, error, noise)


# Regression weights from noisy normal equations, with the variance of each group of weights learned from them.
#
# Observed is y = A theta + e, e normal with covariance `noise` * I + `residual` * gram. Weights are normal around
# zero, with variances `base` times a scale a group. Scales are found by expectation and maximisation, each drawn
# towards the scale of its block of groups. Nothing here sees rows: all of it is post-processing of released numbers.


Places = NDArray[np.intp]

# Steps of the scales, and the relative change at which they stop.
_ITERATIONS, _SETTLED = 60, 0.01
# Scale of a group before anything is seen, in units of half the outcome's range, and what it weighs.
_FIRST_SCALE, _FIRST_WEIGHT, _POOL_WEIGHT = 0.03, 1.0, 1.0
# No function is expected to vary by more than half the outcome's range.
_LARGEST_SCALE, _LEAST_SCALE = 1.0, 1e-4
# Fall of the log-likelihood at an upper limit of 95 per cent, and the ratio of the scales that are tried. Of many
# groups not all are at their limits at once: the fall is divided by the root of their number.
_FALL, _RATIO = 1.353, 1.6


@dataclass(frozen=True, slots=True)
class Prior:
    """Variances of the weights up to a scale a group; group -1 is not scaled. `blocks` names each group's block."""

    base: Floats
    groups: Places
    blocks: Places

    def variances(self, scales: Floats) -> Floats:
        """Return the prior variance of every weight."""
        padded = np.append(scales, 1.0)
        return np.asarray(self.base * padded[self.groups])


@dataclass(frozen=True, slots=True)
class Normal:
    """What the normal equations say: information (q, q) and its product with the weights (q,)."""

    information: Floats
    score: Floats

    @classmethod
    def of(cls, design: Floats, y: Floats, covariance: Floats) -> Normal:
        """Return the information of y = design theta + e about theta, e having this covariance."""
        factor = cho_factor(covariance, lower=True)
        solved = cho_solve(factor, design)
        information = design.T @ solved
        return cls((information + information.T) / 2, solved.T @ y)

    def posterior(self, variances: Floats) -> tuple[Floats, Floats]:
        """Return mean and covariance of the weights under these prior variances."""
        root = np.sqrt(variances)
        inner = np.eye(len(root)) + self.information * np.outer(root, root)
        covariance = root[:, None] * np.linalg.inv(inner) * root
        return covariance @ self.score, covariance

    def likelihood(self, variances: Floats) -> float:
        """Return the logarithm of the likelihood of these prior variances, but for a constant."""
        root = np.sqrt(variances)
        factor = np.linalg.cholesky(np.eye(len(root)) + self.information * np.outer(root, root))
        z = np.linalg.solve(factor, root * self.score)
        return float(z @ z) / 2 - float(np.log(np.diag(factor)).sum())


@dataclass(frozen=True, slots=True)
class Shrunken:
    """Weights drawn towards zero as far as their noise goes, and their parts of covariance.

    `posterior` is the Bayesian covariance; `total` that of the error when the true weights may be as large as
    upper limits of their scales; `response` maps the weights' truth to the mean estimate.
    """

    weights: Floats
    posterior: Floats
    response: Floats
    scales: Floats


def shrink(normal: Normal, prior: Prior) -> Shrunken:
    """Return the weights with every group's scale estimated."""
    count = len(prior.blocks)
    scales = np.full(count, _FIRST_SCALE)
    sizes = np.bincount(prior.groups[prior.groups >= 0], minlength=count).astype(np.float64)
    own = prior.groups >= 0
    for _ in range(_ITERATIONS if count else 0):
        mean, covariance = normal.posterior(prior.variances(scales))
        squares = (mean**2 + np.diag(covariance)) / prior.base
        sums = np.bincount(prior.groups[own], squares[own], minlength=count)
        before = scales.copy()
        for block in np.unique(prior.blocks):
            mine = prior.blocks == block
            pool = (sums[mine].sum() + _FIRST_WEIGHT * _FIRST_SCALE) / (sizes[mine].sum() + _FIRST_WEIGHT)
            scales[mine] = (sums[mine] + _POOL_WEIGHT * pool) / (sizes[mine] + _POOL_WEIGHT)
        if float(np.abs(np.log(scales / before)).max()) < _SETTLED:
            break
    variances = prior.variances(scales)
    weights, posterior = normal.posterior(variances)
    return Shrunken(weights, posterior, posterior @ normal.information, scales)


def upper_variances(normal: Normal, prior: Prior, scales: Floats, block: int) -> Floats:
    """Return prior variances with every scale of a block raised to its upper limit, one group at a time."""
    best = normal.likelihood(prior.variances(scales))
    found = np.maximum(scales, _LEAST_SCALE)
    mine = np.flatnonzero(prior.blocks == block)
    fall = _FALL / np.sqrt(max(len(mine), 1))
    for group in mine:
        tried = scales.copy()
        limit = max(float(scales[group]), _LEAST_SCALE)
        while limit < _LARGEST_SCALE:
            tried[group] = limit * _RATIO
            if normal.likelihood(prior.variances(tried)) < best - fall:
                break
            limit *= _RATIO
        found[group] = max(float(scales[group]), min(limit, _LARGEST_SCALE))
    return prior.variances(found)


_LEAST_POSTERIOR = 1e-3


def averaged_posterior(
    design: Floats, seen: Floats, noise: Floats, priors: Iterable[Floats]
) -> tuple[Floats, Floats]:
    """Return posterior mean and covariance of b from seen = design b + normal errors of variances `noise`.

    Each prior is a covariance of b around zero; they are averaged by their marginal likelihoods.
    """
    fits = [(*_posterior(design, seen, noise, prior), prior) for prior in priors]
    weights = np.array([fit[0] for fit in fits])
    weights = np.exp(weights - weights.max())
    weights[weights < _LEAST_POSTERIOR * weights.sum()] = 0.0
    weights /= weights.sum()
    size = design.shape[1]
    centre = sum((w * fit[1] for w, fit in zip(weights, fits, strict=True)), np.zeros(size))
    spread = np.zeros((size, size))
    for weight, (_, value, solved, prior) in zip(weights, fits, strict=True):
        if weight > 0:
            spread += weight * (np.outer(value - centre, value - centre) + prior - solved.T @ solved)
    return centre, spread


def _posterior(design: Floats, seen: Floats, noise: Floats, prior: Floats) -> tuple[float, Floats, Floats]:
    """Return the log marginal likelihood, the posterior mean, and H with posterior covariance prior - H'H."""
    spread = design @ prior
    seen_spread = spread @ design.T + np.diag(noise)
    try:
        root = np.linalg.cholesky(seen_spread)
    except np.linalg.LinAlgError:
        # The errors are lost beside it to rounding: as many more as that.
        root = np.linalg.cholesky(seen_spread + _ROUNDED * np.trace(seen_spread) * np.eye(len(noise)))
    solved = solve_triangular(root, np.column_stack([seen, spread]), lower=True)
    own, h = solved[:, 0], solved[:, 1:]
    return -0.5 * float(own @ own) - float(np.log(np.diag(root)).sum()), h.T @ own, h


# A part of the sum of a matrix's eigenvalues that is larger than what rounding takes off the least.
_ROUNDED = 1e-10
_ROUNDS, _POSTERIOR_SETTLED = 80, 1e-5
# Groups that are expected not to be zero, before anything is seen, and the least number that their share counts for.
_EXPECTED, _LEAST_GROUPS = 3.0, 4
# Visits before the share of groups that are not zero is learned.
_FIRST_ROUNDS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Means of the weights, the expected variance of each before it was seen, and how likely each is not zero."""

    weights: Floats
    variances: Floats
    included: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """One group: its places, and for every scale the covariance given the others and the evidence's constant."""

    places: NDArray[np.intp]
    covariances: tuple[Floats, ...]
    constants: Floats


def spike_and_slab(
    information: Floats, score: Floats, groups: NDArray[np.intp], base: Floats, scales: tuple[float, ...]
) -> Sparse:
    """Return the weights; those of group 0 are free, all others belong to a group that may be zero."""
    free = np.flatnonzero(groups == 0)
    parts = [
        _group(information, np.flatnonzero(groups == g), base, scales) for g in np.unique(groups[groups != 0])
    ]
    weights, variances = np.zeros(len(score)), np.zeros(len(score))
    included = np.zeros(len(score))
    share = min(0.5, _EXPECTED / max(len(parts), 1))
    for visit in range(_ROUNDS):
        before = weights.copy()
        rest = weights.copy()
        rest[free] = 0.0
        weights[free] = np.linalg.lstsq(
            information[np.ix_(free, free)], (score - information @ rest)[free], rcond=None
        )[0]
        for part in parts:
            own = part.places
            left = score[own] - information[own] @ weights + information[np.ix_(own, own)] @ weights[own]
            means = [covariance @ left for covariance in part.covariances]
            likely = _shares(np.array([mean @ left / 2 for mean in means]) + part.constants, share)
            weights[own] = sum((p * mean for p, mean in zip(likely, means, strict=True)), np.zeros(len(own)))
            variances[own] = float(likely @ np.array(scales)) * base[own]
            included[own] = likely.sum()
        if visit >= _FIRST_ROUNDS:
            found = sum(float(included[part.places[0]]) for part in parts)
            share = (1 + found) / (2 + max(len(parts), _LEAST_GROUPS))
        if float(np.abs(weights - before).max()) < _POSTERIOR_SETTLED * (1 + float(np.abs(weights).max())):
            break
    return Sparse(weights, variances, included)


def _group(information: Floats, places: NDArray[np.intp], base: Floats, scales: tuple[float, ...]) -> _Group:
    inner, covariances, constants = information[np.ix_(places, places)], [], []
    for scale in scales:
        prior = scale * base[places]
        root = np.sqrt(prior)
        scaled = np.eye(len(places)) + inner * np.outer(root, root)
        covariances.append(root[:, None] * np.linalg.inv(scaled) * root)
        constants.append(-np.linalg.slogdet(scaled)[1] / 2)
    return _Group(places, tuple(covariances), np.array(constants))


def _shares(evidence: Floats, share: float) -> Floats:
    """Return how likely each scale is; what is missing from one is the spike's."""
    top = max(float(evidence.max()), 0.0)
    found = np.exp(evidence - top) * share / len(evidence)
    return np.asarray(found / (found.sum() + (1 - share) * exp(-top)))


# Eigenvalues below this part of the largest are raised to it.
_LEAST = 1e-10
# Moves that are this little above the level of the optimum are as good as it.
_NEAR = 1.03


def matrix_power(matrix: Floats, exponent: float) -> Floats:
    """Return a power of a symmetric matrix that is not negative, small eigenvalues raised a little."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = np.maximum(values, max(_LEAST * float(values[-1]), np.finfo(np.float64).tiny))
    return np.asarray((vectors * kept**exponent) @ vectors.T)


def noise_shape(moves: Floats, loss: Floats, rounds: int) -> Floats:
    """Return S up to a factor, (k, k), for moves (r, k) and the loss (k, k); more rounds come nearer to the best.

    Any S is private once it is scaled by the largest m_i' S^-1 m_i.
    """
    root, inverse = matrix_power(loss, 0.5), matrix_power(loss, -0.5)
    w = moves @ root
    weights = np.full(len(w), 1.0 / len(w))
    for _ in range(rounds):
        spread = (w * weights[:, None]).T @ w
        size = np.einsum("ij,ij->i", w @ matrix_power(spread, -0.5), w)
        # The mean of the sizes, which all are at the optimum where their weight is positive.
        level = float(weights @ size)
        if not level > 0 or float(size.max()) <= _NEAR * level:
            break
        weights = weights * size / level
        weights = weights / weights.sum()
    spread = (w * weights[:, None]).T @ w
    return np.asarray(inverse @ matrix_power(spread, 0.5) @ inverse)


def largest_move(moves: Floats, whitener: Floats) -> float:
    """Return the largest length of a move after whitening, moves (r, k), whitener (k, k)."""
    white = moves @ whitener.T
    return float(np.sqrt(np.einsum("ij,ij->i", white, white).max(initial=0.0)))
