"""The linear space in which matrices of second moments of given features lie, found at public points.

Products of polynomials repeat: of the entries of a matrix of second moments fewer are free than there are.
Noise outside the space of possible matrices can be taken out without looking at any row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats

# Singular values below this part of the largest count as zero.
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True)
class MomentSpan:
    """An orthonormal basis (rank, entries) of the possible upper triangles, off-diagonal entries times root two."""

    size: int
    rows: Floats

    @classmethod
    def of(cls, features: Floats) -> MomentSpan:
        """Return the space spanned by f f' over the rows f of features at public points."""
        size = features.shape[1]
        i, j = np.triu_indices(size)
        _, values, vectors = np.linalg.svd(
            features[:, i] * features[:, j] * np.where(i == j, 1.0, sqrt(2.0)), full_matrices=False
        )
        return cls(size, vectors[values > _NEGLIGIBLE * values[0]])

    @property
    def part(self) -> float:
        """Share of symmetric noise that stays when it is projected: the rank over the number of entries."""
        return len(self.rows) / (self.size * (self.size + 1) / 2)

    def project(self, matrix: Floats) -> Floats:
        """Return the nearest symmetric matrix in the space."""
        i, j = np.triu_indices(self.size)
        weight = np.where(i == j, 1.0, sqrt(2.0))
        upper = np.zeros_like(matrix)
        upper[i, j] = (self.rows.T @ (self.rows @ (matrix[i, j] * weight))) / weight
        return np.asarray(upper + np.triu(upper, 1).T)
