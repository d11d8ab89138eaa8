"""Quantiles: where noisy curves cross a level, and the difference of both arms' quantiles.

A time is in the interval where the curve's own interval at that time holds the level (Brookmeyer and
Crowley 1982) [1]_: no density is estimated. Within a cell the curve lies between those of its ends, and is
as far from a straight line as unlike neighbouring cells suggest; where everything happens at the ends of
cells, it is a step. A difference takes both intervals (Zou and Donner 2008) [2]_. Quantiles are in the unit
of the times or outcomes.

References
----------
.. [1] Brookmeyer, R. and Crowley, J. (1982). A confidence interval for the median survival time. Biometrics
   38, 29-41.
.. [2] Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general
   approach. Statistics in Medicine 27, 1693-1702.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf, isfinite, isinf, nan, sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from counterveil.inference.biased_intervals import biased_half_width, biased_half_widths
from counterveil.inference.estimates import IndependentDifference
from counterveil.inference.p_values import p_value
from counterveil.inference.survival.answers import SurvivalAnswers
from counterveil.inference.survival.interval_parts import APART, joint_bias
from counterveil.inference.survival.within_cells import points_of
from counterveil.numerics.arrays import Ends, Floats

# Level of the interval whose length is told as a standard deviation, and its normal quantile.
_DEFAULT_LEVEL = 0.95
_NORMAL = 1.959963984540054
# Directions in which errors of both arms that are as unlikely together are looked at.
_ANGLES = 8


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where one arm's curve falls to a level: a quantile.

    Attributes
    ----------
    answers : SurvivalAnswers
        Both arms' curves.
    arm : {0, 1}
        0 for the controls, 1 for the treated.
    left : float
        Level of the curve, in (0, 1): one minus the probability of the quantile.
    """

    answers: SurvivalAnswers
    arm: int
    left: float

    @property
    def estimate(self) -> float:
        """Middle between where the noisy curve first reaches the level and where it is above it last.

        It is infinite where the curve does not fall so far before its last time.
        """
        shown = self.answers.curves.shown[self.arm]
        return (self._first(shown) + self._last(shown)) / 2

    def _share_of_sd(self, noise: bool) -> float:
        """Return the standard deviation that the interval stands for, as the curve's is divided at the estimate."""
        low, high = self.interval(_DEFAULT_LEVEL)
        total = (high - low) / (2 * _NORMAL)
        curves = self.answers.curves
        if not isfinite(total):
            return inf
        index = min(int(np.searchsorted(self.answers.edges, self.estimate)), len(self.answers.edges) - 1)
        drawn = float(curves.noise[self.arm, index, self.arm, index].clip(0.0))
        both = drawn + float(curves.sampling[self.arm, index, index])
        # Where neither is known, as noise hides the arm, all is noise.
        noise_share = drawn / both if both > 0 else 1.0
        return total * sqrt(noise_share if noise else 1 - noise_share)

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error."""
        return self._share_of_sd(noise=False)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise."""
        return self._share_of_sd(noise=True)

    def interval(self, level: float) -> Ends:
        """Return the two ends; the upper one is infinite where the curve may not fall so far.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.ends(level, curved=True)
        return low, self.answers.whole_times(high, up=True)

    def ends(self, level: float, curved: bool = False) -> Ends:
        """Return the ends where curves are straight in cells, or as far from it as is allowed for.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).
        curved : bool, default False
            Whether the curvature that is allowed for is added.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self.answers.ends(self.arm, level)
        curves = self.answers.curves
        arm = self.arm
        sides = np.abs(np.array([low, high]) - curves.survival[arm])
        sides = (sides[:, 1:] + sides[:, :-1]) / 2
        # Errors of two edges are not the same: between them there is less error than at them, if nobody is censored.
        shifts = np.zeros_like(sides)
        arcs = sides * (1 - curves.halfway[arm]) * curves.rounded
        if curved:
            # How curves bend is no matter of chance but a bias up to a bound, or anything where a cell is crowded.
            curvature, smooth = (values[arm] for values in curves.curvature[:2])
            held = -np.diff(curves.shown[arm])
            arcs *= smooth
            extra = np.array([biased_half_widths(side, curvature, level) - side for side in sides - arcs])
            extra = np.where((curvature < held) | (held <= 0), extra, inf)
            shifts = np.where(smooth, 0.0, -extra)
            arcs = np.where(smooth, arcs - extra, 0.0)
        first = self._first(low, (shifts[0], arcs[0]))
        last = self._last(high, (-shifts[1], -arcs[1]))
        return min(first, float(self.answers.edges[-1])), last

    def _first(self, curve: Floats, moved: tuple[Floats, Floats] | None = None) -> float:
        """Return where a curve first reaches the share."""
        below = np.flatnonzero(curve <= self.left)
        return self._between(curve, int(below[0]), moved, first=True) if len(below) else inf

    def _last(self, curve: Floats, moved: tuple[Floats, Floats] | None = None) -> float:
        """Return up to where a curve is above the share."""
        index = int(np.flatnonzero(curve > self.left)[-1]) + 1
        return self._between(curve, index, moved, first=False) if index < len(curve) else inf

    def _between(self, curve: Floats, index: int, moved: tuple[Floats, Floats] | None, first: bool) -> float:
        """Return where the line into this point, moved by shifts and arcs, crosses the share within its cell."""
        edges = self.answers.edges
        if self.answers.convention == "end" or index == 0 or points_of(np.diff(edges))[index - 1]:
            return float(edges[index])
        if first and moved is not None and self.answers.curves.slack[self.arm, index] > 0:
            # Lost in the noise: it may cross as soon as it is.
            return float(edges[index - 1])
        above = curve[index - 1] - self.left
        falls = curve[index - 1] - curve[index]
        shift, arc = (0.0, 0.0) if moved is None else (float(by_cell[index - 1]) for by_cell in moved)
        return float(
            edges[index - 1]
            + _crossing_in_cell(above + shift, falls, arc) * (edges[index] - edges[index - 1])
        )

    def pinned(self, end: float) -> bool:
        """Return whether an end is the edge of a cell about whose inside nothing is assumed.

        Parameters
        ----------
        end : float
            An end of an interval.

        Returns
        -------
        bool
            True at such an edge.
        """
        curves = self.answers.curves
        edges = self.answers.edges
        arm = self.arm
        curvature = curves.curvature[0][arm]
        held = -np.diff(curves.shown[arm])
        free = (
            ((curvature >= held) & (held > 0))
            | (curves.slack[arm, 1:] > 0)
            | (self.answers.convention == "end")
        )
        return bool((free & ((edges[1:] == end) | (edges[:-1] == end))).any())


