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
