"""The log-rank test from tables of events by time cell, with the noise of the tables in its variance.

Events of the treated less those expected if all hazards were alike, summed over cells and strata (Mantel 1966; Peto and
Peto 1972), with the hypergeometric variance. Noise enters through events and through people at risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.inference.ratio import p_value
from counterveil.inference.survival_answers import Ends, quantiles
from counterveil.inference.survival_curves import Blocks
from counterveil.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class LogRank:
    """Events of the treated less those expected, with their variances; `cells` is how many cells entered, at least."""

    difference: float
    variance: float
    noise: float
    heavy: bool
    cells: int

    @property
    def statistic(self) -> float:
        """The difference in standard errors, sampling and noise together; its square is the usual chi-square."""
        total = self.variance + self.noise
        return self.difference / sqrt(total) if total > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal hazards, noise included; 1 where no cell is known."""
        return p_value(self._interval) if self.variance + self.noise > 0 else 1.0

    def _interval(self, level: float) -> Ends:
        normal, heavy = quantiles(level, self.heavy)
        half = sqrt(normal**2 * self.variance + heavy**2 * self.noise)
        return self.difference - half, self.difference + half


def log_rank(blocks: Blocks, heavy: bool) -> LogRank:
    """Return the test over all strata, in the cells that are known of both arms; blocks are (stratum, arm)."""
    strata, cells = len(blocks.counts) // 2, blocks.cells
    known = blocks.known.reshape(strata, 2).min(axis=1)
    used = np.arange(cells) < known[:, None]
    events = blocks.events.reshape(strata, 2, cells)
    people = np.where(used[:, None], blocks.at_risk.reshape(strata, 2, cells), 1.0)
    control, treated = people[:, 0], people[:, 1]
    both, total = events.sum(axis=1), people.sum(axis=1)
    difference = float(np.sum(used * (events[:, 1] * control - events[:, 0] * treated) / total))
    happened = np.clip(both, 0.0, total)
    left = np.maximum(total - 1, 1e-9)
    spread = used * treated * control * happened * (total - happened) / (total**2 * left)
    # (S, 2, J): how the difference moves with events and with people at risk.
    by_events = used[:, None] * np.stack([-treated, control], axis=1) / total[:, None]
    by_people = used[:, None] * np.stack([treated, -control], axis=1) * (both / total**2)[:, None]
    noise = float(blocks.noise.of(_gradient(blocks, by_events, by_people))[0, 0])
    noise += _of_products(blocks, used, total)
    # The variance is a noisy number too: it is taken one standard deviation of its noise larger.
    share = np.stack([used * treated * control / total**2] * 2, axis=1)
    unsure = sqrt(max(float(blocks.noise.of(_gradient(blocks, share, 0 * share))[0, 0]), 0.0))
    # Of weighted counts, each arm's own variance is larger than counts would have it.
    design = blocks.design.reshape(strata, 2).max(axis=1)
    variance = blocks.inflation * (float(np.sum(design[:, None] * spread)) + float(design.max()) * unsure)
    return LogRank(difference, variance, max(noise, 0.0), heavy, int(known.min()))


def _gradient(blocks: Blocks, by_events: Floats, by_people: Floats) -> Floats:
    cells = blocks.cells
    found = by_people.reshape(-1, cells) @ blocks.risk_rows
    found[:, :cells] += by_events.reshape(-1, cells)
    return found[None]


def _of_products(blocks: Blocks, used: Floats, total: Floats) -> float:
    """Return the variance of products of an arm's noise in events and the other's in people at risk."""
    covariance, rows = blocks.noise.covariance, blocks.risk_rows
    events = np.diag(covariance)[: blocks.cells]
    people = np.diag(rows @ covariance @ rows.T)
    return float(np.sum(used * 2 * events * people / total**2))
