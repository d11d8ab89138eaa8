"""Intervals of distributions, their quantiles, and where noisy curves cross a share.

A time is in the interval where the curve's own interval at that time holds the share (Brookmeyer and Crowley 1982), so
that no density is estimated. Between the ends of cells curves and their intervals are taken for straight lines; where
everything happens at the ends of cells, for steps. A difference takes both intervals (Zou and Donner 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import hypot, inf, isfinite

import numpy as np

from counterveil.inference.measures import p_value
from counterveil.inference.survival import LEAST_AT_RISK, Curves, SurvivalAnswers, TableNoise, with_totals
from counterveil.numerics.arrays import Ends, Floats

_USUAL = 0.95
_NORMAL = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where one arm's curve falls to `left`; infinite where it does not before its last time."""

    answers: SurvivalAnswers
    arm: int
    left: float

    @property
    def estimate(self) -> float:
        """The middle between where the noisy curve first reaches the share and where it is above it last."""
        shown = self.answers.curves.shown[self.arm]
        return (self._first(shown) + self._last(shown)) / 2

    def _part(self, noise: bool) -> float:
        """Return the standard deviation that the interval stands for, as the curve's is divided at the estimate."""
        low, high = self.interval(_USUAL)
        total, curves = (high - low) / (2 * _NORMAL), self.answers.curves
        if not isfinite(total):
            return inf
        place = min(int(np.searchsorted(self.answers.edges, self.estimate)), len(self.answers.edges) - 1)
        own = (
            curves.noise[self.arm, place, self.arm, place].clip(0.0),
            curves.sampling[self.arm, place, place],
        )
        return float(total * np.sqrt((own[0] if noise else own[1]) / max(sum(own), 1e-300)))

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self._part(noise=False)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self._part(noise=True)

    def interval(self, level: float) -> Ends:
        """Return the two ends; the upper one is infinite where the curve may not fall so far before its last time."""
        (low, high), horizon = self.answers.ends(self.arm, level), float(self.answers.edges[-1])
        last = self._last(high)
        return min(self._first(low), horizon), last if self.answers.bends is None else min(last, horizon)

    def _first(self, curve: Floats) -> float:
        """Return where a curve first reaches the share."""
        below = np.flatnonzero(curve <= self.left)
        return self._between(curve, int(below[0]), first=True) if len(below) else inf

    def _last(self, curve: Floats) -> float:
        """Return up to where a curve is above the share."""
        place = int(np.flatnonzero(curve > self.left)[-1]) + 1
        return self._between(curve, place, first=False) if place < len(curve) else inf

    def _between(self, curve: Floats, place: int, first: bool) -> float:
        """Return where the line into this point crosses the share."""
        edges = self.answers.edges
        if self.answers.convention == "end" or place == 0:
            return float(edges[place])
        if first and self.answers.curves.slack[self.arm, place] > 0:
            # Lost in the noise: it may cross as soon as it is.
            return float(edges[place - 1])
        part = (curve[place - 1] - self.left) / (curve[place - 1] - curve[place])
        return float(edges[place - 1] + part * (edges[place] - edges[place - 1]))


