"""Laplace noise with a smooth sensitivity: (epsilon, delta). Proof: smooth_laplace.proof.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from counterveil.mechanisms.checks import positive_epsilon
from counterveil.mechanisms.laplace import LaplaceLaw
from counterveil.mechanisms.sampler import exact_ball
from counterveil.mechanisms.smooth import (
    CALIBRATION_PRECISION,
    SmoothSensitivityMechanism,
    checked_smoothness,
    round_down,
    smoothness_error,
)
from counterveil.privacy import ApproximateEvent, Budget, Number


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
        """The name under which the mechanism is written down."""
        return "smooth_laplace"

    @property
    def rate(self) -> Fraction:
        """The largest S / scale that the claim allows, rounded down."""
        return largest_rate(self.epsilon, self.delta, self.smoothness)

    @property
    def unit(self) -> LaplaceLaw:
        """The law of scale one."""
        return LaplaceLaw()

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
