"""The rows of a table as unit vectors, arms and outcomes in [-1, 1], a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.kernels.bases import Basis
from counterveil.kernels.record_features import blocks
from counterveil.kernels.unit_rows import Block, lengths, shortened

Floats = NDArray[np.float64]

_MIDDLE = OUTCOME_STEPS // 2


@dataclass(frozen=True, slots=True)
class ArmRows:
    """Rows by arm: the features of every row, and its outcome, shortened together."""

    table: Table
    basis: Basis
    length: float

    @property
    def count(self) -> int:
        """Number of rows, public."""
        return self.table.rows

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart."""
        return 2

    @property
    def size(self) -> int:
        """Length of a row."""
        return self.basis.size

    def __iter__(self) -> Iterator[Block]:
        for part in blocks(self.count):
            u, factor = shortened(self.basis.features(self.table.covariates, part), self.length)
            yield u, self.table.arm[part], factor * outcomes(self.table, part)


@dataclass(frozen=True, slots=True)
class InteractedRows:
    """Rows (psi, 2 (a - p) psi), p the released propensity, shortened by what covariates alone allow.

    `offset` are weights whose function times p is taken off the outcome, so that a look at residuals may
    start from two regressions by arm.
    """

    table: Table
    basis: Basis
    length: float
    propensity: Propensity
    offset: Floats
    start: Floats
    clip: float

    @property
    def count(self) -> int:
        """Number of rows, public."""
        return self.table.rows

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart: all rows are one."""
        return 1

    @property
    def size(self) -> int:
        """Length of a row."""
        return 2 * self.basis.size

    def __iter__(self) -> Iterator[Block]:
        for part in blocks(self.count):
            psi = self.basis.features(self.table.covariates, part)
            p = self.propensity.of(psi)
            surprise = 2.0 * (self.table.treated[part] - p)
            # The longest that a row with these covariates could be, in either arm: weights must not tell arms apart.
            longest = np.sqrt(1.0 + 4.0 * np.maximum(p, 1.0 - p) ** 2)
            size = lengths(psi) * longest
            factor = self.length / np.maximum(size, self.length)
            scaled = psi * (factor / self.length)[:, None]
            u = np.concatenate((scaled, scaled * surprise[:, None]), axis=1)
            v = factor * (outcomes(self.table, part) - p * (psi @ self.offset))
            arm = np.zeros(len(v), dtype=np.intp)
            if self.clip < np.inf:
                v = np.clip((v - u @ self.start) / self.clip, -1.0, 1.0)
            yield u, arm, v


@dataclass(frozen=True, slots=True)
class Propensity:
    """Probabilities of treatment from released weights of the features, kept `least` away from 0 and 1."""

    weights: Floats
    least: float

    def of(self, psi: Floats) -> Floats:
        """Return the probability of every row."""
        return np.clip(0.5 + 0.5 * (psi @ self.weights), self.least, 1.0 - self.least)


def outcomes(table: Table, part: slice) -> Floats:
    """Return the outcomes of a block, in [-1, 1] (half the range is one)."""
    return np.asarray((table.outcome[part] - _MIDDLE) / _MIDDLE)
