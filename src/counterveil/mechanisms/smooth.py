"""The parts that mechanisms for smooth sensitivity share. Why a zero is harmless: lomax.proof.md."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from counterveil.errors import ParameterError, Refusal
from counterveil.mechanisms.laplace import LaplaceDistribution
from counterveil.mechanisms.noise import ScaledNoise, UnitDistribution
from counterveil.mechanisms.sampler import exact_ball, release_value
from counterveil.mechanisms.source import BitSource, Grid, positive_epsilon
from counterveil.privacy import ApproximateEvent, Budget, Event, Number, exact

CALIBRATION_PRECISION = 192
CALIBRATION_BITS = 48  # calibrated constants are rounded down to this many binary places


class SmoothSensitivityMechanism(ABC):
    """Additive noise whose scale follows a smooth bound of the local sensitivity: the bound over `divisor`."""

    __slots__ = ()

    # The rate at which the smooth bound may grow from one data set to a neighbour, in logs.
    smoothness: Fraction

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the mechanism in records."""

    @property
    @abstractmethod
    def unit(self) -> UnitDistribution:
        """The distribution of scale one."""

    @property
    @abstractmethod
    def divisor(self) -> Fraction:
        """By what a smooth sensitivity is divided to give the scale of the noise."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs."""

    @abstractmethod
    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""

    def distribution(self, smooth_sensitivity: Fraction) -> ScaledNoise:
        """Return the noise at a positive smooth sensitivity, or raise CV-P112; only as public as that number is."""
        if smooth_sensitivity <= 0:
            raise ParameterError(
                "CV-P112",
                "a noise distribution needs a positive smooth sensitivity",
                expected="smooth_sensitivity > 0",
                got=f"scale={smooth_sensitivity / self.divisor}",
                fix="pass the released upper bound of the smooth sensitivity",
            )
        return ScaledNoise(self.unit, smooth_sensitivity / self.divisor)

    def release(
        self, value: Fraction, smooth_sensitivity: Fraction, grid: Grid, source: BitSource
    ) -> Fraction:
        """Return the grid point nearest to value + noise; the grid must not depend on private numbers.

        A smooth sensitivity of zero adds no noise, and nothing is refused. Bits are read in every case, so that a
        seeded stream does not tell a zero scale from another.
        """
        scale = max(smooth_sensitivity / self.divisor, Fraction(0))
        return release_value(self.unit, scale, value, grid, source)


def checked_smoothness(value: Number, epsilon: Fraction, factor: Fraction = Fraction(1)) -> Fraction:
    """Return the smoothness as an exact rational with 0 < factor * smoothness < epsilon, or raise CV-P103."""
    smoothness = exact(value, "smoothness")
    if not 0 < factor * smoothness < epsilon:
        raise smoothness_error(smoothness, epsilon)
    return smoothness


smoothness_error = Refusal(
    "CV-P103",
    "the smoothness leaves no epsilon for the noise",
    expected="0 < smoothness, well below epsilon (Student-t: max(1, df) * smoothness < epsilon)",
    got="smoothness={smoothness}, epsilon={epsilon}",
    fix="use a smoothness of about epsilon / 10, chosen without looking at the data",
)


def round_down(ball: arb) -> Fraction:
    """Return a rational of 48 binary places that is not above any point of the ball."""
    return Fraction(int((ball.lower() * 2**CALIBRATION_BITS).floor().lower().fmpz()), 2**CALIBRATION_BITS)


# Laplace noise with a smooth sensitivity: (epsilon, delta). Proof: smooth_laplace.proof.md.


# Proof: smooth_laplace.proof.md


@dataclass(frozen=True, slots=True)
class SmoothLaplace(SmoothSensitivityMechanism):
    """Noise (S / rate) X with X of density exp(-|x|) / 2."""

    epsilon: Fraction
    delta: Fraction
    smoothness: Fraction

    def __init__(self, epsilon: Number, delta: Number, smoothness: Number) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        object.__setattr__(self, "delta", Budget(self.epsilon, delta).delta)
        object.__setattr__(self, "smoothness", checked_smoothness(smoothness, self.epsilon))
        if self.delta <= 0 or self.rate <= 0:
            raise smoothness_error(self.smoothness, self.epsilon)

    @property
    def name(self) -> str:
        """The name of the mechanism in records."""
        return "smooth_laplace"

    @property
    def rate(self) -> Fraction:
        """The largest S / scale that the claim allows, rounded down."""
        return largest_rate(self.epsilon, self.delta, self.smoothness)

    @property
    def unit(self) -> LaplaceDistribution:
        """The distribution of scale one."""
        return LaplaceDistribution()

    @property
    def divisor(self) -> Fraction:
        """The rate: noise is S / rate times a unit draw."""
        return self.rate

    @property
    def event(self) -> ApproximateEvent:
        """What one release costs."""
        return ApproximateEvent(self.epsilon, self.delta)

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""
        return {
            "mechanism": self.name,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "smoothness": str(self.smoothness),
        }


@lru_cache(maxsize=256)
def largest_rate(epsilon: Fraction, delta: Fraction, smoothness: Fraction) -> Fraction:
    """Return the largest rate that satisfies the three inequalities of the claim, rounded down."""
    if delta <= 0:
        return Fraction(0)
    with ctx.workprec(CALIBRATION_PRECISION):
        eps, g = exact_ball(epsilon), exact_ball(smoothness)
        # What the widening of the scale may cost before its tail is as thin as delta.
        widening = g.expm1() * (-(-g).expm1() / exact_ball(delta)).log() - g
        bounds = [eps, (eps - g) * g.exp(), eps - _not_negative(widening)]
        return min(round_down(bound) for bound in bounds)


def _not_negative(ball: arb) -> arb:
    """Return the ball, or zero where it is surely below."""
    return arb(0) if ball < 0 else ball
