"""Functions learned in folds, projected on public functions at public points: coefficients of length at most one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.orthogonal_score import TERM_BITS

Floats = NDArray[np.float64]

# Functions that the points cannot tell from others are left out.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Projection:
    """Orthonormal combinations of public functions: `columns` (M, r) at the points, `mixing` (m, r) of the functions.

    A function with features psi(x) has the combinations sqrt(M) psi(x) mixing.
    """

    columns: Floats
    mixing: Floats

    @classmethod
    def of(cls, features: Floats) -> Projection:
        """Return the projection on functions whose values at M points are the columns of an (M, m) matrix."""
        left, sizes, right = np.linalg.svd(features, full_matrices=False)
        kept = sizes > _LEAST * sizes[0]
        return cls(left[:, kept], right[kept].T / sizes[kept])

    @property
    def rank(self) -> int:
        """Number of combinations."""
        return int(self.columns.shape[1])

    def coefficients(self, values: Floats, bound: float) -> Floats:
        """Return the (r,) coefficients of a function with these values at the points, clipped to [-bound, bound]."""
        clipped = np.clip(np.where(np.isfinite(values), values, 0.0), -bound, bound)
        found = self.columns.T @ (clipped / bound) / np.sqrt(len(values))
        length = float(np.sqrt(found @ found))
        return np.asarray(found / max(1.0, length))

    def answers(self, features: Floats) -> Floats:
        """Return the (d, r) matrix that turns coefficients into values at points with these features, over bound."""
        return np.asarray(np.sqrt(len(self.columns)) * (features @ self.mixing))


def coefficient_sums(folds: list[Floats]) -> tuple[list[int], int]:
    """Return the sums of coefficients in steps of 2**-TERM_BITS and of their squared lengths in 4**-TERM_BITS."""
    whole = [np.trunc(np.ldexp(one, TERM_BITS)).astype(np.int64) for one in folds]
    totals = np.sum(whole, axis=0)
    return [int(total) for total in totals], sum(int(one @ one) for one in whole)
