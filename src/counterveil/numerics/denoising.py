"""Estimates of second moments, low-rank matrices and coefficients that were released with noise of known size.

Eigenvalues are shrunk by what the noise adds to them (Gavish and Donoho 2017), vectors as James and Stein (1961) shrink
them. Nothing here sees rows: all of it is post-processing of released numbers, so that privacy does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats

# Diagonal entries are near one after standardising; their prior variance around it.
_DIAGONAL_VARIANCE, _LEAST_VARIANCE = 0.09, 0.001
_DIAGONAL = (0.15, 2.5)
_LARGEST_MOMENT = 4.0
# The middle of the spectrum is taken from this range; no eigenvalue is estimated as less than this part of the middle.
_MIDDLE, _LEAST_PART = (0.3, 1.0), 0.75
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
        """The remaining part of a second-order error after one correction with this inverse.

        The third-order error has a mechanism symmetric about zero and is about sqrt(error) times the second-order
        one; twice the root of its dimension more would be the worst case. A third of that is taken.
        """
        return min(1.0, 0.7 * sqrt(self.error * self.squares))


def denoised(noisy: Floats, sd: float) -> Denoised:
    """Return the matrix with the bulk of its noise taken out; `sd` is the noise off the diagonal.

    Noise alone has eigenvalues between -2 sd sqrt(m) and 2 sd sqrt(m). Around the middle of the spectrum,
    eigenvalues inside that band carry nothing; those outside are shrunk towards it by what the noise added.
    """
    m = len(noisy)
    band = 2 * sd * sqrt(m)
    least = min(_DIAGONAL[0], max(band, _LEAST_FLOOR))
    diagonal = np.clip(_shrunk_towards_mean(np.diag(noisy), 2 * sd * sd), least, _DIAGONAL[1])
    diagonal[0] = 1.0
    root = np.sqrt(diagonal)
    correlation = noisy / np.outer(root, root)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    shrunk_values, shifts = _shrunk_towards_middle(values, band)
    error = _squared_error(correlation, shrunk_values, shifts, sd)
    matrix = (vectors * shrunk_values) @ vectors.T * np.outer(root, root)
    return floored(matrix, min(error / m**2, 1.5 * sd * sd), band)


def second_moments(noisy: Floats, sd: float) -> tuple[Floats, float]:
    """Return standardised features' second moments with most of their noise taken out, and an entry's squared error.

    As `denoised`, without a constant among the features and without a floor for small eigenvalues that remain.
    """
    m = len(noisy)
    band = 2 * sd * sqrt(m)
    diagonal = np.diag(noisy)
    noise_variance = 2 * sd * sd
    prior_variance = max(float(diagonal.var()) - noise_variance, _LEAST_VARIANCE)
    diagonal = (diagonal * prior_variance + float(diagonal.mean()) * noise_variance) / (
        prior_variance + noise_variance
    )
    root = np.sqrt(np.clip(diagonal, min(_DIAGONAL[0], max(band, _LEAST_FLOOR)), _LARGEST_MOMENT))
    correlation = noisy / np.outer(root, root)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    shrunk_values, shifts = _shrunk_towards_middle(values, band)
    error = _squared_error(correlation, shrunk_values, shifts, sd)
    return (vectors * shrunk_values) @ vectors.T * np.outer(root, root), min(error / m**2, 1.5 * sd * sd)


def low_rank(noisy: Floats, sd: float) -> tuple[Floats, float]:
    """Return a symmetric matrix, mostly of few directions, with noise taken out, and an entry's squared error.

    Eigenvalues within the band of the noise, 2 sd sqrt(m), carry nothing (Gavish and Donoho 2017).
    """
    m = len(noisy)
    band = 2 * sd * sqrt(m)
    values, vectors = np.linalg.eigh(noisy)
    leading_values = np.sign(values) * np.sqrt(np.maximum(values**2 - band**2, 0.0))
    rank = float(np.count_nonzero(leading_values))
    leading = (vectors * leading_values) @ vectors.T
    # All other directions are shrunk by one factor (James and Stein 1961).
    remaining_noise = max(m * (m + 1) - 2 * m * rank, 1.0) * sd * sd
    remaining = float(((noisy - leading) ** 2).sum())
    factor = max(0.0, 1 - remaining_noise / remaining) if remaining > 0 else 0.0
    error = (min(2 * rank, float(m)) * m * sd * sd + factor * remaining_noise) / m**2
    return leading + factor * (noisy - leading), error


def _shrunk_towards_middle(values: Floats, band: float) -> tuple[Floats, Floats]:
    """Return eigenvalues without what the noise added, and how far each then is from the middle of them."""
    middle = float(np.clip(np.median(values), *_MIDDLE))
    distance = values - middle
    shifts = np.sign(distance) * np.sqrt(np.maximum(distance * distance - band * band, 0.0))
    # Below the middle there is no room for the whole band, so that a small eigenvalue is mostly noise; and
    # corrections made with an eigenvalue of less than half its true size would not converge.
    return np.maximum(middle + shifts, min(max(band, _LEAST_FLOOR), _LEAST_PART * middle)), shifts


def _squared_error(correlation: Floats, shrunk_values: Floats, shifts: Floats, sd: float) -> float:
    """Return an upper estimate of the squared error of all entries together."""
    m = len(correlation)
    unexplained = float(((correlation - np.eye(m)) ** 2).sum() - m * (m - 1) * sd * sd)
    unexplained -= float(((shrunk_values - 1.0) ** 2).sum())
    error = min(2.0 * float(np.count_nonzero(shifts)), float(m)) * m * sd * sd
    return error + max(unexplained, 0.0) + _UPPER * m * sd * sd


def _shrunk_towards_mean(diagonal: Floats, noise_variance: float) -> Floats:
    """Return the diagonal with all entries but the first shrunk towards their mean.

    With entries d_j of mean c, noise variance v and prior variance w = max(var(d) - v, least), these are
    (d_j w + c v) / (w + v): normal posterior means.
    """
    entries = diagonal[1:]
    if len(entries) > 2:
        prior_variance = max(float(entries.var()) - noise_variance, _LEAST_VARIANCE)
        centre = float(entries.mean())
    else:
        prior_variance = _DIAGONAL_VARIANCE
        centre = 1.0
    shrunk_diagonal = diagonal.copy()
    shrunk_diagonal[1:] = (entries * prior_variance + centre * noise_variance) / (
        prior_variance + noise_variance
    )
    return shrunk_diagonal


def floored(matrix: Floats, error: float, noise: float) -> Denoised:
    """Return the matrix with eigenvalues below about `noise` raised: in their directions an inverse is noise."""
    values, vectors = np.linalg.eigh(matrix)
    raised = np.maximum(values, min(_FLOOR, max(noise, _LEAST_FLOOR)))
    left_out = np.maximum(values, 0.0) * (1 - np.maximum(values, 0.0) / raised) ** 2
    return Denoised(
        (vectors * raised) @ vectors.T,
        (vectors / raised) @ vectors.T,
        error,
        float(left_out.max(initial=0.0)),
    )


@dataclass(frozen=True, slots=True)
class JamesSteinFit:
    """Coefficients shrunk towards zero by one factor, with estimates of their length and error.

    Attributes
    ----------
    values : Floats
        The shrunken coefficients.
    factor : float
        What the raw coefficients were multiplied by, in [0, 1].
    squared : float
        Estimate of the true coefficients' squared length.
    error : float
        Upper estimate of the squared distance of `values` from the truth.
    noise : float
        Expected squared length of the noise in the raw coefficients.
    """

    values: Floats
    factor: float
    squared: float
    error: float
    noise: float


def shrunk(raw: Floats, sd: float, inverse: Floats, least: float, most: float) -> JamesSteinFit:
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
    return JamesSteinFit(factor * raw, factor, size, error, noise)
