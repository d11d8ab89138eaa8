"""Labels that many rows have, from a column whose labels nobody declared. Proof: stable_histogram.proof.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log
from typing import TypeVar

from counterveil.errors import refusal
from counterveil.mechanisms.laplace import Laplace
from counterveil.mechanisms.noise import BitSource, Grid, positive_epsilon
from counterveil.privacy import Number, exact

# A replaced row takes one from a count and adds one to another.
_CHANGE = Fraction(2)
_WHOLE = Grid(Fraction(1))
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class StableHistogram:
    """Counts of the labels that occur, with Laplace noise; those above a public threshold are shown.

    (epsilon, delta)-DP for labels that nobody declared.

    Parameters
    ----------
    epsilon : number
        Privacy loss, above 0.
    delta : number
        Above 0, at most epsilon / 4 and at most 1/4.

    Attributes
    ----------
    epsilon : Fraction
        Privacy loss.
    delta : Fraction
        Delta.

    Raises
    ------
    CounterveilError
        An epsilon that is not positive (CV-P101), or a delta out of range (CV-P724).

    Notes
    -----
    The noise has scale 2 / epsilon; the threshold is 1 + (2 / epsilon) ln(1 / (2 delta)), rounded up. Proof:
    ``mechanisms/stable_histogram.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import SeededNoise, StableHistogram
    >>> histogram = StableHistogram(epsilon=1, delta="1e-6")
    >>> histogram.threshold
    28
    >>> list(histogram.release({"A": 1000, "B": 1}, SeededNoise(1)))
    ['A']
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        object.__setattr__(self, "delta", exact(delta, "delta"))
        # The proof needs delta <= 1 - exp(-epsilon / 2), which is more than either of these.
        if not 0 < self.delta <= min(self.epsilon / 4, Fraction(1, 4)):
            raise refusal("CV-P724b", epsilon=float(self.epsilon), delta=float(self.delta))

    @property
    def scale(self) -> float:
        """The scale of the noise in every count."""
        return float(_CHANGE / self.epsilon)

    @property
    def threshold(self) -> int:
        """The largest noisy count that is not shown."""
        # Rounded up to a whole number, far beyond the rounding of the logarithm.
        return ceil(1 + self.scale * log(1 / (2 * float(self.delta))) + 1e-6)

    def release(self, counts: Mapping[_Key, int], source: BitSource) -> dict[_Key, int]:
        """Return the noisy counts above the threshold.

        Parameters
        ----------
        counts : mapping of label to int
            Numbers of rows of the labels that occur, and of no others.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        dict of label to int
            Noisy counts above `threshold`.
        """
        noise = Laplace(_CHANGE, self.epsilon).draw(len(counts), _WHOLE, source)
        noisy = {
            label: count + int(drawn) for (label, count), drawn in zip(counts.items(), noise, strict=True)
        }
        return {label: count for label, count in noisy.items() if count > self.threshold}
