"""Hazard ratios and a test of proportional hazards from noisy tables of events by time cell.

Grouped data with proportional hazards: of Y people at risk in a cell, each of arm a has the event with
chance 1 - exp(-x_a), x_a = theta^a lambda, with lambda the cell's own (Prentice and Gloeckler 1978) [1]_.
The complementary log-log likelihood has residuals r_a = d_a x_a / (1 - exp(-x_a)) - x_a Y_a and information
lambda v_a in each arm, with v_a = theta^a Y_a x_a / (exp(x_a) - 1). With lambda profiled out, a cell's
score is (v_0 r_1 - v_1 r_0) / (v_0 + v_1), its information lambda v_0 v_1 / (v_0 + v_1). Ties are what
grouping means, so that nothing is done for them.

To first order the score does not move with lambda, and it is linear in events: negative counts do no harm.
The interval holds every ratio whose score is no farther from 0 than its sampling variance and noise at that
ratio explain.

References
----------
.. [1] Prentice, R. L. and Gloeckler, L. A. (1978). Regression analysis of grouped survival data with
   application to breast cancer data. Biometrics 34, 57-67.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, isfinite, isnan, nan, sqrt

import numpy as np

from counterveil.inference.survival.blocks import Blocks
from counterveil.inference.survival.interval_parts import joint_bias
from counterveil.inference.survival.log_rank import (
    LogRank,
    of_products,
    table_gradient,
)
from counterveil.inference.survival.tables import NoisyTables, blocks_of
from counterveil.numerics.arrays import Ends, Floats

# Logarithms of ratios that are looked at lie within this distance of 0.
_LARGEST_LOGARITHM = 10.0
# Steps towards a cell's own hazard.
_HAZARD_STEPS = 4
# Largest hazard of a cell that is supposed.
_LARGEST_HAZARD = 5.0
# And the least.
_LEAST_HAZARD = 1e-9
# Half the distance, in logarithms of the ratio, over which the slope of the score is taken.
_SLOPE_STEP = 0.01
# Logarithms of ratios are found to this.
_PRECISION = 1e-10


@dataclass(frozen=True, slots=True)
class HazardRatio:
    """The ratio of both arms' hazards, treated over control, within strata.

    Attributes
    ----------
    tables : NoisyTables
        Numbers of events and of people, as released.
    cause : int or None
        Position of the cause among ``tables.causes``; None for all events.

    Notes
    -----
    The ratio r is where the score of the grouped Cox model is 0: the observed events of the treated less
    those expected at r. An interval holds the ratios whose score test does not reject.
    """

    tables: NoisyTables
    cause: int | None = None

    def score(self, logarithm: float) -> LogRank:
        """Return the score at a ratio, whose test is that of this ratio.

        Parameters
        ----------
        logarithm : float
            Logarithm of the ratio.

        Returns
        -------
        LogRank
            Observed less expected events, with the two-sided p-value.
        """
        return _score(self.tables, self.cause, logarithm)

    @property
    def _logarithm(self) -> float:
        # A stratum whose cells are all lost in the noise says nothing; others do.
        if not blocks_of(self.tables).known.reshape(-1, 2).min(axis=1).any():
            return nan
        root = _root(lambda at: self.score(at).difference, -_LARGEST_LOGARITHM, _LARGEST_LOGARITHM)
        return root if abs(root) < _LARGEST_LOGARITHM else root * inf

    @property
    def estimate(self) -> float:
        """The ratio at which the score is 0; 0 or infinite where an arm's events are lost in the noise."""
        return exp(self._logarithm)

    def _sd(self, field_name: str) -> float:
        logarithm = self._logarithm
        if not isfinite(logarithm):
            return inf
        slope = (
            self.score(logarithm - _SLOPE_STEP).difference - self.score(logarithm + _SLOPE_STEP).difference
        ) / (2 * _SLOPE_STEP)
        return exp(logarithm) * sqrt(getattr(self.score(logarithm), field_name)) / slope if slope > 0 else inf

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self._sd("variance")

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self._sd("noise")

    def interval(self, level: float) -> Ends:
        """Return the two ends: 0 or infinite where noise leaves them open.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        start = self._logarithm
        if isnan(start):
            return 0.0, inf
        start = min(max(start, -_LARGEST_LOGARITHM), _LARGEST_LOGARITHM)
        low = _root(lambda at: self.score(at).interval(level)[0], -_LARGEST_LOGARITHM, start)
        high = _root(lambda at: self.score(at).interval(level)[1], start, _LARGEST_LOGARITHM)
        return 0.0 if low == -_LARGEST_LOGARITHM else exp(low), inf if high == _LARGEST_LOGARITHM else exp(
            high
        )

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal hazards, privacy noise included."""
        return self.score(0.0).p_value

    @property
    def proportionality(self) -> LogRank:
        """Test that the ratio is the same at all times: its change along time is 0."""
        logarithm = self._logarithm
        return _score(self.tables, self.cause, logarithm if isfinite(logarithm) else 0.0, trend=True)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function is 0; the end at which it is nearest to it where it is 0 nowhere between."""
    from scipy.optimize import brentq  # takes long to load, and most questions have no need of it

    if falling(low) <= 0:
        return low
    return high if falling(high) >= 0 else float(brentq(falling, low, high, xtol=_PRECISION))


@lru_cache(maxsize=512)
def _score(tables: NoisyTables, cause: int | None, logarithm: float, trend: bool = False) -> LogRank:
    middles = np.array(tables.edges[1:]) + np.array(tables.edges[:-1])
    return score(
        blocks_of(tables), tables.heavy, logarithm=logarithm, cause=cause, times=middles if trend else None
    )


def score(
    blocks: Blocks, heavy: float, logarithm: float, cause: int | None = None, times: Floats | None = None
) -> LogRank:
    """Return the score of a logarithm of the hazard ratio over all strata.

    Only cells that are known of both arms enter.

    With `times` (J,), that of its change along them, which does not move with the ratio itself.
    """
    strata = len(blocks.counts) // 2
    cells = blocks.cells
    known_cells = blocks.known.reshape(strata, 2).min(axis=1)
    used = np.arange(cells) < known_cells[:, None]
    ratio = np.array([1.0, exp(logarithm)])[:, None]
    events = (blocks.counts @ blocks.event_rows(cause).T).reshape(strata, 2, cells)
    people = np.where(used[:, None], blocks.at_risk.reshape(strata, 2, cells), 1.0)
    exposed = (ratio * people).sum(axis=1)
    hazard = events.sum(axis=1) / exposed
    for _ in range(_HAZARD_STEPS):
        x = np.clip(ratio * hazard[:, None], _LEAST_HAZARD, _LARGEST_HAZARD)
        grown = x / -np.expm1(-x)
        hazard = (events * grown).sum(axis=1) / exposed
    share = ratio * people * x / np.expm1(x)
    others = share[:, ::-1] / share.sum(axis=1)[:, None] * used[:, None]
    # (S, 2, J): how the score moves with residuals.
    sign = np.array([-1.0, 1.0])[:, None] * others
    # The information of a cell is so much for every event.
    cell_variance = (share * others).sum(axis=1) / 2 / exposed
    if times is not None:
        sampling = cell_variance * np.clip(events.sum(axis=1), 0.0, None)
        centred = times - float(np.sum(sampling * times)) / max(float(sampling.sum()), 1e-300)
        sign = sign * centred
        cell_variance = cell_variance * centred**2
    difference = float(np.sum(sign * (events * grown - ratio * hazard[:, None] * people)))
    by_people = -sign * ratio * hazard[:, None]
    moved = table_gradient(blocks, sign * grown, by_people, cause)
    noise = float(blocks.noise.of(moved)[0, 0])
    tail = float(blocks.noise.heaviness(moved)[0])
    scale = sqrt((1 + ratio[1, 0] ** 2) / 2)
    noise += of_products(blocks, used * (1.0 if times is None else centred) * scale / exposed, cause)
    # The variance is a noisy number too: it is taken larger, by up to one standard deviation of its noise.
    shared = np.stack([cell_variance] * 2, axis=1)
    unsure = max(float(blocks.noise.of(table_gradient(blocks, shared, 0 * shared, cause))[0, 0]), 1e-300)
    design = blocks.design.reshape(strata, 2).max(axis=1)
    happened = max(float(np.sum(design[:, None] * cell_variance * (events * grown).sum(axis=1))), 0.0)
    unsure *= float(design.max()) ** 2
    variance = blocks.inflation * (happened + unsure / max(happened, sqrt(unsure)))
    either = np.abs(np.sum(by_people * blocks.either.reshape(strata, 2, cells) * people, axis=(0, 2)))
    bias = joint_bias(*map(float, either))
    return LogRank(
        difference=difference,
        variance=variance,
        noise=max(noise, 0.0),
        heavy=heavy * tail,
        cells=int(known_cells.min()),
        bias=bias,
    )