@dataclass(frozen=True, slots=True)
class CrossingGap(IndependentDifference):
    """The difference of two arms' quantiles.

    Attributes
    ----------
    one : Crossing
        Quantile of the treated.
    other : Crossing
        Quantile of the controls.
    """

    one: Crossing
    other: Crossing

    @property
    def estimate(self) -> float:
        """One quantile minus the other; infinite where only one is known, not a number where none is."""
        treated = self.one.estimate
        control = self.other.estimate
        return treated - control if isfinite(treated) or isfinite(control) else nan

    @property
    def p_value(self) -> float:
        """Two-sided p-value of equal quantiles, privacy noise included."""
        return p_value(self.interval)

    def interval(self, level: float) -> Ends:
        """Return the two ends; infinite where a quantile may lie beyond the last time.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (float, float)
            Lower and upper end.
        """
        low, high = self._between(level)
        answers = self.one.answers
        return answers.whole_times(low, up=False), answers.whole_times(high, up=True)

    def _between(self, level: float) -> Ends:
        (low, high), (least, most) = (
            crossing.ends(level, curved=True) for crossing in (self.one, self.other)
        )
        treated = self.one.estimate
        control = self.other.estimate
        widest = low - most if isfinite(most) else -inf, high - least if isfinite(high) else inf
        if not (isfinite(treated) and isfinite(control)):
            return widest
        straight = self.one.ends(level)
        straight_control = self.other.ends(level)
        down, up = self._distances(level)
        curved = self._curvature_bias(
            _mean_curvature(straight, (low, high)), _mean_curvature(straight_control, (least, most))
        )
        # Where outcomes lie in a dense cell, and whom weights leave out, is no matter of chance.
        left_out = self.one.answers.whole and bool(self.one.answers.curves.grouping.any())
        pinned = [
            left_out or self.one.pinned(end) or self.other.pinned(another)
            for end, another in ((low, most), (high, least))
        ]
        return (
            widest[0]
            if pinned[0] or isinf(widest[0])
            else treated - control - biased_half_width(down, curved, level),
            widest[1]
            if pinned[1] or isinf(widest[1])
            else treated - control + biased_half_width(up, curved, level),
        )

    def _curvature_bias(self, treated_bend: float, control_bend: float) -> float:
        """Return how far the difference may be off as curves bend: about as far in both arms where they bend alike."""
        leans = self.one.answers.curves.curvature[2]
        edges = self.one.answers.edges[1:-1]
        signs = [
            leans[crossing.arm, np.searchsorted(edges, crossing.estimate)]
            for crossing in (self.one, self.other)
        ]
        return joint_bias(treated_bend, control_bend, APART if signs[0] == signs[1] else 1.0)

    def _distances(self, level: float) -> Ends:
        """Return how far below and above the difference may be off.

        It is the most over errors of both arms that are as unlikely together.

        Two errors of cos(a) and sin(a) times the normal quantile are; where curves are straight the most is
        the root of the sum of squares. Where nobody lies between two values, both quantiles may be off by
        all of the way.
        """
        treated = self.one.estimate
        control = self.other.estimate
        distances = [(0.0, 0.0)]
        straight = self.one.ends(level)
        theirs = self.other.ends(level)
        distances += [
            (
                hypot(treated - straight[0], theirs[1] - control),
                hypot(straight[1] - treated, control - theirs[0]),
            )
        ]
        angles = np.arange(1, _ANGLES) * np.pi / (2 * _ANGLES)
        levels = 2 * ndtr(ndtri((1 + level) / 2) * np.sin(angles)) - 1
        by_arm = [
            [crossing.ends(float(arm_level)) for arm_level in levels] for crossing in (self.one, self.other)
        ]
        for (low, high), (least, most) in zip(by_arm[0], reversed(by_arm[1]), strict=True):
            distances.append((treated - low + most - control, high - treated + control - least))
        return max(down for down, _ in distances), max(up for _, up in distances)


def _crossing_in_cell(above: float, falls: float, arc: float) -> float:
    """Return the part u of a cell where above - falls u + 4 arc u (1 - u) is 0: a line that bends between its ends."""
    if not 0 < above < falls:
        return float(above > 0)
    slope = falls - 4 * arc
    return 2 * above / (slope + sqrt(max(slope**2 + 16 * arc * above, 0.0)))


def _mean_curvature(straight: Ends, curved: Ends) -> float:
    """Return how far ends move on average as curves bend in their cells; an open end has no such distance."""
    down = straight[0] - curved[0]
    return (down + curved[1] - straight[1]) / 2 if isfinite(curved[1]) else down
