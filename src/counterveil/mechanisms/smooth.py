"""The parts that mechanisms for smooth sensitivity share. Why a zero is harmless: lomax.proof.md."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from counterveil.errors import ParameterError
from counterveil.mechanisms.grid import Grid
from counterveil.mechanisms.noise import ScaledNoise, UnitLaw
from counterveil.mechanisms.sampler import release_value
from counterveil.mechanisms.source import BitSource
from counterveil.privacy import Number, exact

CALIBRATION_PRECISION = 192
CALIBRATION_BITS = 48  # calibrated constants are rounded down to this many binary places


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


def scaled(law: UnitLaw, scale: Fraction) -> ScaledNoise:
    """Return the noise at this scale, or raise CV-P112; callers pass public numbers."""
    if scale <= 0:
        raise ParameterError(
            "CV-P112",
            "a law of noise needs a positive smooth sensitivity",
            expected="smooth_sensitivity > 0",
            got=f"scale={scale}",
            fix="pass the released upper bound of the smooth sensitivity",
        )
    return ScaledNoise(law, scale)


def release_smoothly(
    law: UnitLaw, scale: Fraction, value: Fraction, grid: Grid, source: BitSource
) -> Fraction:
    """Return the grid point nearest to value + noise; a scale of zero adds none, and nothing is refused.

    Bits are read in every case, so that a seeded stream does not tell a zero scale from another.
    """
    return release_value(law, max(scale, Fraction(0)), value, grid, source)
