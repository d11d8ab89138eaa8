"""The log-rank test of equal hazards in both arms, from noisy tables of events by time cell.

    difference = sum over cells and strata of d_1 - d E_1 / E,    statistic = difference / sqrt(V + N),

with d_1 the events of the treated in a cell, d those of both arms, E_1 and E the people at risk (Mantel 1966
[1]_; Peto and Peto 1972 [2]_): observed less expected events if all hazards were alike, in people. In:
released tables, whose noise is known. Out: the difference, its variances and a two-sided p-value.

The sampling variance V is hypergeometric. The noise of events and of people at risk moves the difference by
the delta method, that of their products exactly; N is its variance. The interval adds both and allows for
bias within cells, and the p-value is read off it. It is post-processing of tables whose release is proved in
`rows/time_tables.proof.md`.

References
----------
.. [1] Mantel, N. (1966). Evaluation of survival data and two new rank order statistics arising in its
   consideration. Cancer Chemotherapy Reports 50, 163-170.
.. [2] Peto, R. and Peto, J. (1972). Asymptotically efficient rank invariant test procedures. JRSS A 135,
   185-207.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

import numpy as np

from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.p_values import p_value
from counterveil.inference.survival.blocks import Blocks
from counterveil.inference.survival.interval_parts import joint_bias, quantiles
from counterveil.inference.survival.tables import NoisyTables, blocks_of
from counterveil.numerics.arrays import Ends, Floats

# People at risk less one are no fewer, where noise leaves none.
_LEAST_REMAINING = 1e-9


@dataclass(frozen=True, slots=True)
class LogRank:
    """Events of the treated less those expected, and their test.

    Attributes
    ----------
    difference : float
        Observed less expected events of the treated.
    variance : float
        Sampling variance of it.
    noise : float
        Variance of its privacy noise.
    heavy : float
        Excess kurtosis of the noise as a part of Laplace's: 0 for normal noise.
    cells : int
        Number of time cells that entered, at least.
    bias : float
        How far the difference may be off as hazards change within cells.
    """

    difference: float
    variance: float
    noise: float
    heavy: float
    cells: int
    bias: float = 0.0

    @property
    def statistic(self) -> float:
        """The difference over its standard error, noise included; its square is the usual chi-square."""
        total = self.variance + self.noise
        return self.difference / sqrt(total) if total > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal hazards, privacy noise included; 1 where no cell is known."""
        return p_value(self.interval) if self.variance + self.noise > 0 else 1.0

    def interval(self, level: float) -> Ends:
        """Return the two ends of an interval of the difference.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        normal, heavy = quantiles(level, self.heavy)
        half = biased_half_width(sqrt(normal**2 * self.variance + heavy**2 * self.noise), self.bias, level)
        return self.difference - half, self.difference + half


@lru_cache(maxsize=32)
def log_rank_of(tables: NoisyTables) -> LogRank:
    """Return the log-rank test of equal hazards, within strata."""
    test = log_rank(blocks_of(tables), tables.heavy)
    return replace(test, cells=test.cells // tables.cut)


def log_rank(blocks: Blocks, heavy: float) -> LogRank:
    """Return the test over all strata, in the cells that are known of both arms; blocks are (stratum, arm)."""
    strata = len(blocks.counts) // 2
    cells = blocks.cells
    known_cells = blocks.known.reshape(strata, 2).min(axis=1)
    used = np.arange(cells) < known_cells[:, None]
    events = blocks.events.reshape(strata, 2, cells)
    people = np.where(used[:, None], blocks.at_risk.reshape(strata, 2, cells), 1.0)
    control = people[:, 0]
    treated = people[:, 1]
    both = events.sum(axis=1)
    total = people.sum(axis=1)
    difference = float(np.sum(used * (events[:, 1] * control - events[:, 0] * treated) / total))
    happened = np.clip(both, 0.0, total)
    remaining = np.maximum(total - 1, _LEAST_REMAINING)
    spread = used * treated * control * happened * (total - happened) / (total**2 * remaining)
    # (S, 2, J): how the difference moves with events and with people at risk.
    by_events = used[:, None] * np.stack([-treated, control], axis=1) / total[:, None]
    by_people = used[:, None] * np.stack([treated, -control], axis=1) * (both / total**2)[:, None]
    moved = table_gradient(blocks, by_events, by_people)
    noise = float(blocks.noise.of(moved)[0, 0])
    heavy = heavy * float(blocks.noise.heaviness(moved)[0])
    noise += of_products(blocks, used / total)
    # The variance is a noisy number too: it is taken one standard deviation of its noise larger.
    share = np.stack([used * treated * control / total**2] * 2, axis=1)
    unsure = sqrt(max(float(blocks.noise.of(table_gradient(blocks, share, 0 * share))[0, 0]), 0.0))
    # Of weighted counts, each arm's own variance is larger than counts would have it.
    design = blocks.design.reshape(strata, 2).max(axis=1)
    variance = blocks.inflation * (float(np.sum(design[:, None] * spread)) + float(design.max()) * unsure)
    off = blocks.either.reshape(strata, 2, cells) * people
    either = used[:, None] * off * people[:, ::-1] * (both / total**2)[:, None]
    bias = joint_bias(*(max(float(value), 0.0) for value in either.sum(axis=(0, 2))))
    return LogRank(
        difference=difference,
        variance=variance,
        noise=max(noise, 0.0),
        heavy=heavy,
        cells=int(known_cells.min()),
        bias=bias,
    )


def table_gradient(blocks: Blocks, by_events: Floats, by_people: Floats, cause: int | None = None) -> Floats:
    """Return how a number moves with each entry, (1, B, M), that moves with events and people at risk as given."""
    cells = blocks.cells
    gradient = by_people.reshape(-1, cells) @ blocks.risk_rows
    gradient += by_events.reshape(-1, cells) @ blocks.event_rows(cause)
    return np.asarray(gradient[None])


def of_products(blocks: Blocks, weights: Floats, cause: int | None = None) -> float:
    """Return the variance of products of an arm's noise in events and the other's in people at risk.

    `weights` (S, J) are what each product is multiplied by.
    """
    events = blocks.event_variances[-1 if cause is None else cause]
    return float(np.sum(weights**2 * 2 * events * blocks.risk_sd**2))
