"""Quantiles read off noisy curves: where a falling curve crosses a share, by inverting the curve's intervals.

A time is in the interval where the curve's own interval at that time holds the share (Brookmeyer and Crowley 1982), so
that no density is estimated. Between the ends of cells curves and their intervals are taken for straight lines; where
everything happens at the ends of cells, for steps. A difference takes both intervals (Zou and Donner 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf, isfinite

import numpy as np

from counterveil.inference.measures import p_value
from counterveil.inference.survival import SurvivalAnswers
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

    @property
    def _total(self) -> float:
        low, high = self.interval(_USUAL)
        return (high - low) / (2 * _NORMAL)

    def _part(self, noise: bool) -> float:
        """Return the standard deviation that the interval stands for, as the curve's is divided at the estimate."""
        total, curves = self._total, self.answers.curves
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
