"""Survival curves of blocks from noisy tables of events by time cell, with their errors.

A block is an arm, or an arm of a stratum. Its table has M = (K + 1) J + 1 entries: events by cause and
cell, censorings by cell, and people who were followed to the horizon; K is 1 without competing risks. With
d events among E people at risk in a cell,

    hazard h = d / E,    curve S = product of (1 - h)    (Kaplan and Meier 1958) [1]_.

Sampling errors are Greenwood's; those of the noise follow by the delta method, in the numerators and in the
denominators. Where the people at risk are lost in the noise, a curve is not known any more: it stays level,
and may have fallen by all that was left. Numbers are people (or public weights of people); curves are
probabilities.

References
----------
.. [1] Kaplan, E. L. and Meier, P. (1958). Nonparametric estimation from incomplete observations. JASA 53,
   457-481.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterveil.inference.survival.table_noise import TableNoise
from counterveil.inference.survival.within_cells import uneven
from counterveil.numerics.arrays import Floats

# People at risk are known where they are this many times the standard deviation of their noise.
# Set by `python -m experiments.survival --only tuning`.
LEAST_AT_RISK = 3.0
# By where people are censored: whether those of an entry are gone in its cell. "middle": they count in parts at both
# ends of their cell, and an entry holds those at its beginning. "end": they are at risk in the whole cell.
GONE = {"middle": 1.0, "end": 0.0}
# What may be off of the exposure of people who are censored, at least: times are rounded to an eighth of a cell.
_ROUNDED = 1 / 16
# Events added to a block for its sampling variance alone, so that no events do not mean no error.
ADDED_EVENTS = 1.0
# People at risk are no fewer, where noise leaves none.
LEAST_PEOPLE = 1e-9


@dataclass(frozen=True)
class Blocks:
    """Curves of all blocks, (B, J + 1) from time 0 on, with how they depend on every entry.

    Attributes
    ----------
    counts : ndarray of float, shape (B, M)
        Tables as released, moved to public totals.
    noise : TableNoise
        Noise of the tables.
    convention : {"middle", "end"}
        Where in a cell people are censored.
    design : ndarray of float, shape (B,)
        For weighted counts the ratio of squared weights to weights; 1 without weights.
    inflation : float
        Factor of the sampling variance, for bias that is allowed for.
    causes : int
        Number of causes of the event, each with columns of its own.
    """

    counts: Floats
    noise: TableNoise
    convention: str
    design: Floats
    inflation: float = 1.0
    causes: int = 1

    @property
    def cells(self) -> int:
        """The number of time cells."""
        return int(self.counts.shape[1] - 1) // (self.causes + 1)

    def event_rows(self, cause: int | None = None) -> Floats:
        """Return the matrix (J, M) that makes events of a table: those of one cause, or of all."""
        chosen = [float(number == cause or cause is None) for number in range(self.causes)]
        return np.hstack([np.kron([*chosen, 0.0], np.eye(self.cells)), np.zeros((self.cells, 1))])

    @cached_property
    def events(self) -> Floats:
        """Events of any cause by block and cell."""
        return self.counts @ self.event_rows().T

    @property
    def censored(self) -> Floats:
        """Censorings by block and cell."""
        return self.counts[:, -1 - self.cells : -1]

    @cached_property
    def risk_rows(self) -> Floats:
        """The matrix (J, M) that makes people at risk of a table."""
        cells = self.cells
        later = np.triu(np.ones((cells, cells)))
        rows = np.hstack([np.tile(later, self.causes + 1), np.ones((cells, 1))])
        rows[np.arange(cells), self.causes * cells + np.arange(cells)] -= GONE[self.convention]
        return rows

    @cached_property
    def starting(self) -> Floats:
        """People under observation when each cell begins, (B, J), of weighted counts the effective number (Kish)."""
        people = self.at_risk + GONE[self.convention] / 2 * self.censored
        people[:, 0] = self.counts.sum(axis=1)
        return np.asarray(people / self.design[:, None])

    @cached_property
    def at_risk(self) -> Floats:
        """People at risk by block and cell, (B, J)."""
        return self.counts @ self.risk_rows.T

    @cached_property
    def risk_sd(self) -> Floats:
        """Standard deviation of the noise of the people at risk, (J,)."""
        variances = ((self.risk_rows @ self.noise.covariance) * self.risk_rows).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))

    @cached_property
    def event_variances(self) -> Floats:
        """Variance of the noise of events in a cell by cause, and of any event in the last row, (K + 1, J)."""
        rows = (self.event_rows(cause) for cause in (*range(self.causes), None))
        return np.array([((matrix @ self.noise.covariance) * matrix).sum(axis=1) for matrix in rows])

    @cached_property
    def known(self) -> Floats:
        """In how many cells from the first on the people at risk are more than noise, by block."""
        fewest = np.maximum(LEAST_AT_RISK * self.risk_sd, LEAST_PEOPLE)
        return np.asarray(np.cumprod(self.at_risk > fewest, axis=1).sum(axis=1))

    @property
    def sure(self) -> Floats:
        """Which cells are known, (B, J)."""
        return np.asarray(np.arange(self.cells) < self.known[:, None])

    @cached_property
    def hazards(self) -> Floats:
        """Hazards (B, J); 0 in cells that are not known."""
        sure = self.sure
        hazards = np.where(sure, self.events / np.where(sure, self.at_risk, 1.0), 0.0)
        return np.minimum(hazards, 1.0)

    @cached_property
    def curves(self) -> Floats:
        """Probabilities of being free of the event, (B, J + 1)."""
        return np.hstack([np.ones((len(self.counts), 1)), np.cumprod(1 - self.hazards, axis=1)])

    @cached_property
    def shown(self) -> Floats:
        """The same, but after a curve was lost in the noise it falls as that of the nearest possible table.

        People at risk are not taken for fewer than one, nor than one standard deviation of their noise:
        noise among nobody is no event.
        """
        hazards = self.shown_hazards(self.event_rows(), self.hazards)
        return np.hstack([np.ones((len(hazards), 1)), np.cumprod(1 - hazards, axis=1)])

    def shown_hazards(self, rows: Floats, known_hazards: Floats) -> Floats:
        """Return `known_hazards` in known cells, in others those of the nearest possible table; `rows` make events."""
        possible = np.array([_possible(table) for table in self.counts])
        people = possible @ self.risk_rows.T
        after = possible @ rows.T / np.maximum(people, np.maximum(self.risk_sd, 1.0))
        return np.where(self.sure, known_hazards, np.clip(after, 0.0, 1.0))

    @cached_property
    def slack(self) -> Floats:
        """How far curves that are lost in the noise may have fallen since they were last known, (B, J + 1)."""
        lost = np.arange(self.cells + 1) > self.known[:, None]
        return np.where(lost, np.clip(self.curves, 0.0, 1.0), 0.0)

    @cached_property
    def sampling(self) -> Floats:
        """Greenwood's covariance of every block's curve, (B, J + 1, J + 1)."""
        sure = self.sure
        people = np.where(sure, np.maximum(self.at_risk, 1.0), 1.0)
        events = np.clip(self.events, 0, None) + ADDED_EVENTS / self.cells
        hazards = np.clip(np.where(sure, events / people, 0.0), 0.0, 1.0)
        variances = self.inflation * self.design[:, None] * hazards * (1 - hazards) / people
        slopes = self.slopes()
        return np.asarray(np.einsum("bik,bk,bjk->bij", slopes, variances, slopes))

    @cached_property
    def grouping(self) -> Floats:
        """How far curves may be off as hazards change within the cells that people are censored in, (B, J + 1)."""
        moved = self.hazards * self.either
        # No sum of noisy parts is taken for less than 0.
        return np.asarray(np.maximum(np.einsum("bpj,bj->bp", -self.slopes(), moved), 0.0))

    @cached_property
    def either(self) -> Floats:
        """By which part hazards may be off as they change within cells of censored people, (B, J).

        Exposure is known, so that constant hazards are not off.
        """
        if not GONE[self.convention]:
            return np.zeros_like(self.hazards)
        people = np.where(self.sure, self.at_risk, 1.0)
        chance = (
            np.clip(self.events, 0.0, None) * self.design[:, None] + self.event_variances[-1]
        ) / people**2
        off = np.clip(uneven(self.hazards, chance)[0], _ROUNDED, 0.5)
        lost = self.censored + np.pad(self.censored[:, 1:], ((0, 0), (0, 1)), mode="edge")
        lost[:, 0] += self.censored[:, 0]
        return np.asarray(self.sure * off * lost / 2 / people)

    def slopes(self) -> Floats:
        """Return how curves move with each hazard, (B, J + 1, J)."""
        blocks, cells = self.hazards.shape
        slopes = np.zeros((blocks, cells + 1, cells))
        for j in range(cells):
            slopes[:, j + 1] = (1 - self.hazards[:, j, None]) * slopes[:, j]
            slopes[:, j + 1, j] = -self.curves[:, j]
        return slopes

    @cached_property
    def gradients(self) -> Floats:
        """How curves move with each entry of their own table, (B, J + 1, M)."""
        return np.asarray(self.slopes() @ self.moved(self.event_rows(), self.hazards))

    def moved(self, rows: Floats, hazards: Floats) -> Floats:
        """Return how hazards d / E move with each entry, (B, J, M); `rows` make their events."""
        people = np.where(self.sure, self.at_risk, 1.0)
        moved = (rows[None] - hazards[:, :, None] * self.risk_rows[None]) / people[:, :, None]
        return np.asarray(moved * self.sure[:, :, None])


def _possible(table: Floats) -> Floats:
    """Return the nearest table without negative entries that adds up to the same."""
    total = max(float(table.sum()), 0.0)
    falling = np.sort(table)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(table) + 1)
    # The largest entry is always above; beside very large ones rounding may hide it.
    last = max(int(np.count_nonzero(falling > excess)) - 1, 0)
    return np.asarray(np.maximum(table - excess[last], 0.0))
