"""Everything that is read off both arms' curves: probabilities at times, differences, restricted means and bands.

From the curves S_a at the edges of J cells, with the covariances of their sampling error and noise (`curves.py`):

    probability S_a(t),    gap S_1(t) - S_0(t),    restricted mean sum_j w_j S_a(t_j),

with w the weights of an integral up to the last edge. Curves are probabilities, times are in the unit of the data.
Intervals are those of `probabilities.py` and `areas.py`; a band takes the level at which intervals at all edges hold
together (`inference/simultaneous.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, inf, isinf

import numpy as np
from scipy.special import ndtr

from counterveil.inference.biased_intervals import biased_half_widths
from counterveil.inference.simultaneous import simultaneous
from counterveil.inference.survival.areas import Area, AreaRatio
from counterveil.inference.survival.blocks import LEAST_PEOPLE
from counterveil.inference.survival.curves import Curves, standardised
from counterveil.inference.survival.incidence import Incidence
from counterveil.inference.survival.interval_parts import APART, joint_bias, quantiles
from counterveil.inference.survival.probabilities import Gap, Probability
from counterveil.inference.survival.recorded_units import ROUNDING, recorded_unit
from counterveil.inference.survival.tables import NoisyTables, blocks_of
from counterveil.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class SurvivalAnswers:
    """Everything that is read off two curves.

    Attributes
    ----------
    curves : Curves
        Survival of both arms, control first.
    edges : ndarray of float, shape (J + 1,)
        Time 0 and the ends of all cells.
    convention : {"middle", "end"}
        Where in a cell people are censored.
    heavy : bool
        Whether the noise is Laplace's.
    cut : int
        Number of cells that make one of the declared grid, by which times are counted.
    whole : bool
        Whether curves fall to 0 by the last edge: distribution functions do.
    ties : float
        Unit at whose multiples alone curves may fall; 0 for none.
    """

    curves: Curves
    edges: Floats
    convention: str
    heavy: bool
    cut: int = 1
    whole: bool = False
    ties: float = 0.0

    def at(self, arm: int, place: int) -> Probability:
        """Return the probability of one arm at a time of the grid.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.
        place : int
            Position of the time in the grid; time 0 has 0.

        Returns
        -------
        Probability
            The probability of being free of the event, with its error.
        """
        return self.end(arm, place * self.cut)

    def end(self, arm: int, edge: int) -> Probability:
        """Return the probability of one arm at the end of a cell.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.
        edge : int
            Position among all edges.

        Returns
        -------
        Probability
            The probability of being free of the event, with its error.
        """
        curves = self.curves
        return Probability(
            estimate=float(curves.shown[arm, edge]),
            middle=float(curves.survival[arm, edge]),
            variance=float(curves.sampling[arm, edge, edge]),
            noise=max(float(curves.noise[arm, edge, arm, edge]), 0.0),
            size=float(self._sizes(arm)[edge]),
            heavy=self.heavy * float(curves.heaviness[arm, edge]),
            slack=float(curves.slack[arm, edge]),
            bias=float(curves.grouping[arm, edge]),
        )

    def ends(self, arm: int, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of one arm at every edge: those of `end`, at once.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        tuple of (ndarray, ndarray)
            Lower and upper ends, each of shape (J + 1,).
        """
        curves = self.curves
        normal = quantiles(level, 0.0)[0]
        middle = curves.survival[arm, 1:]
        slack = curves.slack[arm, 1:]
        noise = np.maximum(np.diagonal(curves.noise[arm, :, arm])[1:], 0.0)
        several = normal + self.heavy * curves.heaviness[arm, 1:] * (normal**3 - 3 * normal) / 8
        heavy = np.clip(several, normal, max(quantiles(level, 1.0)[1], normal))
        sizes = self._sizes(arm)[1:]
        lead = 1 + normal**2 / sizes
        half = middle + normal**2 / sizes / 2
        root = np.sqrt(np.maximum(half**2 - lead * (middle**2 - heavy**2 * noise), 0.0))
        down = middle - (half - root) / lead
        up = (half + root) / lead - middle
        off = curves.grouping[arm, 1:]
        low = np.clip(middle - biased_half_widths(down, off, level) - slack, 0.0, 1.0)
        high = np.clip(middle + biased_half_widths(up, off, level), 0.0, 1.0)
        high[-1] *= not self.whole
        return np.append(1.0, low), np.append(1.0, high)

    def whole_times(self, time: float, up: bool) -> float:
        """Return the next multiple of the unit at whose multiples alone curves may fall.

        Parameters
        ----------
        time : float
            A time.
        up : bool
            Whether the next multiple above, or below.

        Returns
        -------
        float
            The multiple; the time itself without such a unit.
        """
        if not self.ties or isinf(time):
            return time
        units = time / self.ties
        return float(ceil(units - ROUNDING) if up else floor(units + ROUNDING)) * self.ties

    def _sizes(self, arm: int) -> Floats:
        """Return the numbers of people without censoring whose shares would err as much, (J + 1,).

        Each lies between what those under observation last and all of them are worth.
        """
        people = np.maximum(self.curves.worth[arm], 1.0)
        survival = np.clip(self.curves.survival[arm], 0.0, 1.0)
        variance = np.diagonal(self.curves.sampling[arm])
        sizes = np.where(variance > 0, survival * (1 - survival) / np.where(variance > 0, variance, 1.0), inf)
        return np.clip(sizes, np.append(people[0], np.minimum.accumulate(people)), people[0])

    def gap(self, place: int) -> Gap:
        """Return the difference of treated and control at a time of the grid.

        Parameters
        ----------
        place : int
            Position of the time in the grid; time 0 has 0.

        Returns
        -------
        Gap
            The difference, with its error.
        """
        point = place * self.cut
        apart = 1.0 if self.whole else APART
        return Gap(self.at(1, place), self.at(0, place), float(self.curves.noise[0, point, 1, point]), apart)

    @property
    def _weights(self) -> Floats:
        """The weights (J + 1,) that a restricted mean gives to the curve."""
        return _weights(self.edges, 0.0 if self.convention == "end" else 0.5)

    @property
    def _thinning_weights(self) -> Floats:
        """The weights (J + 1,) that say how far a restricted mean moves without every other point of the curve."""
        weights = np.zeros(len(self.edges))
        if self.convention != "end":
            every_other = np.unique([*range(0, len(self.edges), 2), len(self.edges) - 1])
            weights += self._weights
            weights[every_other] -= _weights(self.edges[every_other], 0.5)
        return weights

    def area(self, arm: int) -> Area:
        """Return the restricted mean of one arm.

        Parameters
        ----------
        arm : {0, 1}
            0 for the controls, 1 for the treated.

        Returns
        -------
        Area
            Mean time free of the event up to the last edge, with its error.
        """
        weights = self._weights
        variance = float(weights @ self.curves.sampling[arm] @ weights)
        noise = max(float(weights @ self.curves.noise[arm, :, arm] @ weights), 0.0)
        rest = float(weights @ self.curves.slack[arm]) / 2
        estimate = float(weights @ self.curves.shown[arm])
        middle = float(weights @ self.curves.survival[arm])
        bias = float(weights @ self.curves.grouping[arm])
        curvature = float(self._thinning_weights @ self.curves.shown[arm])
        steps = self.ties * max(1 - float(self.curves.shown[arm, -1]), 0.0) / 2
        limits = (0.0, float(self.edges[-1]))
        return Area(
            estimate=estimate,
            middle=middle - rest,
            variance=variance,
            noise=noise,
            limits=limits,
            heavy=self.heavy,
            slack=rest,
            bias=bias,
            curvature=curvature,
            steps=steps,
        )

    def area_gap(self) -> Area:
        """Return the difference of the restricted means, treated minus control.

        Returns
        -------
        Area
            The difference, with its error.
        """
        treated = self.area(1)
        control = self.area(0)
        rest = treated.slack + control.slack
        end = float(self.edges[-1])
        return Area(
            estimate=treated.estimate - control.estimate,
            middle=treated.middle - control.middle,
            variance=treated.variance + control.variance,
            noise=max(treated.noise + control.noise - 2 * self._shared, 0.0),
            limits=(-end, end),
            heavy=self.heavy,
            slack=rest,
            bias=joint_bias(treated.bias, control.bias),
            curvature=treated.curvature - control.curvature,
            steps=treated.steps - control.steps,
        )

    def area_ratio(self) -> AreaRatio:
        """Return the ratio of the restricted means, treated over control.

        Returns
        -------
        AreaRatio
            The ratio, with its error.
        """
        return AreaRatio(self.area(1), self.area(0), self._shared)

    @property
    def _shared(self) -> float:
        """The covariance of the noise of both restricted means."""
        return float(self._weights @ self.curves.noise[1, :, 0] @ self._weights)

    def band_level(self, level: float, arms: tuple[int, ...]) -> float:
        """Return the level of each interval at which those of a curve, or of a difference, hold together.

        Parameters
        ----------
        level : float
            Confidence level of the band, in (0, 1).
        arms : tuple of int
            (0,) or (1,) for the curve of an arm, (0, 1) for the difference.

        Returns
        -------
        float
            Level of each interval, at least `level`.
        """
        total = sum(self.curves.sampling[arm] + self.curves.noise[arm, :, arm] for arm in arms)
        if len(arms) == 2:
            cross = self.curves.noise[0, :, 1]
            total = total - cross - cross.T
        # Time 0 is known without an error.
        covariance = np.asarray(total)[self.cut :: self.cut, self.cut :: self.cut]
        wide = simultaneous(np.eye(len(covariance)), covariance, level)
        return min(max(level, 1 - 2 * float(ndtr(-wide))), 1 - 2.0**-53)


