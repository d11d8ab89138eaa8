"""Least squares and two-stage least squares from released second moments whose entries have known noise.

With G the moments (`moments.py`), regressors P v and the response y = q.v, coefficients solve A b = P G q with
A = P G P'. To first order the noise E moves them by

    A^-1 P E r,    r = q - P'b.

What it moves them by to second order is subtracted, and the variances of all orders are added up as a series; where
the series does not die out, noise hides whether the regressors determine the coefficients. Covariances from sampling
and from noise are kept apart. Two-stage least squares has fitted regressors P F G in place of P. Coefficients are in
units of the response over those of a regressor. Right by comparison with other programs without noise, and by
coverage with it (`tests/unit/inference/test_noisy_moments.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from math import inf, isfinite, sqrt

import numpy as np

from counterveil.inference.moments import NoisyMoments, nearest_inverse
from counterveil.numerics.arrays import Ends, Floats

# Terms of the series of higher orders, at most.
_MOST_ORDERS = 200
# From so many terms on each must be smaller than the one before by this factor: else there is no covariance.
_FIRST_ORDERS = 4
_LARGEST_RATIO = 0.8
# The series ends where a term is this part of the first.
_LAST_TERM = 1e-12
# Least eigenvalue of a correlation matrix that is inverted.
_LEAST_EIGENVALUE = 1e-10
# And how many standard deviations of its noise it must be.
_SURE_SDS = 3.0
# Distance below which a combination of regressors is the constant.
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class LinearFit:
    """Coefficients of a linear fit to released moments, with their covariances from sampling and from noise.

    Attributes
    ----------
    coefficients : ndarray of float, shape (p,)
        Coefficients, in the order of the regressors.
    sampling : ndarray of float, shape (p, p)
        Their covariance from sampling.
    noise : ndarray of float, shape (p, p)
        Their covariance from privacy noise.
    residual : ndarray of float
        Residual q - P'b of the response, in working columns.
    variance : float
        Variance of the residual.
    total : float
        Variance of the response around its mean, or its mean square without a constant.
    centred : bool
        Whether the regressors span a constant.
    freedom : int
        Degrees of freedom: rows less p.
    identified : bool
        False where noise hides whether the regressors determine the coefficients.
    unit : ndarray of float, shape (p, p)
        Covariance that errors of variance one would have, from sampling.
    variance_noise_sd : float
        Standard deviation of the noise of a variance from sampling, in parts of `unit`.
    noisy : tuple of (NoisyMoments, ndarray, ndarray) or None
        Of least squares the moments, A^-1 and A^-1 P.
    """

    coefficients: Floats
    sampling: Floats
    noise: Floats
    residual: Floats
    variance: float
    total: float
    centred: bool
    freedom: int
    identified: bool
    unit: Floats
    variance_noise_sd: float = 0.0
    noisy: tuple[NoisyMoments, Floats, Floats] | None = None

    @property
    def finite(self) -> bool:
        """Whether all its numbers are finite."""
        held = (self.coefficients, self.covariance, self.residual, self.variance, self.total)
        return all(bool(np.isfinite(value).all()) for value in held)

    @property
    def covariance(self) -> Floats:
        """Covariance of the coefficients, sampling error and noise together, of shape (p, p)."""
        return self.sampling + self.noise

    def error(self, combination: Floats) -> tuple[float, float, float]:
        """Return the standard errors of a combination of the coefficients.

        Parameters
        ----------
        combination : ndarray of float, shape (p,)
            Weights of the coefficients.

        Returns
        -------
        tuple of (float, float, float)
            Of both together, from sampling, and from noise; infinite where the fit is not identified.
        """
        if not self.identified:
            return inf, inf, inf
        with np.errstate(all="ignore"):
            variances = [
                float(combination @ covariance @ combination)
                for covariance in (self.covariance, self.sampling, self.noise)
            ]
        if not all(map(isfinite, variances)):
            return inf, inf, inf
        return sqrt(max(variances[0], 0.0)), sqrt(max(variances[1], 0.0)), sqrt(max(variances[2], 0.0))

    def _variance_by_distance(self, combination: Floats) -> Floats:
        """Return v0, v1 and v2: a distance d between estimate and truth has the variance v0 + 2 d v1 + d^2 v2.

        Noise in the moments of regressors moves an estimate the farther the larger that distance is (Fieller 1954).
        """
        total = self.error(combination)[0] ** 2
        if self.noisy is None or not isfinite(total):
            return np.array([total, 0.0, 0.0])
        moments, inverse, influence = self.noisy
        along = combination @ influence
        # What other columns leave of the combination's own.
        remainder = along / max(float(combination @ inverse @ combination), 1e-300)
        outer = [
            np.outer(self.residual, self.residual),
            np.outer(self.residual, remainder),
            np.outer(remainder, remainder),
        ]
        noise_terms = [float(along @ moments.spread((product + product.T) / 2) @ along) for product in outer]
        return np.array([noise_terms[0] + float(combination @ self.sampling @ combination), *noise_terms[1:]])

    def interval_distances(self, combination: Floats, factor: float) -> Ends:
        """Return how far below and above the estimate its interval of some standard errors goes.

        Parameters
        ----------
        combination : ndarray of float, shape (p,)
            Weights of the coefficients.
        factor : float
            Number of standard errors.

        Returns
        -------
        tuple of (float, float)
            Distances below and above, at least as far as the standard error of the estimate itself says;
            infinite where noise may hide the regressor.

        Notes
        -----
        Noise in the moments of regressors moves an estimate the farther the larger the distance d between
        estimate and truth is: its variance is v0 + 2 d v1 + d^2 v2, and the interval holds every d with d^2
        <= factor^2 (v0 + 2 d v1 + d^2 v2) (Fieller 1954).
        """
        half = factor * self.error(combination)[0]
        (v0, v1, v2) = factor**2 * self._variance_by_distance(combination)
        if v2 >= 1 or not isfinite(half):
            return inf, inf
        root = sqrt(max(v1**2 + (1 - v2) * v0, 0.0))
        return max(half, (root + v1) / (1 - v2)), max(half, (root - v1) / (1 - v2))

    def standard_errors(self, combination: Floats, distance: float) -> float:
        """Return how many standard errors the estimate is away from a value.

        Parameters
        ----------
        combination : ndarray of float, shape (p,)
            Weights of the coefficients.
        distance : float
            Estimate less the value.

        Returns
        -------
        float
            At least 0; infinite for an estimate without error.
        """
        v0, v1, v2 = self._variance_by_distance(combination)
        variance = max(v0 + 2 * distance * v1 + distance**2 * v2, self.error(combination)[0] ** 2)
        if variance > 0:
            return abs(distance) / sqrt(variance)
        return inf if distance else 0.0

    def freedom_of(self, combination: Floats) -> float:
        """Return Student's degrees of freedom of a combination; a noisy variance has Satterthwaite's.

        Parameters
        ----------
        combination : ndarray of float, shape (p,)
            Weights of the coefficients.

        Returns
        -------
        float
            Degrees of freedom.
        """
        with np.errstate(all="ignore"):
            total = float(combination @ self.covariance @ combination)
            noise = self.variance_noise_sd * float(combination @ self.unit @ combination)
        if not (noise > 0 and 0 < total < inf):
            return float(self.freedom)
        return 1 / (1 / self.freedom + noise**2 / (2 * total**2))


def _for_all_moments(fit: Callable[..., LinearFit]) -> Callable[..., LinearFit]:
    """Return a fit that is defined for all released numbers: nothing is known where they make none.

    Noise may leave no weight to the rows, or a matrix that is none of moments.
    """

    @wraps(fit)
    def of_any(moments: NoisyMoments, regressors: Floats, *others: Floats) -> LinearFit:
        # Not the error of a matrix without inverse alone: squares of large doubles are none.
        with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError, ArithmeticError):
            fitted = fit(moments, regressors, *others) if moments.weight > 0 else None
            if fitted is not None and fitted.finite:
                return fitted
        size = len(regressors)
        freedom = max(moments.rows - len(regressors), 1)
        nothing = np.zeros((size, size))
        return LinearFit(
            coefficients=np.zeros(size),
            sampling=nothing,
            noise=nothing,
            residual=others[-1],
            variance=inf,
            total=0.0,
            centred=False,
            freedom=freedom,
            identified=False,
            unit=nothing,
        )

    return of_any


@_for_all_moments
def least_squares(moments: NoisyMoments, regressors: Floats, response: Floats) -> LinearFit:
    """Return the regression of response.v on regressors v; (p, m) and (m,)."""
    corrected = moments.corrected(regressors)
    half = regressors @ corrected.matrix
    inverse = nearest_inverse(half @ regressors.T)
    coefficients = inverse @ (half @ response)
    residual = response - regressors.T @ coefficients
    influence = inverse @ regressors
    first_order = influence @ moments.spread(np.outer(residual, residual)) @ influence.T
    lost = float(np.trace(regressors @ moments.spread(np.outer(residual, residual)) @ influence.T))
    variance = _variance(moments, residual, lost, len(regressors))
    sampling = variance * inverse / moments.rows
    noise = _noise_of_all_orders(
        moments, influence, first_order=first_order, sampling=sampling, regressors=regressors
    )
    identified = noise is not None and determined(moments, regressors)
    centred = _spans_constant(regressors)
    total = _total(moments, response, centred)
    freedom = max(moments.rows - len(regressors), 1)
    noise_covariance = first_order if noise is None else noise
    unit = inverse / moments.rows
    return LinearFit(
        coefficients=coefficients,
        sampling=sampling,
        noise=noise_covariance,
        residual=residual,
        variance=variance,
        total=total,
        centred=centred,
        freedom=freedom,
        identified=identified,
        unit=unit,
        noisy=(moments, inverse, influence),
    )


@_for_all_moments
def two_stage(moments: NoisyMoments, regressors: Floats, instruments: Floats, response: Floats) -> LinearFit:
    """Return two-stage least squares of response.v on regressors v; instruments (k, m) hold the exogenous ones too."""
    matrix = moments.corrected(instruments).matrix
    first = nearest_inverse(instruments @ matrix @ instruments.T)
    second = first @ instruments @ matrix @ regressors.T  # fitted regressors are second' instruments v
    fitted = second.T @ instruments
    inverse = nearest_inverse(fitted @ matrix @ regressors.T)
    coefficients = inverse @ (fitted @ matrix @ response)
    residual = response - regressors.T @ coefficients
    unfitted = regressors - fitted
    explained = instruments.T @ first @ instruments @ matrix @ residual
    by_fitted = inverse @ fitted
    by_unfitted = inverse @ unfitted
    both = by_fitted @ moments.crossed(residual, explained) @ by_unfitted.T
    first_order = by_fitted @ moments.spread(np.outer(residual, residual)) @ by_fitted.T + both + both.T
    first_order = first_order + by_unfitted @ moments.spread(np.outer(explained, explained)) @ by_unfitted.T
    variance = _variance(moments, residual, 0.0, len(regressors))
    sampling = variance * inverse / moments.rows
    noise = _noise_of_all_orders(
        moments, by_fitted, first_order=first_order, sampling=sampling, regressors=regressors
    )
    identified = noise is not None and determined(moments, instruments)
    centred = _spans_constant(instruments)
    total = _total(moments, response, centred)
    freedom = max(moments.rows - len(regressors), 1)
    noise_covariance = first_order if noise is None else noise
    unit = inverse / moments.rows
    return LinearFit(
        coefficients=coefficients,
        sampling=sampling,
        noise=noise_covariance,
        residual=residual,
        variance=variance,
        total=total,
        centred=centred,
        freedom=freedom,
        identified=identified,
        unit=unit,
    )


def with_robust_errors(fit: LinearFit, turn: Floats, middle: Floats, noise: float, rows: int) -> LinearFit:
    """Return the fit with HC1 errors from the released middle of its sandwich, (p, p); `turn` is in its coordinates.

    Directions whose variance the noise hides have that of the noise.
    """
    # The standard deviation of v'Ev for |v| = 1, where E has variance noise^2 off the diagonal and twice that on it.
    variance_noise_sd = sqrt(2.0) * noise
    values, vectors = np.linalg.eigh(middle)
    lifted = (vectors * np.maximum(values, variance_noise_sd)) @ vectors.T
    factor = 1 / max(rows - len(turn), 1)
    return replace(
        fit,
        sampling=factor * turn.T @ lifted @ turn,
        unit=factor * turn.T @ turn,
        variance_noise_sd=variance_noise_sd,
    )


def _variance(moments: NoisyMoments, residual: Floats, lost: float, columns: int) -> float:
    """Return the variance of the residual; `lost` is what least squares takes off it by following the noise."""
    mean_square = float(residual @ moments.matrix @ residual) + lost
    sd = sqrt(max(float(residual @ moments.spread(np.outer(residual, residual)) @ residual), 0.0))
    # Where noise hides it, its own size stands in. Weights that rows may have are taken out: their mean is the first
    # moment of the constant.
    return max(mean_square, sd) / moments.weight * moments.rows / max(moments.rows - columns, 1)


def _total(moments: NoisyMoments, response: Floats, centred: bool) -> float:
    """Return the variance of the response, or its mean square where it is not `centred`."""
    total = float(response @ moments.matrix @ response)
    if centred:
        total -= float(response @ moments.matrix[0]) ** 2 / moments.weight
    return total / moments.weight


def _spans_constant(regressors: Floats) -> bool:
    """Return whether a combination of the regressors is the constant, the first working column."""
    constant = np.zeros(regressors.shape[1])
    constant[0] = 1.0
    # A constant column goes through the inverse of the public columns' transformation and has its rounding errors.
    scaled = regressors / np.linalg.norm(regressors, axis=1, keepdims=True)
    weights = np.linalg.lstsq(scaled.T, constant, rcond=None)[0]
    return bool(np.linalg.norm(scaled.T @ weights - constant) < _SAME)


def determined(moments: NoisyMoments, columns: Floats) -> bool:
    """Return whether columns are linearly independent beyond what the noise may pretend."""
    matrix = columns @ moments.matrix @ columns.T
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if not scale.all():
        return False
    values, directions = np.linalg.eigh(matrix / np.outer(scale, scale))
    # Noise alone lifts the least eigenvalue of columns that depend on each other this far in 1 of 700 releases.
    weakest = columns.T @ (directions[:, 0] / scale)
    noise = sqrt(max(float(weakest @ moments.spread(np.outer(weakest, weakest)) @ weakest), 0.0))
    if float(values[0]) < max(_LEAST_EIGENVALUE, _SURE_SDS * noise):
        return False
    inverse = nearest_inverse(matrix)
    return (
        _noise_of_all_orders(
            moments, inverse @ columns, first_order=inverse, sampling=inverse, regressors=columns
        )
        is not None
    )


def _noise_of_all_orders(
    moments: NoisyMoments, influence: Floats, first_order: Floats, sampling: Floats, regressors: Floats
) -> Floats | None:
    """Return the covariance from noise with the terms of higher order, None where these do not die out."""
    step = first_order + sampling
    noise = first_order
    sizes = [float(np.trace(step))]
    for _ in range(_MOST_ORDERS):
        step = influence @ moments.spread(regressors.T @ step @ regressors) @ influence.T
        noise = noise + step
        sizes.append(float(np.trace(step)))
        # The first terms may differ in shape; later ones fall by a factor that they share.
        if len(sizes) > _FIRST_ORDERS and not sizes[-1] < _LARGEST_RATIO * sizes[-2]:
            return None
        if sizes[-1] <= _LAST_TERM * sizes[0]:
            return noise
    return noise
