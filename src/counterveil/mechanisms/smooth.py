"""The parts that mechanisms for smooth sensitivity share. Why a zero is harmless: lomax.proof.md."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from flint import arb

from counterveil.errors import ParameterError
from counterveil.mechanisms.grid import Grid
from counterveil.mechanisms.noise import ScaledNoise, UnitLaw
from counterveil.mechanisms.sampler import release_value
from counterveil.mechanisms.source import BitSource
from counterveil.privacy import Event, Number, exact

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
        """The name under which the mechanism is written down."""

    @property
    @abstractmethod
    def unit(self) -> UnitLaw:
        """The law of scale one."""

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

    def law(self, smooth_sensitivity: Fraction) -> ScaledNoise:
        """Return the noise at a positive smooth sensitivity, or raise CV-P112; only as public as that number is."""
        if smooth_sensitivity <= 0:
            raise ParameterError(
                "CV-P112",
                "a law of noise needs a positive smooth sensitivity",
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


def smoothness_error(smoothness: Fraction, epsilon: Fraction) -> ParameterError:
    """Return the refusal of a smoothness that leaves no room for noise."""
    return ParameterError(
        "CV-P103",
        "the smoothness leaves no room for noise at this epsilon",
        expected="0 < smoothness, well below epsilon (Student-t: max(1, df) * smoothness < epsilon)",
        got=f"smoothness={smoothness}, epsilon={epsilon}",
        fix="use a smoothness of about epsilon / 10, chosen without looking at the data",
    )


def round_down(ball: arb) -> Fraction:
    """Return a rational of 48 binary places that is not above any point of the ball."""
    return Fraction(int((ball.lower() * 2**CALIBRATION_BITS).floor().lower().fmpz()), 2**CALIBRATION_BITS)
