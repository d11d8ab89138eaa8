"""Student-t noise: pure epsilon with a smooth sensitivity. Proof: student.proof.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, arb_series, ctx

from counterveil.errors import ParameterError, shown
from counterveil.mechanisms.fast import Table, smooth_table
from counterveil.mechanisms.noise import Reals
from counterveil.mechanisms.smooth import (
    CALIBRATION_PRECISION,
    SmoothSensitivityMechanism,
    checked_smoothness,
    round_down,
    smoothness_error,
)
from counterveil.mechanisms.source import exact_ball, positive_epsilon, special
from counterveil.privacy import Number, PureEvent, exact

LEAST_DF, MOST_DF = Fraction(1, 10), Fraction(1000)
_FIRST_RADIUS = 1e-9  # of the guess; widened until the enclosure is proved
_WIDENINGS = 4
_NEWTON_STEPS = 12
_LEAST_FLOAT_TAIL = 1e-290
_HALVINGS = 64


@dataclass(frozen=True, slots=True)
class StudentDistribution:
    """Student's t with `df` degrees of freedom."""

    df: Fraction

    @property
    def variance(self) -> float:
        """The variance, infinite for at most two degrees of freedom."""
        return float(self.df / (self.df - 2)) if self.df > 2 else np.inf

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball of the quantile, by interval Newton steps on the tail; not finite if unproved."""
        if not u > 0:
            return arb.nan()
        guess = self._guess(u)
        radius = (abs(guess) + 1) * _FIRST_RADIUS + 2 * u.rad() / self._density(guess)
        for _ in range(_WIDENINGS):
            enclosure = self._contract(guess, radius, u)
            if enclosure is not None:
                return self._narrow(enclosure, u)
            radius = radius * 1024
        return arb.nan()

    def _narrow(self, enclosure: arb, u: arb) -> arb:
        """Return the enclosure after Newton steps that still shrink it."""
        for _ in range(_NEWTON_STEPS):
            refined = self._newton(enclosure.mid(), enclosure, u)
            if not refined.is_finite() or not refined.rad() < enclosure.rad() / 4:
                break
            enclosure = enclosure.intersection(refined) if enclosure.overlaps(refined) else refined
        return enclosure

    def _contract(self, guess: arb, radius: arb, u: arb) -> arb | None:
        """Return an enclosure of the quantile if the Newton map takes a ball about the guess into itself."""
        if not radius.is_finite():
            return None
        start = arb(guess, radius.upper())
        image = self._newton(guess, start, u)
        return image if image.is_finite() and start.contains_interior(image) else None

    def _newton(self, point: arb, where: arb, u: arb) -> arb:
        """Return point + (tail(point) - u) / density(where)."""
        return point + (self._tail(point) - u) / self._density(where)

    def _tail(self, x: arb) -> arb:
        """Return a ball of P(|T| > x); for x < 0 the continuation 2 - P(|T| > -x), which is analytic at 0."""
        if x < 0:
            return 2 - self._tail(-x)
        df, square = exact_ball(self.df), x * x
        if square < df:
            return 1 - (square / (df + square)).beta_lower(arb(0.5), df / 2, 1)
        return (df / (df + square)).beta_lower(df / 2, arb(0.5), 1)

    def _density(self, x: arb) -> arb:
        """Return a ball of the density of |T| at x."""
        df = exact_ball(self.df)
        return self._constant() * ((x * x / df).log1p() * (-(df + 1) / 2)).exp()

    def _constant(self) -> arb:
        """Return a ball of the density of |T| at zero."""
        half = exact_ball(self.df) / 2
        return 2 * (half + arb(0.5)).gamma() / (half.gamma() * (2 * half * arb.pi()).sqrt())

    def _guess(self, u: arb) -> arb:
        """Return a number near the quantile at the middle of u; nothing is claimed about it."""
        guess = float(self.upper_quantile(np.asarray(min(1.0, float(u.mid())))))
        if np.isfinite(guess) and u > _LEAST_FLOAT_TAIL:
            return arb(guess)
        # Beyond the range of float64: double until the tail is below u, then halve the bracket.
        low, high = arb(0), arb(1)
        while self._tail(high) > u:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = ((low + high) / 2).mid()
            low, high = (middle, high) if self._tail(middle) > u else (low, middle)
        return high

    def size_density(self, x: arb_series) -> arb_series:
        """Return the density of |T| as a power series."""
        df = exact_ball(self.df)
        return ((1 + x * x * (1 / df)).log() * (-(df + 1) / 2)).exp() * self._constant()

    def table(self) -> Table:
        """Return a newly built table."""
        return smooth_table(self)

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        df = float(self.df)
        constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
        return np.asarray(constant - (df + 1) / 2 * np.log1p(x * x / df))

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        return special("stdtr", float(self.df), x)

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        return -special("stdtrit", float(self.df), u / 2)

    def kinks(self, low: float, high: float, most: int) -> Reals:  # noqa: ARG002 - smooth everywhere
        """Return no points: the density is smooth everywhere."""
        return np.zeros(0)


@dataclass(frozen=True, slots=True)
class StudentT(SmoothSensitivityMechanism):
    """Noise (S / shift) T with T of `df` degrees of freedom and the largest shift the claim allows."""

    epsilon: Fraction
    smoothness: Fraction
    df: Fraction

    def __init__(self, epsilon: Number, smoothness: Number, df: Number = 4) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        object.__setattr__(self, "df", _checked_df(df))
        factor = max(Fraction(1), self.df)
        object.__setattr__(self, "smoothness", checked_smoothness(smoothness, self.epsilon, factor))
        if self.shift <= 0:
            raise smoothness_error(self.smoothness, self.epsilon)

    @property
    def name(self) -> str:
        """The name of the mechanism in records."""
        return "student"

    @property
    def shift(self) -> Fraction:
        """The largest move, in scales, that epsilon covers beside the change of scale; rounded down."""
        return largest_shift(self.epsilon, self.smoothness, self.df)

    @property
    def unit(self) -> StudentDistribution:
        """The distribution of scale one."""
        return StudentDistribution(self.df)

    @property
    def divisor(self) -> Fraction:
        """The shift: noise is S / shift times a unit draw."""
        return self.shift

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon)

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""
        return {
            "mechanism": self.name,
            "epsilon": str(self.epsilon),
            "smoothness": str(self.smoothness),
            "df": str(self.df),
        }


@lru_cache(maxsize=256)
def largest_shift(epsilon: Fraction, smoothness: Fraction, df: Fraction) -> Fraction:
    """Return the largest shift at which the three worst cases cost at most epsilon, rounded down."""
    with ctx.workprec(CALIBRATION_PRECISION):
        eps, g, d = exact_ball(epsilon), exact_ball(smoothness), exact_ball(df)
        squares = []
        for change, grow in ((arb(0), arb(1)), (g, (2 * g).exp()), (-g, arb(1))):
            # `change` is the log of the neighbour's scale over ours.
            ratio, dilation = (2 * (eps - change) / (d + 1)).exp(), (-2 * change).exp()
            squares.append(grow * d * (ratio - 1) * (ratio - dilation) / ratio)
        return min(round_down(square.nonnegative_part().sqrt()) for square in squares)


def _checked_df(value: Number) -> Fraction:
    """Return the degrees of freedom as an exact rational, or raise CV-P104."""
    df = exact(value, "df")
    if not LEAST_DF <= df <= MOST_DF:
        raise ParameterError(
            "CV-P104",
            "the degrees of freedom are out of range",
            expected=f"{LEAST_DF} <= df <= {MOST_DF}",
            got=f"df={shown(value)}",
            fix="use df=4, which is near the least variance at the usual smoothness",
        )
    return df
