"""Least squares and two-stage least squares from a matrix of second moments whose entries have known noise.

Working columns v, of which the first is the constant, have the released moments G = mean of v v' plus independent noise
of known standard deviations. A regressor, an instrument or a response is a combination p.v of them. Estimating
equations whose moments have errors are those of Fuller (1987, Measurement Error Models); here the variances of the
errors are known exactly. To first order the noise E moves the coefficients of y = q.v on P v by A^-1 P E r, with
A = P G P' and r = q - P'b. What it moves them by to second order is subtracted, and the variances of all orders are
added up.

Intervals for the effect of one endogenous column that hold however weak the instruments are (Anderson, Rubin 1949).

A value is kept where the instruments do not explain what it leaves of the response. Kept values may be an interval, all
but an interval, everything, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from math import inf, isfinite, pi, sqrt, tan

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, fdtri

from counterveil.numerics.arrays import Ends, Floats

# A covariance is that of a series whose terms fall at least by this factor; where they do not, there is none.
_STEPS = 200
_FIRST = 4
_LARGEST_RATIO = 0.8
# Least eigenvalue of a correlation matrix that is inverted, and how many standard deviations of noise it must be.
_LEAST_EIGENVALUE = 1e-10
_SURE = 3.0
# Distance below which a combination of regressors is the constant.
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """Released means of products of working columns.

    Attributes
    ----------
    matrix : ndarray of float, shape (m, m)
        The means, the constant first.
    noise : ndarray of float, shape (m, m)
        Standard deviations of their noise.
    rows : int
        Number of rows.
    """

    matrix: Floats
    noise: Floats
    rows: int

    @property
    def weight(self) -> float:
        """Mean weight of a row: 1 where rows are not weighted."""
        return float(self.matrix[0, 0])

    def spread(self, outer: Floats) -> Floats:
        """Return the mean of E outer E over the noise E.

        Parameters
        ----------
        outer : ndarray of float, shape (m, m)
            A symmetric matrix, such as the mean of w w' over vectors w.

        Returns
        -------
        ndarray of float, shape (m, m)
            The mean.
        """
        squared = self.noise**2
        mean = squared * outer
        np.fill_diagonal(mean, squared @ np.diag(outer))
        return mean

    def crossed(self, first: Floats, second: Floats) -> Floats:
        """Return the covariance of E first with E second over the noise E.

        Parameters
        ----------
        first : ndarray of float, shape (m,)
            A vector.
        second : ndarray of float, shape (m,)
            Another vector.

        Returns
        -------
        ndarray of float, shape (m, m)
            The covariance.
        """
        squared = self.noise**2
        covariance = squared * np.outer(second, first)
        np.fill_diagonal(covariance, squared @ (first * second))
        return covariance

    def corrected(self, regressors: Floats) -> NoisyMoments:
        """Return moments with which least squares has no bias of second order from the noise.

        Parameters
        ----------
        regressors : ndarray of float, shape (p, m)
            Regressors as combinations of working columns.

        Returns
        -------
        NoisyMoments
            The moments with the mean of E A^-1 E added.
        """
        inverse = _inverse(regressors @ self.matrix @ regressors.T)
        return replace(self, matrix=self.matrix + self.spread(regressors.T @ inverse @ regressors))


@dataclass(frozen=True, slots=True)
class SummedMoments(NoisyMoments):
    """Moments of several sites, added up: each of `parts` has its weight, its turn into common columns, its moments.

    Noises of sites are independent, so that what noise does adds up too. Proof: pooling.proof.md.
    """

    parts: tuple[tuple[float, Floats, NoisyMoments], ...] = ()

    def spread(self, outer: Floats) -> Floats:
        """Return the mean of E outer E over the noise of all sites."""
        return self._summed(lambda turn, moments: moments.spread(turn.T @ outer @ turn))

    def crossed(self, first: Floats, second: Floats) -> Floats:
        """Return the covariance of E first with E second, (m, m)."""
        return self._summed(lambda turn, moments: moments.crossed(turn.T @ first, turn.T @ second))

    def _summed(self, of: Callable[[Floats, NoisyMoments], Floats]) -> Floats:
        terms = [weight**2 * turn @ of(turn, moments) @ turn.T for weight, turn, moments in self.parts]
        return np.asarray(np.sum(terms, axis=0))


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
        Residual of the response, in working columns.
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
    residual: Floats  # q - P'b, in working columns
    variance: float  # of the residual
    total: float  # variance of the response around its mean, or its mean square without a constant
    centred: bool  # whether the regressors span a constant
    freedom: int
    identified: bool
    unit: Floats  # covariance that errors of variance one would have, from sampling
    # Standard deviation of the noise of a variance from sampling, in parts of `unit`.
    variance_noise_sd: float = 0.0
    noisy: tuple[NoisyMoments, Floats, Floats] | None = None  # least squares: moments, A^-1 and A^-1 P

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

    def _apart(self, combination: Floats) -> Floats:
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
        (v0, v1, v2) = factor**2 * self._apart(combination)
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
        v0, v1, v2 = self._apart(combination)
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


def _known_or_not(fit: Callable[..., LinearFit]) -> Callable[..., LinearFit]:
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


@_known_or_not
def least_squares(moments: NoisyMoments, regressors: Floats, response: Floats) -> LinearFit:
    """Return the regression of response.v on regressors v; (p, m) and (m,)."""
    corrected = moments.corrected(regressors)
    half = regressors @ corrected.matrix
    inverse = _inverse(half @ regressors.T)
    coefficients = inverse @ (half @ response)
    residual = response - regressors.T @ coefficients
    influence = inverse @ regressors
    first_order = influence @ moments.spread(np.outer(residual, residual)) @ influence.T
    lost = float(np.trace(regressors @ moments.spread(np.outer(residual, residual)) @ influence.T))
    variance = _variance(moments, residual, lost, len(regressors))
    sampling = variance * inverse / moments.rows
    noise = _added_up(moments, influence, first_order=first_order, sampling=sampling, regressors=regressors)
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


@_known_or_not
def two_stage(moments: NoisyMoments, regressors: Floats, instruments: Floats, response: Floats) -> LinearFit:
    """Return two-stage least squares of response.v on regressors v; instruments (k, m) hold the exogenous ones too."""
    matrix = moments.corrected(instruments).matrix
    first = _inverse(instruments @ matrix @ instruments.T)
    second = first @ instruments @ matrix @ regressors.T  # fitted regressors are second' instruments v
    fitted = second.T @ instruments
    inverse = _inverse(fitted @ matrix @ regressors.T)
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
    noise = _added_up(moments, by_fitted, first_order=first_order, sampling=sampling, regressors=regressors)
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


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a square matrix, of a nearby one where there is none."""
    return np.asarray(np.linalg.pinv(matrix, rcond=1e-14))


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
    if float(values[0]) < max(_LEAST_EIGENVALUE, _SURE * noise):
        return False
    inverse = _inverse(matrix)
    return (
        _added_up(moments, inverse @ columns, first_order=inverse, sampling=inverse, regressors=columns)
        is not None
    )


