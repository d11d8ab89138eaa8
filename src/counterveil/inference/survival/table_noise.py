"""The noise of released tables of events by time, and tables moved to totals that are public.

A block (an arm, or an arm of a stratum) has a table x_b of M entries with noise of covariance V (M, M),
independent from block to block. Where the entries of a group of m blocks add up to a public total T, the most
precise linear estimate given it is

    x_b - V 1 (sum of all entries of the group - T) / (m 1'V1),

1 being the vector of ones: a projection that takes the noise of the sum away (generalised least squares with
a known sum). The variance of a linear function with gradients g_b falls by (sum_b g_b' V 1)^2 / (m 1'V1). All
numbers are people, or public weights of people. Nothing but released and public numbers enters: it is
post-processing of what `rows/time_tables.proof.md` releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterveil.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class TableNoise:
    """The noise of tables: its covariance in one block (M, M), and which blocks' totals are public together.

    `groups` holds the places of blocks whose entries add up to a public number: the tables were moved to
    it, which takes the noise of that sum away. `root` (M, M) makes the noise of a block of independent
    numbers; None where that of entries is independent itself.
    """

    covariance: Floats
    groups: tuple[tuple[int, ...], ...]
    root: Floats | None = None

    def of(self, gradients: Floats) -> Floats:
        """Return the covariance (K, K) of K linear functions of all blocks; gradients are (K, B, M)."""
        spread = gradients @ self.covariance
        covariance = spread.reshape(len(spread), -1) @ gradients.reshape(len(spread), -1).T
        total_variance = float(self.covariance.sum())
        if total_variance <= 0:
            return np.asarray(covariance)
        for group in self.groups:
            group_spread = spread[:, list(group)].sum(axis=(1, 2))
            covariance -= np.outer(group_spread, group_spread) / (total_variance * len(group))
        return np.asarray(covariance)

    def heaviness(self, gradients: Floats) -> Floats:
        """Return the excess kurtosis of K linear functions as a part of that of one noisy number; 0 is normal."""
        independent = gradients if self.root is None else gradients @ self.root
        squares = (independent**2).sum(axis=(1, 2))
        return np.asarray((independent**4).sum(axis=(1, 2)) / np.maximum(squares, 1e-150) ** 2)


def with_totals(counts: Floats, noise: TableNoise, totals: Sequence[float]) -> Floats:
    """Return noisy tables (B, M) moved to the public totals of their groups, the most precise way there is."""
    moved = counts.copy()
    total_variance = float(noise.covariance.sum())
    if total_variance <= 0:
        return moved
    towards = noise.covariance.sum(axis=0) / total_variance
    for group, total in zip(noise.groups, totals, strict=True):
        blocks = list(group)
        moved[blocks] -= towards * (moved[blocks].sum() - total) / len(blocks)
    return moved
