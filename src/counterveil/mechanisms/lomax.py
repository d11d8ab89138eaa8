"""Two-sided Lomax noise: pure epsilon with a smooth sensitivity. Why a zero is harmless: lomax.proof.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from flint import arb, arb_series, ctx

from counterveil.errors import refusal
from counterveil.mechanisms.noise import (
    BitSource,
    Described,
    Grid,
    Peaked,
    Reals,
    ScaledNoise,
    exact_ball,
    positive_epsilon,
    release_values,
)
from counterveil.privacy import Number, PureEvent, exact

CALIBRATION_PRECISION = 192
CALIBRATION_BITS = 48  # calibrated constants are rounded down to this many binary places


def checked_smoothness(value: Number, epsilon: Fraction) -> Fraction:
    """Return the smoothness as an exact rational with 0 < smoothness < epsilon, or raise CV-P103."""
    smoothness = exact(value, "smoothness")
    if not 0 < smoothness < epsilon:
        raise refusal("CV-P103", smoothness=smoothness, epsilon=epsilon)
    return smoothness


def round_down(ball: arb) -> Fraction:
    """Return a rational of 48 binary places that is not above any point of the ball."""
    return Fraction(int((ball.lower() * 2**CALIBRATION_BITS).floor().lower().fmpz()), 2**CALIBRATION_BITS)


# Proof: lomax.proof.md


@dataclass(frozen=True, slots=True)
class LomaxDistribution(Peaked):
    """Density (a - 1) / 2 (1 + |x|)^-a; `power` is a - 1, the power of the tail."""

    power: Fraction

    @property
    def variance(self) -> float:
        """The variance, infinite for a power of at most 2."""
        power = float(self.power)
        return 2 / ((power - 1) * (power - 2)) if power > 2 else np.inf

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball of u^(-1/power) - 1."""
        return (-u.log() / exact_ball(self.power)).expm1()

    def size_density(self, x: arb_series) -> arb_series:
        """Return power (1 + x)^-(power + 1) as a power series."""
        return ((1 + x).log() * -exact_ball(self.power + 1)).exp() * exact_ball(self.power)

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        power = float(self.power)
        return np.asarray(np.log(power / 2) - (power + 1) * np.log1p(np.abs(x)))

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        tail = 0.5 * np.exp(-float(self.power) * np.log1p(np.abs(x)))
        return np.where(x < 0, tail, 1 - tail)

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        with np.errstate(divide="ignore"):
            return np.expm1(-np.log(u) / float(self.power))


@dataclass(frozen=True, slots=True)
class Lomax(Described):
    """Two-sided Lomax noise: epsilon-DP with a smooth sensitivity.

    Noise (S / smoothness) X with X of density (alpha - 1) / 2 (1 + |x|)^-alpha, where S is a smooth upper
    bound on the local sensitivity: ln S changes by at most `smoothness` when one person's data change.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one release, above 0.
    smoothness : number
        Largest change of ln S, above 0 and below epsilon.

    Attributes
    ----------
    epsilon : Fraction
        Privacy loss of one release.
    smoothness : Fraction
        Largest change of ln S.

    Raises
    ------
    CounterveilError
        An epsilon that is not positive (CV-P101), or a smoothness that leaves no epsilon for the noise
        (CV-P103).

    Notes
    -----
    alpha is the largest power that the three inequalities of ``mechanisms/lomax.proof.md`` allow. A zero S
    adds no noise.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from counterveil.mechanisms import Grid, Lomax, SeededNoise
    >>> noise = Lomax.default(epsilon=1)
    >>> noise.smoothness
    Fraction(1, 10)
    >>> released = noise.release(Fraction(1, 3), Fraction(1, 100), Grid(Fraction(1, 2**30)), SeededNoise(1))
    >>> type(released).__name__
    'Fraction'
    """

    name: ClassVar[str] = "lomax"
    epsilon: Fraction
    smoothness: Fraction

    def __init__(self, epsilon: Number, smoothness: Number) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        object.__setattr__(self, "smoothness", checked_smoothness(smoothness, self.epsilon))
        if self.alpha <= 1:
            raise refusal("CV-P103", smoothness=self.smoothness, epsilon=self.epsilon)

    @classmethod
    def default(cls, epsilon: Number) -> Self:
        """Return the mechanism at the smoothness epsilon / 10.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one release, above 0.

        Returns
        -------
        Lomax
            The mechanism.

        Raises
        ------
        CounterveilError
            An epsilon that is not positive (CV-P101).
        """
        return cls(epsilon, positive_epsilon(epsilon) / 10)

    @property
    def alpha(self) -> Fraction:
        """The largest power of the density that the claim allows, rounded down."""
        return largest_alpha(self.epsilon, self.smoothness)

    @property
    def unit(self) -> LomaxDistribution:
        """The distribution of scale one."""
        return LomaxDistribution(self.alpha - 1)

    @property
    def event(self) -> PureEvent:
        """What one release costs."""
        return PureEvent(self.epsilon)

    def distribution(self, smooth_sensitivity: Fraction) -> ScaledNoise:
        """Return the noise at a smooth sensitivity; as public as that number is.

        Parameters
        ----------
        smooth_sensitivity : Fraction
            S, above 0, in units of the released number.

        Returns
        -------
        ScaledNoise
            Density, quantiles and variance of the noise.

        Raises
        ------
        CounterveilError
            A smooth sensitivity that is not positive (CV-P112).
        """
        if smooth_sensitivity <= 0:
            raise refusal("CV-P112", smooth_sensitivity=smooth_sensitivity / self.smoothness)
        return ScaledNoise(self.unit, smooth_sensitivity / self.smoothness)

    def release(
        self, value: Fraction, smooth_sensitivity: Fraction, grid: Grid, source: BitSource
    ) -> Fraction:
        """Return the grid point nearest to value plus noise; an exact draw.

        A smooth sensitivity of zero adds no noise, and nothing is refused. Bits are read in every case, so
        that a seeded stream does not tell a zero scale from another.

        Parameters
        ----------
        value : Fraction
            The number to release.
        smooth_sensitivity : Fraction
            S, in units of the released number.
        grid : Grid
            Grid of the released number; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        Fraction
            The released number.
        """
        scale = max(smooth_sensitivity / self.smoothness, Fraction(0))
        return release_values(self.unit, scale, [value], grid, source)[0]


@lru_cache(maxsize=256)
def largest_alpha(epsilon: Fraction, smoothness: Fraction) -> Fraction:
    """Return the largest alpha that satisfies the three inequalities of the claim, rounded down."""
    with ctx.workprec(CALIBRATION_PRECISION):
        eps, g = exact_ball(epsilon), exact_ball(smoothness)
        bounds = (eps / g.log1p(), 1 + eps / g, (eps - g) / (g * (-g).exp()).log1p())
        return min(round_down(bound) for bound in bounds)