def _added_up(
    moments: NoisyMoments, influence: Floats, first_order: Floats, sampling: Floats, regressors: Floats
) -> Floats | None:
    """Return the covariance from noise with the terms of higher order, None where these do not die out."""
    step = first_order + sampling
    noise = first_order
    sizes = [float(np.trace(step))]
    for _ in range(_STEPS):
        step = influence @ moments.spread(regressors.T @ step @ regressors) @ influence.T
        noise = noise + step
        sizes.append(float(np.trace(step)))
        # The first terms may differ in shape; later ones fall by a factor that they share.
        if len(sizes) > _FIRST and not sizes[-1] < _LARGEST_RATIO * sizes[-2]:
            return None
        if sizes[-1] <= 1e-12 * sizes[0]:
            return noise
    return noise


# Values that are tried first, denser around the estimate.
_TRIED = 161


def joint_statistic(fit: LinearFit, count: int) -> float:
    """Return the F statistic of the first `count` coefficients, noise included; 0 where they are not identified."""
    if not fit.identified:
        return 0.0
    coefficients = fit.coefficients[:count]
    covariance = fit.covariance[:count, :count]
    statistic = 0.0
    with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):
        statistic = float(coefficients @ np.linalg.pinv(covariance, rcond=1e-14) @ coefficients) / count
    return statistic if 0 < statistic < inf else 0.0


