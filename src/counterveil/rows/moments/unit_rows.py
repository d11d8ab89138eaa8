"""Rows of length at most one that are made of records, with their arm and outcome.

With psi functions of a record's covariates, a its arm, y its outcome in half ranges around the middle of the
range and L a public length, a `RowForm` yields blocks of (u, arm, v) with |u| <= 1 but for rounding and v in
[-1, 1], both without units:

    `ArmForm`          u = s psi / L,                     v = s y,                   s = min(1, L / |psi|),
    `InteractedForm`   u = s (psi, 2 (a - p) psi) / L,    v = s (y - p offset'psi),  s for the longer arm,

p being a released propensity and offset released coefficients. In come private records; the rows stay inside
the process, and `arm_statistics` releases sums over them.

Why it is right: s shortens a long row and its outcome together, as a weight in a regression that depends on
covariates alone, so that a linear model that holds still holds after it. A row depends on its own record and
on released numbers, and |u| <= 1 bounds how far one record moves the sums.
Proof: `rows/moments/arm_statistics.proof.md`.
"""

# Proof: arm_statistics.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.products import blocks, projected, squared_lengths

# Rows of length at most one, the arm of each, and outcomes in [-1, 1].
UnitBlock = tuple[Floats, NDArray[np.intp], Floats]
_MIDDLE = OUTCOME_STEPS // 2


class RowForm(Protocol):
    """How rows of length at most one are made of a table's."""

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart."""
        ...

    @property
    def size(self) -> int:
        """Length of a row."""
        ...

    def blocks(self, table: Table, /) -> Iterator[UnitBlock]:
        """Yield all rows, a block at a time."""
        ...


@dataclass(frozen=True, slots=True)
class ArmForm:
    """Rows by arm: the features of every row, and its outcome, shortened together.

    Attributes
    ----------
    basis : Basis
        Functions of the covariates.
    length : float
        Longest row that is not shortened; all are divided by it.
    """

    basis: Basis
    length: float

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart."""
        return 2

    @property
    def size(self) -> int:
        """Length of a row."""
        return self.basis.size

    def blocks(self, table: Table, /) -> Iterator[UnitBlock]:
        """Yield all rows, a block at a time."""
        for block in blocks(table.rows):
            u, factor = shortened(self.basis.features(table.covariates, block), self.length)
            yield u, table.arm[block], factor * outcomes(table, block)


@dataclass(frozen=True, slots=True)
class LinearPropensity:
    """Probabilities of treatment from released weights of the features, kept `least` away from 0 and 1."""

    weights: Floats
    least: float

    def of(self, psi: Floats) -> Floats:
        """Return the probability of every row."""
        return np.clip(0.5 + 0.5 * projected(psi, self.weights), self.least, 1.0 - self.least)


@dataclass(frozen=True, slots=True)
class InteractedForm:
    """Rows (psi, 2 (a - p) psi), p the released propensity, shortened by what covariates alone allow.

    Attributes
    ----------
    basis : Basis
        psi.
    length : float
        Longest row that is not shortened; all are divided by it.
    propensity : LinearPropensity
        p.
    offset : ndarray of float, shape (m,)
        Weights whose function times p is taken off the outcome, so that a look at residuals may start from
        two regressions by arm.
    start, clip : ndarray of float, shape (2m,), and float
        Where the clip is finite, outcomes are residuals at the weights `start`, clipped and in parts of the
        clip.
    """

    basis: Basis
    length: float
    propensity: LinearPropensity
    offset: Floats
    start: Floats
    clip: float

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart: all rows are one."""
        return 1

    @property
    def size(self) -> int:
        """Length of a row."""
        return 2 * self.basis.size

    def blocks(self, table: Table, /) -> Iterator[UnitBlock]:
        """Yield all rows, a block at a time."""
        for block in blocks(table.rows):
            psi = self.basis.features(table.covariates, block)
            p = self.propensity.of(psi)
            treatment_residual = 2.0 * (table.treated[block] - p)
            # The longest that a row with these covariates could be, in either arm: weights must not tell arms
            # apart.
            longest = np.sqrt(1.0 + 4.0 * np.maximum(p, 1.0 - p) ** 2)
            size = lengths(psi) * longest
            factor = self.length / np.maximum(size, self.length)
            scaled = psi * (factor / self.length)[:, None]
            u = np.concatenate((scaled, scaled * treatment_residual[:, None]), axis=1)
            v = factor * (outcomes(table, block) - p * projected(psi, self.offset))
            arm = np.zeros(len(v), dtype=np.intp)
            if self.clip < np.inf:
                v = np.clip((v - projected(u, self.start)) / self.clip, -1.0, 1.0)
            yield u, arm, v


def shortened(features: Floats, length: float) -> tuple[Floats, Floats]:
    """Return features / length, no row longer than one but for rounding, and the factor of every row's outcome."""
    size = lengths(features)
    factor = length / np.maximum(size, length)
    return features * (factor / length)[:, None], factor


def lengths(rows: Floats) -> Floats:
    """Return the Euclidean length of every row."""
    return np.asarray(np.sqrt(squared_lengths(rows)))


def outcomes(table: Table, block: slice) -> Floats:
    """Return the outcomes of some rows, in [-1, 1] (half the range is one)."""
    return np.asarray((table.outcome[block] - _MIDDLE) / _MIDDLE)
