"""The public grid on which every released number lies."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.errors import ParameterError

DEFAULT_BITS = 24  # a step of 2**-24 scales adds less than 1e-14 of the noise's variance


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of `step`; the step must be chosen from public numbers only."""

    step: Fraction

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise ParameterError(
                "CV-P107",
                "the step of a grid must be positive",
                expected="step > 0, and a scale > 0 where the step is derived from one",
                got=f"step={self.step}",
                fix="use Grid.for_scale(scale) with the public scale of the noise",
            )

    @classmethod
    def for_scale(cls, scale: Fraction, bits: int = DEFAULT_BITS) -> Grid:
        """Return the grid whose step is the largest power of two that is at most scale / 2**bits."""
        if scale <= 0:
            return cls(Fraction(scale))
        target = Fraction(scale) / Fraction(2) ** bits
        power = target.numerator.bit_length() - target.denominator.bit_length()
        step = _power_of_two(power)
        return cls(step if step <= target else step / 2)

    def units(self, value: Fraction) -> int:
        """Return the grid point nearest to `value`, counted in steps; halves go up."""
        return (value / self.step + Fraction(1, 2)).__floor__()

    def value(self, units: int) -> Fraction:
        """Return the number that lies `units` steps from zero."""
        return units * self.step


def _power_of_two(power: int) -> Fraction:
    return Fraction(1 << power) if power >= 0 else Fraction(1, 1 << -power)
