"""Which weights of a function a release ("look") measures, in noise of which shape: by the expected error.

Before a release everything but outcomes is public. Candidates are sets of functions; each measures their
weights theta by the public linear map of residuals r (outcomes less their prediction)

    A r = (Z'Z + Lambda)^-1 Z' r,    prediction error = trace(M posterior covariance after the look),

with rows Z of the regression (`series_features.py`), a diagonal penalty Lambda from the weights' supposed
variances, M the second moments of the functions over the rows, and noise whose covariance is shaped to that
error (the matrix mechanism, Li et al. 2015 [1]_). The look is taken after which predictions, or effects
alone, are expected to err least, in squared units of the outcome.

In: public rows, and a posterior made of numbers released before. Out: a `SeriesLook`, the map and the noise's
shape. Nothing private is read here: one outcome moves A r by the clip of residuals times the longest column
of the shaped map, to which the noise is scaled when it is released (proof:
`rows/linear/linear_map.proof.md`).

Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`, some
of them by `python -m experiments.cate.tuning`; privacy does not depend on them.

References
----------
.. [1] Li, C., Miklau, G., Hay, M., McGregor, A. and Rastogi, V. (2015). The matrix mechanism: optimizing linear
   counting queries under differential privacy. The VLDB Journal 24, 757-781.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterveil.estimators.linear.series_basis import FEW, Places
from counterveil.estimators.linear.series_features import Functions
from counterveil.estimators.linear.series_posterior import Posterior
from counterveil.numerics.arrays import Floats
from counterveil.numerics.noise_shape import largest_move, matrix_power, noise_shape

# Rounds in which the shape of a noise is improved, for candidates and for the one that is taken.
_ROUNDS = 3
_LAST_ROUNDS = 12
# Rows on which noise of candidates is shaped.
_FEW_ROWS = 500
# Numbers of covariates whose effects are measured, beside all.
_COVARIATES = (1, 2, 4, 8, 16)
# Highest degrees of the first look, with products of covariates and without.
_FIRST_DEGREE = 3
_FIRST_DEGREE_WITHOUT = 2
# A ridge on the matrix that is solved, in parts of its mean, lest rounding make it singular.
_RIDGE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class SeriesLook:
    """Which columns are fitted, the rows of the inverse that are released, and the noise's shape.

    Attributes
    ----------
    columns : ndarray of int, shape (c,)
        Columns of Z that are fitted.
    measured : ndarray of int, shape (m,)
        Places of the measured weights among all.
    solve : ndarray of float, shape (m, c)
        Maps Z' residuals to what is measured.
    shape : ndarray of float, shape (m, m)
        Covariance of the noise up to a factor: at most one for each unit by which a row moves what is
        measured.
    """

    columns: Places
    measured: Places
    solve: Floats
    shape: Floats

    def design(self, functions: Functions) -> Floats:
        """Return A Z, (m, 2q): how what is measured depends on all weights."""
        return np.asarray(self.solve @ functions.gram[self.columns])

    def sampling(self, functions: Functions, squares: Floats) -> Floats:
        """Return the sampling covariance, for residuals with these mean squares of control and treated."""
        fitted = np.ix_(self.columns, self.columns)
        inner = squares[0] * functions.squared[0][fitted] + squares[1] * functions.squared[1][fitted]
        return np.asarray(self.solve @ inner @ self.solve.T)


@dataclass(frozen=True, slots=True)
class NoiseSize:
    """The variance of each number of a vector whose moves have length one: Gaussian, or of the l2 ball.

    Attributes
    ----------
    max_norm : float
        How far one outcome moves a residual.
    amount : float
        What the plan pays: mu, or epsilon where noise is `pure`.
    pure : bool
        Whether noise is that of the l2 ball.
    """

    max_norm: float
    amount: float
    pure: bool

    def variance(self, size: int) -> float:
        """Return the variance for a vector of this size."""
        return (size + 1 if self.pure else 1) * (self.max_norm / self.amount) ** 2


def best_look(
    functions: Functions, posterior: Posterior, variance: float, noise: NoiseSize, effects: bool
) -> SeriesLook:
    """Return the look after which predictions, or the effects alone, are expected to err least."""
    prior_covariance = posterior.posterior
    best = None
    least_error = np.inf
    for candidate in _candidates(functions, posterior, effects):
        look = _look(
            functions, posterior, candidate=candidate, variance=variance, effects=effects, rounds=_ROUNDS
        )
        design = look.design(functions)
        covariance = look.shape * noise.variance(len(look.solve)) + look.sampling(
            functions, np.full(2, variance)
        )
        gain = prior_covariance @ design.T
        remaining = prior_covariance - gain @ np.linalg.solve(design @ gain + covariance, gain.T)
        loss = functions.plain / functions.rows
        if effects:
            effect = slice(functions.size, None)
            remaining = remaining[effect, effect]
            loss = loss[: functions.size, : functions.size]
        error = float(np.einsum("ij,ji->", loss, remaining))
        if best is None or error < least_error:
            best = candidate
            least_error = error
    assert best is not None  # constants alone are a candidate
    return _look(
        functions, posterior, candidate=best, variance=variance, effects=effects, rounds=_LAST_ROUNDS
    )


def _candidates(functions: Functions, posterior: Posterior, effects: bool) -> Iterator[Places]:
    """Yield sets of functions, by places in the basis, the constant always among them."""
    orders = functions.basis.orders
    groups = functions.groups[: functions.size]
    few = len(functions.basis.axes) <= FEW
    has_measured = bool(posterior.measured.any())
    highest = int(orders.max()) if has_measured else (_FIRST_DEGREE if few else _FIRST_DEGREE_WITHOUT)
    for degree in range(0 if effects else 1, highest + 1):
        low = orders <= degree
        if few or not has_measured or not degree:
            yield np.flatnonzero(low)
            continue
        ranked = _ranked(functions, posterior)
        for count in (*(number for number in _COVARIATES if number < len(ranked)), len(ranked)):
            yield np.flatnonzero(low & ((groups == 0) | np.isin(groups, ranked[:count])))


def _ranked(functions: Functions, posterior: Posterior) -> Places:
    """Return the groups of covariates by how much their effects may still vary, the largest first."""
    size = functions.size
    groups = functions.groups[:size]
    variances = posterior.variances[size:]
    by_group = np.bincount(groups, variances)
    names = np.unique(groups[groups > 0])
    return np.asarray(names[np.argsort(-by_group[names], kind="stable")])


def _look(
    functions: Functions, posterior: Posterior, candidate: Places, variance: float, effects: bool, rounds: int
) -> SeriesLook:
    """Return the look at some functions: of both parts, or of the effect with the outcome's part fitted beside it."""
    size = functions.size
    orders = functions.orders
    beside = candidate
    if effects:
        beside = np.flatnonzero(orders[:size] <= float(orders[candidate].max()) + 1)
    columns = np.concatenate((beside, candidate + size))
    gram = functions.gram[np.ix_(columns, columns)]
    # Constants are not penalised; nor are effects much, lest their intervals be those of shrunken weights.
    prior = posterior.before if effects else posterior.variances
    penalty = np.where(orders[columns] == 0, 0.0, variance / prior[columns])
    ridge = penalty + _RIDGE * np.trace(gram) / len(gram)
    inverse: Floats = np.asarray(np.linalg.inv(gram + np.diag(ridge)), dtype=np.float64)
    solve = inverse[len(beside) :] if effects else inverse
    measured = columns[len(beside) :] if effects else columns
    averaged = candidate if effects else measured
    loss = functions.plain[np.ix_(averaged, averaged)] / functions.rows
    rows = (
        functions.sample
        if rounds > _ROUNDS
        else functions.sample[:: max(1, len(functions.sample) // _FEW_ROWS)]
    )
    shape = noise_shape(rows[:, columns] @ solve.T, loss, rounds)
    longest = largest_move(functions.sample[:, columns] @ solve.T, matrix_power(shape, -0.5))
    return SeriesLook(columns=columns, measured=measured, solve=solve, shape=shape * longest**2)
