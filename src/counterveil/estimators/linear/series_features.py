"""Rows of the regression behind effects as functions: functions of covariates, and times treatment residuals.

With q functions phi(x) of public covariates, treatment a and its propensity p(x), rows are

    Z_i = (phi(x_i), (a_i - p(x_i)) phi(x_i)),

an R-learner in one regression (Nie and Wager 2021 [1]_, after Robinson 1988 [2]_): the second block has the
weights of the effect, in units of the outcome. It is right because a - p(x) has mean zero given x, so that
errors in the first block, the outcome's part, hardly reach the second. Rows of large leverage weigh less (at
most 1), since the row that moves a sum most sets the noise of all; weights depend on covariates and treatment
alone, so that a right model stays right.

In: covariates and treatments, which are public. Out: `Functions`, with Z, its products over rows, and a
sample of rows. No outcome is read, and none of this costs privacy.

Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`, some
of them by `python -m experiments.cate.tuning`; privacy does not depend on them.

References
----------
.. [1] Nie, X. and Wager, S. (2021). Quasi-oracle estimation of heterogeneous treatment effects. Biometrika 108,
   299-319.
.. [2] Robinson, P. M. (1988). Root-n-consistent semiparametric regression. Econometrica 56, 931-954.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterveil.estimators.linear.matching_design import scored
from counterveil.estimators.linear.series_basis import Places, basis_groups, largest_basis
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.products import Gram, blocks
from counterveil.rows.public import PublicRows
from counterveil.settings import Series

# Rows that stand for all in the choice of a noise's shape.
_SAMPLE = 2000
# Rows over which averages that steer choices are taken.
_AVERAGED = 100_000
# Propensities are kept this far from 0 and 1.
_LEAST_PROPENSITY = 0.05
# Leverage beside the average from which rows weigh less.
_MOST_LEVERAGE = 1.0
# Eigenvalues are taken to be no less than this part of the largest one.
_LEAST_EIGENVALUE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """A basis of q functions, for every row its treatment residual and weight, sums over rows, and a sample of rows.

    Attributes
    ----------
    public : PublicRows
        Covariates and treatments.
    basis : Basis
        phi.
    residual : ndarray of float, shape (n,)
        a - p(x).
    weights : ndarray of float, shape (n,)
        Weights of rows, at most 1.
    plain : ndarray of float, shape (2q, 2q)
        Z'Z.
    gram : ndarray of float, shape (2q, 2q)
        Z'WZ with weights W.
    squared : ndarray of float, shape (2, 2q, 2q)
        Z'W^2 Z over control and over treated rows.
    sample : ndarray of float, shape (m, 2q)
        Some rows of WZ.
    """

    public: PublicRows
    basis: Basis
    residual: Floats
    weights: Floats
    plain: Floats
    gram: Floats
    squared: Floats
    sample: Floats

    @property
    def size(self) -> int:
        """Number of functions, q."""
        return self.basis.size

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.public.rows

    @property
    def orders(self) -> Floats:
        """Order of every weight, (2q,)."""
        return np.tile(self.basis.orders, 2)

    @property
    def groups(self) -> Places:
        """Group of every weight, (2q,): 0 for the constants, else one a covariate and block, and one for products."""
        outcome = basis_groups(self.basis)
        effect = np.where(outcome > 0, outcome + int(outcome.max(initial=0)), 0)
        return np.concatenate((outcome, effect))

    def weighted_blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows and their (b, 2q) rows Z times their weights."""
        for span, z in _rows(self.public, self.basis, self.residual):
            yield span, z * self.weights[span, None]

    def predicted(self, coefficients: Floats) -> Floats:
        """Return Z @ coefficients for every row."""
        values = np.empty(self.rows)
        for span, z in _rows(self.public, self.basis, self.residual):
            values[span] = z @ coefficients
        return values

    def products(self, values: Floats) -> Floats:
        """Return the weighted sum of Z_i values_i, (2q,)."""
        total = np.zeros(2 * self.size)
        for span, z in self.weighted_blocks():
            total += values[span] @ z
        return total

    def mapped(self, columns: Places, solve: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows and solve @ Z_i[columns] of each, Z weighted."""
        for span, z in self.weighted_blocks():
            yield span, z[:, columns] @ solve.T


def functions_of(public: PublicRows, settings: Series) -> Functions | None:
    """Return the functions of the largest degree that rows afford; None where not even the first is."""
    basis = largest_basis(public, settings)
    if basis is None:
        return None
    residual: Floats = public.treated - np.clip(
        scored(public).score, _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY
    )
    # Averages over rows that steer choices and the sampling error are taken over every so manieth of many.
    stride = max(1, public.rows // _AVERAGED)
    plain = Gram(2 * basis.size)
    for _, z in _rows(public, basis, residual):
        plain.add(z[::stride])
    weights = _weights(public, basis, residual, plain.whole() * stride)
    gram = Gram(2 * basis.size)
    squared = [Gram(2 * basis.size) for _ in range(2)]
    for span, z in _rows(public, basis, residual):
        weight = weights[span, None]
        treated = public.treated[span]
        gram.add(z * np.sqrt(weight))
        some = (z * weight)[::stride]
        arms = treated[::stride]
        for arm in (0, 1):
            squared[arm].add(some[arms == bool(arm)])
    sampled = np.unique(np.linspace(0, public.rows - 1, min(public.rows, _SAMPLE)).astype(np.intp))
    picked = {name: column[sampled] for name, column in public.covariates.items()}
    sample = _joined(basis.features(picked), residual[sampled]) * weights[sampled, None]
    return Functions(
        public=public,
        basis=basis,
        residual=residual,
        weights=weights,
        plain=plain.whole() * stride,
        gram=gram.whole(),
        squared=np.array([arm.whole() * stride for arm in squared]),
        sample=sample,
    )


def _rows(public: PublicRows, basis: Basis, residual: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield slices of rows and their (b, 2q) rows Z."""
    for span in blocks(public.rows):
        yield span, _joined(basis.features(public.covariates, span), residual[span])


def _joined(phi: Floats, residual: Floats) -> Floats:
    return np.concatenate((phi, phi * residual[:, None]), axis=1)


def _weights(public: PublicRows, basis: Basis, residual: Floats, gram: Floats) -> Floats:
    """Return a weight for every row: one, or less where its leverage is a multiple of the average.

    Few rows at the ends of a covariate would otherwise set the noise of all. Weights depend on covariates and
    treatment alone, so that a right model stays right.
    """
    values, vectors = np.linalg.eigh(gram)
    inverse = vectors / np.sqrt(np.maximum(values, _LEAST_EIGENVALUE * float(values[-1])))
    leverage = np.empty(public.rows)
    for span, z in _rows(public, basis, residual):
        white = z @ inverse
        leverage[span] = np.einsum("ij,ij->i", white, white)
    most = _MOST_LEVERAGE * 2 * basis.size / public.rows
    return np.asarray(most / np.maximum(leverage, most))
