"""Staircase noise: the least variance a pure epsilon allows for one number. Proof: staircase.proof.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb, ctx

from counterveil.mechanisms.noise import (
    HEAD_BITS,
    TABLE_PRECISION,
    Cell,
    PureNoise,
    Reals,
    Table,
    blind_cell,
    exact_ball,
    head_floor,
    linear_cell,
)
from counterveil.privacy import PureEvent

GAMMA_BITS = 48  # any gamma in (0, 1) is private; this many bits reach the optimum for every purpose
MOST_STEPS = 2**15  # cells of a table; a tail beyond them goes to the exact path
DEEPEST_HEAD = 2**28  # below it a head has too few bits left for a useful cell


@dataclass(frozen=True, slots=True)
class StaircaseDistribution:
    """Density a b^j on [j - 1 + gamma, j + gamma) for |x|, b = e^-epsilon, for sensitivity one."""

    epsilon: Fraction
    gamma: Fraction

    @property
    def variance(self) -> float:
        """The variance."""
        epsilon, g = float(self.epsilon), float(self.gamma)
        b, fall = math.exp(-epsilon), -math.expm1(-epsilon)
        s0, s1, s2 = 1 / fall, b / fall**2, b * (1 + b) / fall**3
        steps = b * (s2 + (2 * g + 1) * s1 + (g * g + g + 1 / 3) * s0)
        return 2 * self._height * (g**3 / 3 + steps)

    @property
    def _height(self) -> float:
        """The density at zero."""
        epsilon = float(self.epsilon)
        fall = -math.expm1(-epsilon)
        return fall / (2 * (float(self.gamma) * fall + math.exp(-epsilon)))

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball of the quantile, from the two ends of u since a ball may cross a step."""
        epsilon, gamma = exact_ball(self.epsilon), exact_ball(self.gamma)
        first = _first_tail(epsilon, gamma)
        if u.is_exact():
            return _quantile_at(u, epsilon, gamma, first)
        # The quantile falls, so its values at the ends enclose all others.
        ends = (_quantile_at(end, epsilon, gamma, first) for end in (u.lower(), u.upper()))
        return next(ends).union(next(ends))

    def table(self) -> Table:
        """Return a newly built table: one cell for each step, a blind cell where two steps meet."""
        cells: list[Cell] = []
        with ctx.workprec(TABLE_PRECISION):
            epsilon, gamma = exact_ball(self.epsilon), exact_ball(self.gamma)
            unit = arb(2) ** -HEAD_BITS
            # Tail at the near end of the step, and its loss.
            upper, fall = arb(1), 1 - _first_tail(epsilon, gamma)
            near, length, stop = arb(0), gamma, 2**HEAD_BITS
            for step in range(MOST_STEPS):
                lower = upper - fall
                edge = head_floor(lower)
                if edge is None or edge + 1 >= stop or stop <= DEEPEST_HEAD:
                    break  # what lies below is left to the exact path
                start, slope = max(edge + 1, DEEPEST_HEAD), -length / fall
                value = near + slope * (start * unit - upper)
                cells.append(linear_cell(start, stop, value, slope * unit))
                if edge >= DEEPEST_HEAD:
                    cells.append(blind_cell(edge))
                near, length, stop = gamma + step, arb(1), edge
                upper = lower
                fall = -upper * (-epsilon).expm1()
        return Table.of(cells)

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        step = np.maximum(np.floor(np.abs(x) - float(self.gamma)) + 1, 0)
        return np.asarray(math.log(self._height) - step * float(self.epsilon))

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        size, gamma, epsilon = np.abs(x), float(self.gamma), float(self.epsilon)
        b, fall, a = math.exp(-epsilon), -math.expm1(-epsilon), self._height
        after = np.asarray(size - gamma)
        step = np.floor(after, out=np.empty_like(after))
        np.maximum(step, 0, out=step)
        # In place, since intervals ask for many points: (1 - fall (after - step)) a b/fall e^{-epsilon step}.
        after -= step
        after *= -fall
        after += 1
        step *= -epsilon
        after *= np.exp(step, out=step)
        after *= a * b / fall
        tail = np.where(size < gamma, 0.5 - a * size, after)
        return np.where(x < 0, tail, 1 - tail)

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        gamma, epsilon, a = float(self.gamma), float(self.epsilon), self._height
        fall = -math.expm1(-epsilon)
        first = 2 * a * math.exp(-epsilon) / fall
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.floor(np.maximum(np.log(first / u), 0) / epsilon)
            beyond = gamma + step + (1 - u / (first * np.exp(-epsilon * step))) / fall
        beyond = np.where(u > 0, beyond, np.inf)
        return np.where(u >= first, (1 - u) / (2 * a), beyond)

    def breakpoints(self, low: float, high: float, most: int) -> Reals | None:
        """Return the jumps of the density in [low, high], +-(gamma + j); None where they are more than `most`."""
        if not (math.isfinite(low) and math.isfinite(high)):
            return None
        gamma = float(self.gamma)
        # From which step to which, on the left in sizes.
        right = max(0, math.ceil(low - gamma)), math.floor(high - gamma) + 1
        left = max(0, math.ceil(-high - gamma)), math.floor(-low - gamma) + 1
        if max(right[1] - right[0], 0) + max(left[1] - left[0], 0) > most:
            return None
        return np.concatenate([-(gamma + np.arange(*left))[::-1], gamma + np.arange(*right)])


