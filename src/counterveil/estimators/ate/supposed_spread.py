"""What is supposed of the spread of outcomes where noise is traded for balance; public, and no part of a promise."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

# Parts of the outcome's range: of its mean over the covariates, and of outcomes around that mean.
NUMBERS: Final = 1 / 8
YES_OR_NO: Final = 3 / 8


def supposed_spread(outcome_range: tuple[Fraction, Fraction]) -> float:
    """Return the spread that is supposed of outcomes, over the covariates and around them, as a part of their range.

    Outcomes declared from 0 to 1 are mostly yes or no, which spread as far as outcomes can. Others fill their range
    less. Too little supposed leaves imbalance that goes with outcomes and that no interval holds; too much makes
    weights, and noise, somewhat larger than they need to be.
    """
    low, high = outcome_range
    return YES_OR_NO if low == 0 and high == 1 else NUMBERS