@dataclass(frozen=True, slots=True)
class CrossingGap:
    """The difference of two arms' quantiles."""

    one: Crossing
    other: Crossing

    @property
    def estimate(self) -> float:
        """One quantile minus the other; infinite where only one is known, 0 where none is."""
        own, others = self.one.estimate, self.other.estimate
        return own - others if isfinite(own) or isfinite(others) else 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return hypot(self.one.sampling_sd, self.other.sampling_sd)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return hypot(self.one.noise_sd, self.other.noise_sd)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal quantiles, noise included."""
        return p_value(self.interval)

    def interval(self, level: float) -> Ends:
        """Return the two ends; infinite where a quantile may lie beyond the last time."""
        (low, high), (least, most) = self.one.interval(level), self.other.interval(level)
        own, others = self.one.estimate, self.other.estimate
        if not (isfinite(own) and isfinite(others)):
            return (low - most if isfinite(most) else -inf), (high - least if isfinite(high) else inf)
        apart = own - others
        return apart - hypot(own - low, most - others), apart + hypot(high - own, others - least)


# Distribution functions of both arms from noisy counts of outcomes by cell, as curves that fall from 1 to 0.
#
# One minus a distribution function is a survival curve that nobody is censored from, so that intervals, bands and
# quantiles are those of `survival` and `crossings`. Between the edges of cells outcomes are taken to lie evenly; how
# far a straight line may be off there is allowed for by how unlike neighbouring cells are.


# Nothing is supposed of where outcomes lie within a cell that holds more than this part of an arm.
_COARSE = 1 / 3


@dataclass(frozen=True, slots=True)
class NoisyHistograms:
    """Released counts of outcomes by cell, of the control arm first.

    Attributes:
        numbers: counts, or sums of public weights up to 1, by arm and cell.
        noise_sd: standard deviation of the noise of each; `heavy` says that it is Laplace's.
        totals: public numbers of people: of everyone, or of each arm.
        edges: of the cells.
        design: ratio of squared weights to weights of each arm; 1 without weights.
        inflation: of the sampling variance, for bias that intervals allow for.
    """

    numbers: tuple[tuple[float, ...], ...]
    noise_sd: float
    heavy: bool
    totals: tuple[float, ...]
    edges: tuple[float, ...]
    design: tuple[float, ...]
    inflation: float = 1.0

    def check(self) -> None:
        """Raise ValueError where the parts do not belong together."""
        sound = (
            len(self.numbers) == len(self.design) == 2
            and all(len(one) == len(self.edges) - 1 >= 2 for one in self.numbers)
            and len(self.totals) in (1, 2)
            and self.noise_sd >= 0
            and all(one > 0 for one in (*self.design, *self.totals, self.inflation))
            and all(later > earlier for earlier, later in pairwise(self.edges))
        )
        if not sound:
            raise ValueError("no counts of outcomes by cell")


@lru_cache(maxsize=32)
def distributions_of(tables: NoisyHistograms) -> SurvivalAnswers:
    """Return both arms' curves, one minus distribution functions, with their errors."""
    cells = len(tables.edges) - 1
    groups: tuple[tuple[int, ...], ...] = ((0, 1),) if len(tables.totals) == 1 else ((0,), (1,))
    noise = TableNoise(tables.noise_sd**2 * np.eye(cells), groups)
    counts = with_totals(np.array(tables.numbers), noise, tables.totals)
    people = counts.sum(axis=1)
    known = people > max(LEAST_AT_RISK * tables.noise_sd * cells**0.5, 1e-9)
    size = np.where(known, people, 1.0)[:, None]
    later = np.triu(np.ones((cells + 1, cells)))  # (P, J): what lies beyond an edge
    curves = np.where(known[:, None], counts @ later.T / size, (np.arange(cells + 1) < cells) * 1.0)
    slopes = known[:, None, None] * (later - curves[:, :, None]) / size[:, :, None]
    full = np.zeros((2, cells + 1, 2, cells))
    full[0, :, 0], full[1, :, 1] = slopes
    moved = full.reshape(2 * (cells + 1), 2, cells)
    worth = size / (np.array(tables.design) * tables.inflation)[:, None]
    falling = np.minimum.accumulate(np.clip(curves, 0.0, 1.0), axis=1)
    shared = np.minimum(falling[:, :, None], falling[:, None, :]) - falling[:, :, None] * falling[:, None, :]
    slack = np.zeros_like(curves)
    slack[~known, 1:-1] = 1.0
    return SurvivalAnswers(
        Curves(
            survival=curves,
            shown=curves,
            sampling=shared / worth[:, :, None],
            noise=noise.of(moved).reshape(2, cells + 1, 2, cells + 1),
            slack=slack,
            grouping=np.zeros_like(curves),
            people=np.repeat(people[:, None], cells, axis=1),
            worth=np.repeat(worth, cells, axis=1),
            heaviness=noise.heaviness(moved).reshape(2, cells + 1),
        ),
        np.array(tables.edges),
        "middle",
        tables.heavy,
        bends=_bends(counts / size, tables.noise_sd / size, worth) * known[:, None],
    )


def _bends(shares: Floats, noise_sd: Floats, worth: Floats) -> Floats:
    """Return how far a curve may be from straight lines between the edges of cells, at the edges (2, J + 1).

    A curve whose slope changes evenly, by s from a cell to the next, is up to s / 8 from its chord. Where s is no small
    part of what the cell holds, its slope changes within the cell too: more is allowed, up to all that the cell holds.
    What noise, and sampling of so many people, add to squared changes is taken off.
    """
    wide = np.pad(shares, ((0, 0), (1, 1)), mode="edge")
    sampled = np.clip(wide[:, 1:] + wide[:, :-1], 0.0, None) / worth
    squares = np.clip(np.diff(wide, axis=1) ** 2 - sampled - 2 * noise_sd**2, 0.0, None)
    change = np.sqrt(np.maximum(squares[:, 1:], squares[:, :-1]))
    held = np.maximum(shares, 1e-9)
    cell = np.minimum(change / 16 * (1 + 4 * change / held), np.maximum(shares, 0.0))
    cell = np.where(shares > _COARSE, shares, cell)
    found = np.zeros((len(shares), shares.shape[1] + 1))
    found[:, :-1] = cell
    found[:, 1:] = np.maximum(found[:, 1:], cell)
    return found