def joint_p_value(moments: NoisyMoments, instruments: Floats, exogenous: Floats, column: Floats) -> float:
    """Return the p-value of instruments that explain nothing of a column: Anderson and Rubin's, of no effect."""
    fit = least_squares(moments, np.vstack((instruments, exogenous)), column)
    return float(fdtrc(len(instruments), fit.freedom, joint_statistic(fit, len(instruments))))


def anderson_rubin(
    moments: NoisyMoments,
    endogenous: Floats,
    instruments: Floats,
    exogenous: Floats,
    response: Floats,
    level: float,
    estimate: Ends,
) -> tuple[Ends, ...]:
    """Return the intervals of values that are kept; `estimate` is an estimate and its standard error.

    Where there is no standard error, values are tried on the scale of the response over the endogenous column.
    Columns are combinations of working columns: (m,), instruments (k, m), exogenous ones (p, m) with the
    constant.
    """
    count = len(instruments)
    both = np.vstack((instruments, exogenous))

    def excess(column: Floats) -> float:
        fit = least_squares(moments, both, column)
        return joint_statistic(fit, count) - float(fdtri(count, fit.freedom, level))

    def at(angle: float) -> float:
        return excess(response - (middle + width * tan(angle)) * endogenous)

    middle = estimate[0]
    width = estimate[1] if 0 < estimate[1] < inf else _scale(moments, response, endogenous)
    angles = np.linspace(-pi / 2, pi / 2, _TRIED + 2)[1:-1]
    signs = np.array([at(angle) for angle in angles]) <= 0
    turns = _turns(at, angles, signs)
    ends = [-inf, *(middle + width * tan(angle) for angle in turns), inf]
    # Beyond the values that were tried, what counts is whether the instruments explain the endogenous column.
    far = excess(endogenous) <= 0
    keeps = [bool(signs[0])]
    for _ in turns:
        keeps.append(not keeps[-1])
    intervals = [(low, high) for low, high, keep in zip(ends[:-1], ends[1:], keeps, strict=True) if keep]
    return (
        tuple(intervals)
        if far or not intervals
        else tuple(_bounded(intervals, middle, width, float(angles[-1])))
    )


def _scale(moments: NoisyMoments, first: Floats, second: Floats) -> float:
    """Return about how many units of one column a unit of the other is, by their released mean squares."""
    with np.errstate(all="ignore"):
        first_square, second_square = (float(column @ moments.matrix @ column) for column in (first, second))
    return (
        sqrt(first_square / second_square)
        if first_square > 0 and second_square > 0 and 0 < first_square / second_square < inf
        else 1.0
    )


def _turns(at: Callable[[float], float], angles: Floats, signs: NDArray[np.bool_]) -> list[float]:
    """Return where values begin or cease to be kept."""
    from scipy.optimize import brentq  # loaded by those who need it: it takes a fifth of a second

    return [
        float(brentq(at, angles[index], angles[index + 1], xtol=1e-12, disp=False))
        for index in np.flatnonzero(signs[1:] != signs[:-1])
    ]


def _bounded(intervals: list[Ends], middle: float, width: float, last: float) -> list[Ends]:
    """Return intervals that end at the last values tried: the instruments rule out values far enough away."""
    edge = width * tan(last)
    return [(max(low, middle - edge), min(high, middle + edge)) for low, high in intervals]
