"""Hazard ratios and a test of proportional hazards from noisy tables of events by time cell.

Grouped data with proportional hazards: of Y people at risk in a cell, each of arm a has the event with chance
1 - exp(-x_a), x_a = theta^a lambda, with lambda the cell's own (Prentice and Gloeckler 1978). The complementary
log-log likelihood has residuals r_a = d_a x_a / (1 - exp(-x_a)) - x_a Y_a and information lambda v_a in each arm, with
v_a = theta^a Y_a x_a / (exp(x_a) - 1). With lambda profiled out, a cell's score is (v_0 r_1 - v_1 r_0) / (v_0 + v_1),
its information lambda v_0 v_1 / (v_0 + v_1). Ties are what grouping means, so that nothing is done for them.

To first order the score does not move with lambda, and it is linear in events: negative counts do no harm. The interval
holds every ratio whose score is no farther from 0 than its sampling variance and noise at that ratio explain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, isfinite, isnan, nan, sqrt

import numpy as np

from counterveil.inference.survival import (
    AT_RISK,
    Blocks,
    LogRank,
    NoisyTables,
    blocks_of,
    joint_bias,
    of_products,
    table_gradient,
)
from counterveil.numerics.arrays import Ends, Floats

# Logarithms of ratios that are looked at.
_FARTHEST = 10.0
# Steps towards a cell's own hazard, and the largest that is supposed.
_STEPS, _MOST = 4, 5.0


@dataclass(frozen=True, slots=True)
class HazardRatio:
    """The ratio of both arms' hazards, treated over control, within strata; of one cause or of any event."""

    tables: NoisyTables
    cause: int | None = None

    def score(self, logarithm: float) -> LogRank:
        """Return the score at a ratio, whose test is that of this ratio."""
        return _score(self.tables, self.cause, logarithm)

    @property
    def _logarithm(self) -> float:
        # A stratum whose cells are all lost in the noise says nothing; others do.
        if not blocks_of(self.tables).known.reshape(-1, 2).min(axis=1).any():
            return nan
        found = _root(lambda at: self.score(at).difference, -_FARTHEST, _FARTHEST)
        return found if abs(found) < _FARTHEST else found * inf

    @property
    def estimate(self) -> float:
        """The ratio at which the score is 0; 0 or infinite where an arm's events are lost in the noise."""
        return exp(self._logarithm)

    def _sd(self, part: str) -> float:
        found = self._logarithm
        if not isfinite(found):
            return inf
        step = 0.01
        slope = (self.score(found - step).difference - self.score(found + step).difference) / (2 * step)
        return exp(found) * sqrt(getattr(self.score(found), part)) / slope if slope > 0 else inf

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self._sd("variance")

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self._sd("noise")

    def interval(self, level: float) -> Ends:
        """Return the two ends: 0 or infinite where noise leaves them open."""
        start = self._logarithm
        if isnan(start):
            return 0.0, inf
        start = min(max(start, -_FARTHEST), _FARTHEST)
        low = _root(lambda at: self.score(at).interval(level)[0], -_FARTHEST, start)
        high = _root(lambda at: self.score(at).interval(level)[1], start, _FARTHEST)
        return 0.0 if low == -_FARTHEST else exp(low), inf if high == _FARTHEST else exp(high)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal hazards, noise included."""
        return self.score(0.0).p_value

    @property
    def proportionality(self) -> LogRank:
        """The test that the ratio is the same at all times: its change along time is 0."""
        found = self._logarithm
        return _score(self.tables, self.cause, found if isfinite(found) else 0.0, trend=True)


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function is 0; the end at which it is nearest to it where it is 0 nowhere between."""
    from scipy.optimize import brentq  # takes long to load, and most questions have no need of it

    if falling(low) <= 0:
        return low
    return high if falling(high) >= 0 else float(brentq(falling, low, high, xtol=1e-10))


@lru_cache(maxsize=512)
def _score(tables: NoisyTables, cause: int | None, logarithm: float, trend: bool = False) -> LogRank:
    middles = np.array(tables.edges[1:]) + np.array(tables.edges[:-1])
    return score(blocks_of(tables), tables.heavy, logarithm, cause, middles if trend else None)


def score(
    blocks: Blocks, heavy: float, logarithm: float, cause: int | None = None, times: Floats | None = None
) -> LogRank:
    """Return the score of a logarithm of the hazard ratio over all strata, in the cells that are known of both arms.

    With `times` (J,), that of its change along them, which does not move with the ratio itself.
    """
    strata, cells = len(blocks.counts) // 2, blocks.cells
    known = blocks.known.reshape(strata, 2).min(axis=1)
    used = np.arange(cells) < known[:, None]
    ratio = np.array([1.0, exp(logarithm)])[:, None]
    events = (blocks.counts @ blocks.event_rows(cause).T).reshape(strata, 2, cells)
    people = np.where(used[:, None], blocks.at_risk.reshape(strata, 2, cells), 1.0)
    exposed = (ratio * people).sum(axis=1)
    own = events.sum(axis=1) / exposed
    for _ in range(_STEPS):
        x = np.clip(ratio * own[:, None], 1e-9, _MOST)
        grown = x / -np.expm1(-x)
        own = (events * grown).sum(axis=1) / exposed
    part = ratio * people * x / np.expm1(x)
    others = part[:, ::-1] / part.sum(axis=1)[:, None] * used[:, None]
    # (S, 2, J): how the score moves with residuals.
    sign = np.array([-1.0, 1.0])[:, None] * others
    # The information of a cell is so much for every event.
    each = (part * others).sum(axis=1) / 2 / exposed
    if times is not None:
        told = each * np.clip(events.sum(axis=1), 0.0, None)
        centred = times - float(np.sum(told * times)) / max(float(told.sum()), 1e-300)
        sign, each = sign * centred, each * centred**2
    difference = float(np.sum(sign * (events * grown - ratio * own[:, None] * people)))
    by_people = -sign * ratio * own[:, None]
    moved = table_gradient(blocks, sign * grown, by_people, cause)
    noise, tail = float(blocks.noise.of(moved)[0, 0]), float(blocks.noise.heaviness(moved)[0])
    scale = sqrt((1 + ratio[1, 0] ** 2) / 2)
    noise += of_products(blocks, used * (1.0 if times is None else centred) * scale / exposed, cause)
    # The variance is a noisy number too: it is taken larger, by up to one standard deviation of its noise.
    shared = np.stack([each] * 2, axis=1)
    unsure = max(float(blocks.noise.of(table_gradient(blocks, shared, 0 * shared, cause))[0, 0]), 1e-300)
    design = blocks.design.reshape(strata, 2).max(axis=1)
    happened = max(float(np.sum(design[:, None] * each * (events * grown).sum(axis=1))), 0.0)
    unsure *= float(design.max()) ** 2
    variance = blocks.inflation * (happened + unsure / max(happened, sqrt(unsure)))
    censored = AT_RISK[blocks.convention] * blocks.censored.reshape(strata, 2, cells)
    either = np.abs(np.sum(by_people * censored, axis=(0, 2)))
    bias = joint_bias(*map(float, either))
    return LogRank(difference, variance, max(noise, 0.0), heavy * tail, int(known.min()), bias)
