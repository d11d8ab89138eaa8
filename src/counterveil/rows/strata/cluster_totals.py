"""Released counts and centred sums of outcomes by cluster and arm, where whole records are private.

    N_g = rows of cell g,    S_g = sum over them of (y - middle of the range),

with a cell for each pair of cluster and arm, or for each cluster where whole clusters were assigned, and in
each of several groups of people where effects by group are asked for.

In: private rows (cluster, arm, outcome of each person); which clusters there are is public. Out: N_g in rows
and S_g in units of the outcome, with Laplace noise on every cell. Means by arm, effect and cluster-robust
errors are made of these alone, which is post-processing.

Why it is right: a person is in one cell, so that a replaced row moves all counts together by at most 2 and
all sums by at most B, the width of the outcome's range: noise on every cell costs no more than noise on one.

Proof: `rows/strata/cluster_cells.proof.md`.
"""

# Proof: cluster_cells.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Layout, Table
from counterveil.data.strata import strata_codes
from counterveil.rows.public import PublicData, private_session
from counterveil.rows.strata.cluster_sensitivity import ClusterCells
from counterveil.session import Gate, ReleasedVector


@dataclass(frozen=True, slots=True)
class ClusterArms:
    """Which cells of cluster times arm there are; `cluster` and `arm` (0 or 1) name them in their public order."""

    cluster: NDArray[np.intp]
    arm: NDArray[np.intp]
    clusters: int

    @classmethod
    def of(cls, table: Table) -> ClusterArms:
        """Return the cells: the arm that each cluster was assigned to, or both arms of each."""
        assert table.cluster is not None
        assert table.study.cluster is not None
        count = int(table.cluster.max()) + 1
        if not table.study.cluster.assigned:
            return cls(np.repeat(np.arange(count), 2), np.tile([0, 1], count), count)
        arm = np.zeros(count, dtype=np.intp)
        arm[table.cluster] = table.treated
        return cls(np.arange(count), arm, count)

    @property
    def by_arm(self) -> tuple[int, int]:
        """The number of clusters in the control arm and in the treated one."""
        treated = int(self.arm.sum())
        return len(self.arm) - treated, treated

    def totals(
        self, table: Table, group: NDArray[np.int64] | int = 0, groups: int = 1
    ) -> tuple[list[int], list[int]]:
        """Return each cell's number of rows and its sum of outcomes less the middle of their range, in steps.

        With several `groups` these are the cells of the first group, then those of the next.
        """
        pairs = 2 * self.clusters
        cell = pairs * group + 2 * table.cluster + table.treated  # type: ignore[operator]  # it has clusters
        public_cells = (pairs * np.arange(groups)[:, None] + 2 * self.cluster + self.arm).ravel()
        centred = (table.outcome - OUTCOME_STEPS // 2).astype(np.float64)
        # Doubles add steps below 2**24 exactly, up to 2**29 rows.
        counts, sums = (np.bincount(cell, values, groups * pairs)[public_cells] for values in (None, centred))
        return [int(count) for count in counts], [int(total) for total in sums]


def cluster_arms(public: PublicData) -> ClusterArms:
    """Return the cells of all rows.

    Which clusters there are is public, and so is the arm of each where whole clusters were assigned: the
    study declares both, and the guarantee says so. Which cluster a person is in is private.
    """
    return ClusterArms.of(private_session(public).table)


@dataclass(frozen=True, slots=True)
class ClusterTotals:
    """Number of rows and centred sum of outcomes of every cell, in each of several groups.

    Attributes
    ----------
    cells : ClusterArms
        Pairs of cluster and arm.
    bounds : ClusterCells
        How far one replaced row moves all counts and all sums together.
    groups : Layout, optional
        Groups of people, each with cells of its own. Default: one group of everybody.
    """

    cells: ClusterArms
    bounds: ClusterCells
    groups: Layout | None = None

    def release(self, gate: Gate) -> tuple[ReleasedVector, ReleasedVector]:
        """Return counts and sums with Laplace noise, the cells of the first group first."""
        table = gate.rows.table
        if self.groups is None:
            counts, sums = self.cells.totals(table)
        else:
            counts, sums = self.cells.totals(table, strata_codes(table, self.groups), self.groups.public)
        step = self.bounds.width / OUTCOME_STEPS
        return (
            gate.release_cells("counts", [Fraction(count) for count in counts], self.bounds.counts),
            gate.release_cells("sums", [total * step for total in sums], self.bounds.sums),
        )