def _quantile_at(u: arb, epsilon: arb, gamma: arb, first: arb) -> arb:
    """Return a ball of the quantile at a narrow u; not finite where the step is not certain."""
    if u >= first:
        return gamma * (1 - u) / (1 - first)
    if not u > 0:
        return arb.nan()
    step = ((first / u).log() / epsilon).floor().unique_fmpz()
    if step is None or step < 0:
        return arb.nan()
    within = u / (first * (-epsilon * step).exp())
    return gamma + step - (1 - within) / (-epsilon).expm1()


def _first_tail(epsilon: arb, gamma: arb) -> arb:
    """Return a ball of P(|X| > gamma) = b / (gamma + (1 - gamma) b), b = e^-epsilon."""
    b = (-epsilon).exp()
    return b / (gamma + (1 - gamma) * b)


class Staircase(PureNoise):
    """Staircase noise: epsilon-DP for one number, with the smallest variance that a pure epsilon allows.

    The density falls by the factor exp(-epsilon) once per sensitivity; the place of the steps minimises the
    variance.

    Parameters
    ----------
    sensitivity : number
        Largest change of the number when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the number when one person's data change.
    epsilon : Fraction
        Privacy loss of one release.

    Raises
    ------
    CounterveilError
        A sensitivity or an epsilon that is not positive (CV-P100, CV-P101).

    Notes
    -----
    Proof: ``mechanisms/staircase.proof.md``.

    References
    ----------
    .. [1] Geng, Q., Kairouz, P., Oh, S. and Viswanath, P. (2015). The staircase mechanism in differential
    privacy. IEEE J.
       Sel. Top. Signal Process. 9, 1176-1184.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from counterveil.mechanisms import Grid, Laplace, SeededNoise, Staircase
    >>> noise = Staircase(sensitivity=1, epsilon=2)
    >>> noise.variance < Laplace(1, 2).variance
    True
    >>> released = noise.release(Fraction(1, 3), Grid.for_scale(noise.scale), SeededNoise(1))
    >>> type(released).__name__
    'Fraction'
    """

    __slots__ = ()
    name: ClassVar[str] = "staircase"

    @property
    def unit(self) -> StaircaseDistribution:
        """The distribution for sensitivity one."""
        return _unit(self.epsilon)

    @property
    def scale(self) -> Fraction:
        """The sensitivity: the width of a step."""
        return self.sensitivity

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon)


@lru_cache(maxsize=256)
def _unit(epsilon: Fraction) -> StaircaseDistribution:
    return StaircaseDistribution(epsilon, least_variance_gamma(epsilon))


@lru_cache(maxsize=256)
def least_variance_gamma(epsilon: Fraction) -> Fraction:
    """Return the gamma of least variance, to 2**-48 and inside (0, 1).

    Geng and Viswanath (2014): -b/(1-b) + cbrt(b - 2b^2 + 2b^4 - b^5) / (cbrt(2) (1-b)^2), b = e^-epsilon.
    """
    # The floor is certain or there is none: the higher precision is for epsilons near zero.
    scaled = _gamma_units(epsilon, TABLE_PRECISION) or _gamma_units(epsilon, TABLE_PRECISION + 8 * GAMMA_BITS)
    return Fraction(min(max(scaled or 0, 1), 2**GAMMA_BITS - 1), 2**GAMMA_BITS)


def _gamma_units(epsilon: Fraction, precision: int) -> int | None:
    """Return the whole steps of 2**-48 in the best gamma, None where this precision does not tell."""
    with ctx.workprec(precision):
        minus = -exact_ball(epsilon)
        b, fall = minus.exp(), -minus.expm1()
        inner = b * fall**3 * (1 + b) / 2  # b - 2b^2 + 2b^4 - b^5 = b (1-b)^3 (1+b)
        gamma = -b / fall + inner.root(3) / fall**2
        scaled = (gamma * 2**GAMMA_BITS).floor().unique_fmpz()
    return None if scaled is None else int(scaled)