def _weights(edges: Floats, later: float) -> Floats:
    """Return the weights of an integral of a curve known at these times; `later` is the part of a cell's end."""
    lengths = np.diff(edges)
    weights = np.zeros(len(edges))
    weights[:-1] += (1 - later) * lengths
    weights[1:] += later * lengths
    return weights


@lru_cache(maxsize=32)
def answers_of(tables: NoisyTables, cause: int | None = None) -> SurvivalAnswers:
    """Return everything that the tables say of survival, or of not having had the event of one cause."""
    blocks = blocks_of(tables)
    of = blocks if cause is None else Incidence(blocks, cause)
    edges = np.array(tables.edges)
    ties = recorded_unit(tables)
    if ties:
        # Curves are those of the last multiple of the unit.
        edges = np.floor(edges / ties + ROUNDING) * ties
    lengths = np.maximum(np.diff(edges), ties)
    if tables.shares:
        curves = standardised(blocks, np.array(tables.shares), of=of, lengths=lengths)
    else:
        people = blocks.counts.reshape(len(tables.numbers) // 2, -1).sum(axis=1)
        shares = np.clip(people, 0.0, None)
        several = len(shares) > 1
        curves = standardised(
            blocks,
            shares / max(shares.sum(), LEAST_PEOPLE),
            per_person=1 / tables.totals[0] if several else 0.0,
            of=of,
            lengths=lengths,
        )
    return SurvivalAnswers(
        curves=curves,
        edges=edges,
        convention=tables.convention,
        heavy=tables.heavy,
        cut=tables.cut,
        ties=ties,
    )
