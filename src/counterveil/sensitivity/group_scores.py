"""How far one record can move counts, sums and squares of scores in public cells. Proof: `group_scores.proof.md`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.penalised_fit import sqrt_up


@dataclass(frozen=True, slots=True)
class CellWeights:
    """Weights of a cell's count, of its sum of squares and of `further` sums beside its sum of scores."""

    size: Fraction
    square: Fraction
    further: tuple[Fraction, ...] = ()

    @property
    def euclidean(self) -> Fraction:
        """Largest Euclidean length of a change of (a N, S, k Q, b D, ...) over all cells; needs a^2 + k^2 <= 1."""
        more = sum((one**2 for one in self.further), Fraction(0))
        return Fraction(2) if not more else sqrt_up(4 + 4 * more)

    @property
    def absolute(self) -> Fraction:
        """Largest sum of absolute changes of the same numbers; needs k <= 1/2."""
        return 2 * (1 + self.size + self.square + sum(self.further, Fraction(0)))


# Squares of the first two add up to one: counts and squares then come free with the sums, in Euclidean length.
EUCLIDEAN = CellWeights(Fraction(3, 5), Fraction(4, 5))
# For noise that follows the sum of absolute changes every weight is paid for.
ABSOLUTE = CellWeights(Fraction(1, 4), Fraction(1, 4))
# With two further sums, of what the models leave of treatment and outcome.
EUCLIDEAN_MODELS = CellWeights(Fraction(3, 5), Fraction(4, 5), (Fraction(3, 10), Fraction(3, 10)))
ABSOLUTE_MODELS = CellWeights(Fraction(1, 5), Fraction(1, 5), (Fraction(1, 5), Fraction(1, 5)))

# A histogram: one record leaves a cell and enters another.
SPREAD_L2 = sqrt_up(Fraction(2))
SPREAD_L1 = Fraction(2)
