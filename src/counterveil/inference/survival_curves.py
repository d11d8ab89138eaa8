"""Survival curves from a table of events and censorings by time cell, and the errors of sampling and noise.

A block is an arm, or an arm of a stratum. Its table has 2 J + 1 entries: events by cell, censorings by cell, and
people who were followed to the horizon. With d events among E people at risk, a cell's hazard is h = d / E, and the
curve is the product of 1 - h (Kaplan and Meier 1958). Sampling errors are Greenwood's; those of the noise follow by
the delta method, in the numerators and in the denominators. Where the people at risk are lost in the noise, a curve is
not known any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterveil.numerics.arrays import Floats

# People at risk are known where they are this many times the standard deviation of their noise.
# Set by `python -m experiments.survival --only tuning`.
LEAST_AT_RISK = 3.0
# Part of a cell for which people who are censored in it count as at risk.
AT_RISK = {"middle": 0.5, "end": 0.0}
# Events added to a block for its sampling variance alone, so that no events do not mean no error.
_ADDED = 1.0


@dataclass(frozen=True, slots=True)
class TableNoise:
    """The noise of tables: its covariance in one block (M, M), and which blocks' totals are public together.

    `groups` holds the places of blocks whose entries add up to a public number: the tables were moved to it, which
    takes the noise of that sum away.
    """

    covariance: Floats
    groups: tuple[tuple[int, ...], ...]

    def of(self, gradients: Floats) -> Floats:
        """Return the covariance (K, K) of K linear functions of all blocks; gradients are (K, B, M)."""
        spread = gradients @ self.covariance
        found = spread.reshape(len(spread), -1) @ gradients.reshape(len(spread), -1).T
        whole = float(self.covariance.sum())
        if whole <= 0:
            return np.asarray(found)
        for group in self.groups:
            along = spread[:, list(group)].sum(axis=(1, 2))
            found -= np.outer(along, along) / (whole * len(group))
        return np.asarray(found)


def with_totals(counts: Floats, noise: TableNoise, totals: Sequence[float]) -> Floats:
    """Return noisy tables (B, M) moved to the public totals of their groups, the most precise way there is."""
    found, whole = counts.copy(), float(noise.covariance.sum())
    if whole <= 0:
        return found
    towards = noise.covariance.sum(axis=0) / whole
    for group, total in zip(noise.groups, totals, strict=True):
        chosen = list(group)
        found[chosen] -= towards * (found[chosen].sum() - total) / len(chosen)
    return found


@dataclass(frozen=True)
class Blocks:
    """The curves of all blocks, (B, J + 1) from time 0 on, with how they depend on every entry.

    Attributes:
        counts: tables (B, M) as released, moved to public totals.
        noise: of the tables.
        convention: where in a cell people are censored: in its "middle" or at its "end".
        design: for weighted counts the ratio of squared weights to weights, by block; 1 without weights.
        inflation: of the sampling variance, for bias that is allowed for.
    """

    counts: Floats
    noise: TableNoise
    convention: str
    design: Floats
    inflation: float = 1.0

    @property
    def cells(self) -> int:
        """The number of time cells."""
        return int(self.counts.shape[1] - 1) // 2

    @cached_property
    def events(self) -> Floats:
        """Events by block and cell."""
        return self.counts[:, : self.cells]

    @cached_property
    def risk_rows(self) -> Floats:
        """The matrix (J, M) that makes people at risk of a table."""
        cells = self.cells
        found = np.zeros((cells, 2 * cells + 1))
        later = np.triu(np.ones((cells, cells)))
        found[:, :cells], found[:, cells : 2 * cells], found[:, -1] = later, later, 1.0
        found[np.arange(cells), cells + np.arange(cells)] -= AT_RISK[self.convention]
        return found

    @cached_property
    def starting(self) -> Floats:
        """People under observation when each cell begins, (B, J), of weighted counts the effective number (Kish)."""
        cells = self.cells
        leaving = self.counts[:, :cells] + self.counts[:, cells : 2 * cells]
        found = np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1] + self.counts[:, -1:]
        return np.asarray(found / self.design[:, None])

    @cached_property
    def at_risk(self) -> Floats:
        """People at risk by block and cell, (B, J)."""
        return self.counts @ self.risk_rows.T

    @cached_property
    def risk_sd(self) -> Floats:
        """Standard deviation of the noise of the people at risk, (J,)."""
        return np.sqrt(np.maximum(np.diag(self.risk_rows @ self.noise.covariance @ self.risk_rows.T), 0.0))

    @cached_property
    def known(self) -> Floats:
        """In how many cells from the first on the people at risk are more than noise, by block."""
        fewest = np.maximum(LEAST_AT_RISK * self.risk_sd, 1e-9)
        return np.asarray(np.cumprod(self.at_risk > fewest, axis=1).sum(axis=1))

    @cached_property
    def hazards(self) -> Floats:
        """Hazards (B, J); 0 in cells that are not known."""
        sure = np.arange(self.cells) < self.known[:, None]
        found = np.where(sure, self.events / np.where(sure, self.at_risk, 1.0), 0.0)
        return np.minimum(found, 1.0)

    @cached_property
    def curves(self) -> Floats:
        """Probabilities of being free of the event, (B, J + 1)."""
        return np.hstack([np.ones((len(self.counts), 1)), np.cumprod(1 - self.hazards, axis=1)])

    @cached_property
    def shown(self) -> Floats:
        """The same, but after a curve was lost in the noise it falls as that of the nearest possible table.

        People at risk are not taken for fewer than one, nor than one standard deviation of their noise: noise among
        nobody is no event.
        """
        cells = self.cells
        possible = np.array([_possible(table) for table in self.counts])
        people = possible @ self.risk_rows.T
        after = possible[:, :cells] / np.maximum(people, np.maximum(self.risk_sd, 1.0))
        lost = np.arange(cells) >= self.known[:, None]
        hazards = np.where(lost, np.clip(after, 0.0, 1.0), self.hazards)
        return np.hstack([np.ones((len(hazards), 1)), np.cumprod(1 - hazards, axis=1)])

    @cached_property
    def slack(self) -> Floats:
        """How far curves that are lost in the noise may have fallen since they were last known, (B, J + 1)."""
        lost = np.arange(self.cells + 1) > self.known[:, None]
        return np.where(lost, np.clip(self.curves, 0.0, 1.0), 0.0)

    @cached_property
    def sampling(self) -> Floats:
        """Greenwood's covariance of every block's curve, (B, J + 1, J + 1)."""
        sure = np.arange(self.cells) < self.known[:, None]
        people = np.where(sure, np.maximum(self.at_risk, 1.0), 1.0)
        events = np.clip(self.events, 0, None) + _ADDED / self.cells
        hazards = np.clip(np.where(sure, events / people, 0.0), 0.0, 1.0)
        variances = self.inflation * self.design[:, None] * hazards * (1 - hazards) / people
        slopes = self._slopes()
        return np.asarray(np.einsum("bik,bk,bjk->bij", slopes, variances, slopes))

    @cached_property
    def grouping(self) -> Floats:
        """How far curves may be off as it is not known where in a cell people were censored, (B, J + 1).

        People at risk lie between those of all censored first in their cell and of all censored last.
        """
        cells, sure = self.cells, np.arange(self.cells) < self.known[:, None]
        people = np.where(sure, self.at_risk, 1.0)
        either = AT_RISK[self.convention] * self.counts[:, cells : 2 * cells] / people
        moved = sure * self.hazards * either / (1 - np.clip(either, 0.0, 0.5))
        # No sum of noisy parts is taken for less than 0.
        return np.asarray(np.maximum(np.einsum("bpj,bj->bp", -self._slopes(), moved), 0.0))

    def _slopes(self) -> Floats:
        """Return how curves move with each hazard, (B, J + 1, J)."""
        blocks, cells = self.hazards.shape
        found = np.zeros((blocks, cells + 1, cells))
        for j in range(cells):
            found[:, j + 1] = (1 - self.hazards[:, j, None]) * found[:, j]
            found[:, j + 1, j] = -self.curves[:, j]
        return found

    @cached_property
    def gradients(self) -> Floats:
        """How curves move with each entry of their own table, (B, J + 1, M)."""
        sure = np.arange(self.cells) < self.known[:, None]
        people = np.where(sure, self.at_risk, 1.0)
        own = np.eye(self.cells, 2 * self.cells + 1)
        # (B, J, M): of d / E.
        moved = (own[None] - self.hazards[:, :, None] * self.risk_rows[None]) / people[:, :, None]
        moved *= sure[:, :, None]
        return np.asarray(self._slopes() @ moved)


def _possible(table: Floats) -> Floats:
    """Return the nearest table without negative entries that adds up to the same."""
    total = max(float(table.sum()), 0.0)
    falling = np.sort(table)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(table) + 1)
    # The largest entry is always above; beside very large ones rounding may hide it.
    last = max(int(np.count_nonzero(falling > excess)) - 1, 0)
    return np.asarray(np.maximum(table - excess[last], 0.0))


@dataclass(frozen=True)
class Curves:
    """Survival of both arms, control first, at time 0 and at the end of every cell.

    Attributes:
        survival: (2, J + 1), level where a curve is lost in the noise.
        shown: the same, falling on there as is likeliest.
        sampling: covariance of each curve from sampling, (2, J + 1, J + 1).
        noise: covariance of both curves from noise, (2, J + 1, 2, J + 1).
        slack: how far each curve may lie lower, as it was lost in the noise before, (2, J + 1).
        grouping: how far each curve may be off as cells do not say when in them people were censored, (2, J + 1).
        people: under observation when each cell begins, (2, J).
        worth: how many people without strata and bias would err as much, (2, J): fewer than `people` where an arm is
            thin in strata with large shares.
    """

    survival: Floats
    shown: Floats
    sampling: Floats
    noise: Floats
    slack: Floats
    grouping: Floats
    people: Floats
    worth: Floats


def standardised(blocks: Blocks, shares: Floats, per_person: float = 0.0) -> Curves:
    """Return the curves of both arms over strata with these shares; blocks are (stratum, arm), control first.

    `per_person` is 1 over the number of people where the shares are those of the noisy tables themselves, else 0.
    """
    strata, points = len(shares), blocks.cells + 1
    size = blocks.counts.shape[1]
    own = blocks.curves.reshape(strata, 2, points)
    survival, shown = (
        np.einsum("s,sap->ap", shares, one.reshape(strata, 2, points))
        for one in (blocks.curves, blocks.shown)
    )
    squares = blocks.sampling.reshape(strata, 2, points, points)
    sampling = np.einsum("s,sapq->apq", shares**2, squares)
    slopes = blocks.gradients.reshape(strata, 2, points, size)
    full = np.zeros((2, points, strata, 2, size))
    for arm in range(2):
        full[arm, :, :, arm] = np.einsum("s,spm->psm", shares, slopes[:, arm])
        if per_person:
            full[arm] += per_person * own[:, arm].T[:, :, None, None]
    noise = blocks.noise.of(full.reshape(2 * points, strata * 2, size)).reshape(2, points, 2, points)
    slack, grouping = (
        np.einsum("s,sap->ap", shares, one.reshape(strata, 2, points))
        for one in (blocks.slack, blocks.grouping)
    )
    people = blocks.starting.reshape(strata, 2, blocks.cells)
    each = np.einsum("s,saj->aj", shares**2, blocks.inflation / np.maximum(people, 1.0))
    worth = 1 / np.maximum(each, 1e-300)
    return Curves(survival, shown, sampling, noise, slack, grouping, people.sum(axis=0), worth)
