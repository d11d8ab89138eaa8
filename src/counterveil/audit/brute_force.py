"""Sensitivity by trying everything: the largest change over all small data sets, with its witness.

Works with exact `Fraction`s as well as floats; with exact numbers the comparison with a claim is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

from counterveil.audit.refusals import nothing_to_audit
from counterveil.audit.universe import Universe

Dataset: TypeAlias = tuple[Any, ...]
Statistic: TypeAlias = Callable[[Dataset], Any]
Distance: TypeAlias = Callable[[Any, Any], Any]

# Sums of floats that should be equal differ in their last digits.
_FLOAT_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Change:
    """The largest change found, the pair where it was found, and how it compares with a claimed bound."""

    largest: Any
    first: Dataset
    second: Dataset
    claimed: Any
    comparisons: int

    @property
    def violated(self) -> bool:
        """Whether a change exceeds the claimed bound (exactly, when both are rationals)."""
        if self.claimed is None:
            return False
        if isinstance(self.largest, Rational) and isinstance(self.claimed, Rational):
            return self.largest > self.claimed
        return float(self.largest) > float(self.claimed) * (1 + _FLOAT_SLACK)

    @property
    def attained(self) -> Any:
        """The share of the claimed bound that is reached: 1 means the bound is tight."""
        if self.claimed is None:
            return None
        return _ratio(self.largest, self.claimed)

    def __str__(self) -> str:
        claim = ""
        if self.claimed is not None:
            word = "VIOLATED" if self.violated else "holds"
            claim = f"; claimed {self.claimed}, {word}, attained {float(self.attained):.6g}"
        return (
            f"largest change {self.largest} in {self.comparisons} comparisons{claim}\n"
            f"  between {self.first}\n  and     {self.second}"
        )


def absolute(a: Any, b: Any) -> Any:
    """Return |a - b|, the distance of two numbers."""
    return abs(a - b)


def l1(a: Any, b: Any) -> Any:
    """Return the sum of the coordinates' distances."""
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def l2(a: Any, b: Any) -> float:
    """Return the Euclidean distance."""
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def largest_change(
    statistic: Statistic, universe: Universe, *, claimed: Any = None, distance: Distance = absolute
) -> Change:
    """Return the global sensitivity of `statistic` over `universe`, held against `claimed` if given."""
    return _largest(
        ((distance(a, b), first, second) for first, a, second, b in _compare(statistic, universe)), claimed
    )


def check_local_bound(
    statistic: Statistic, bound: Statistic, universe: Universe, *, distance: Distance = absolute
) -> Change:
    """Return the largest ratio of a change to the bound claimed for its first data set; above 1 it fails."""
    bounds = _Memory(bound)
    ratios = (
        (_ratio(distance(a, b), bounds(first)), first, second)
        for first, a, second, b in _compare(statistic, universe)
    )
    return _largest(ratios, 1)


def check_smooth_bound(bound: Statistic, beta: float | Fraction, universe: Universe) -> Change:
    """Return the largest |ln S(D) - ln S(D')| between neighbours, held against `beta`."""
    steps = ((_log_step(a, b), first, second) for first, a, second, b in _compare(bound, universe))
    return _largest(steps, float(beta))


class _Memory:
    """A statistic that is computed once for each data set."""

    def __init__(self, statistic: Statistic) -> None:
        self._statistic = statistic
        self._known: dict[Dataset, Any] = {}

    def __call__(self, dataset: Dataset) -> Any:
        if dataset not in self._known:
            self._known[dataset] = self._statistic(dataset)
        return self._known[dataset]


def _compare(statistic: Statistic, universe: Universe) -> Iterator[tuple[Dataset, Any, Dataset, Any]]:
    """Yield every ordered pair of neighbours with the statistic on both."""
    remembered = _Memory(statistic)
    for first in universe.datasets():
        for second in universe.neighbours(first):
            yield first, remembered(first), second, remembered(second)


def _largest(changes: Iterator[tuple[Any, Dataset, Dataset]], claimed: Any) -> Change:
    best: tuple[Any, Dataset, Dataset] = (0, (), ())
    comparisons = 0
    for change, first, second in changes:
        comparisons += 1
        # A change that is not a number must not vanish in a comparison: it counts as unbounded.
        size = math.inf if math.isnan(change) else change
        if size > best[0] or comparisons == 1:
            best = (size, first, second)
    if comparisons == 0:
        raise nothing_to_audit("a universe without neighbours")
    return Change(*best, claimed=claimed, comparisons=comparisons)


def _ratio(change: Any, bound: Any) -> Any:
    if bound == 0:
        return 0 if change == 0 else math.inf
    exact = isinstance(change, Rational) and isinstance(bound, Rational)
    return Fraction(change) / Fraction(bound) if exact else float(change) / float(bound)


def _log_step(a: Any, b: Any) -> float:
    if a == b:
        return 0.0
    return abs(math.log(a) - math.log(b)) if a > 0 and b > 0 else math.inf
