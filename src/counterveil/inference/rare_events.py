"""What few events add to a variance: with none in an arm its variance would be zero, and an interval of no length.

Lineage: Agresti and Caffo (2000), who add events to both arms; here they enter the variance alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from counterveil.inference.uncertainty import Uncertainty

Range = tuple[Fraction, Fraction] | tuple[float, float]


def rare_events(outcome_range: Range, sizes: Iterable[float]) -> float:
    """Return the variance of one more event in each arm, for outcomes from 0 to 1; zero for other outcomes.

    With three events in an arm of 300 intervals without it cover about 91 %, with it 95 %
    (`tests/unit/inference/test_rare_events.py` adds up all outcomes).
    """
    low, high = outcome_range
    return sum(1.0 / size**2 for size in sizes) if low == 0 and high == 1 else 0.0


def with_rare_events(known: Uncertainty, outcome_range: Range, sizes: Iterable[float]) -> Uncertainty:
    """Return the uncertainty of a difference with that variance, which its largest variance grows by too."""
    rare = rare_events(outcome_range, sizes)
    return replace(known, variance=known.variance + rare, variance_cap=known.variance_cap + rare)
