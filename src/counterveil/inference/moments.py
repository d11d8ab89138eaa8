"""Released second moments of working columns, and what their noise does to combinations of them.

Working columns v, of which the first is the constant, have the released moments

    G = mean over rows of v v' + E,

with E independent noise of known standard deviations, symmetric. A regressor, an instrument or a response is a
combination p.v of them. Fits (`linear_fit.py`) need of the noise the mean of E M E for symmetric M, the covariance
of E x with E y, and moments from which the noise's second order was subtracted (Fuller 1987 [1]_; here variances of
errors are known exactly). Columns are in units that public rules make of the data's.

References
----------
.. [1] Fuller, W. A. (1987). Measurement Error Models. Wiley.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from counterveil.numerics.arrays import Floats

# Singular values that are this part of the largest one are rounding: an inverse leaves them out.
SINGULAR = 1e-14


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
        inverse = nearest_inverse(regressors @ self.matrix @ regressors.T)
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


def nearest_inverse(matrix: Floats) -> Floats:
    """Return the inverse of a square matrix, of a nearby one where there is none."""
    return np.asarray(np.linalg.pinv(matrix, rcond=SINGULAR))
