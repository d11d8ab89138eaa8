"""Strata: counts and sums of outcomes, stratum by stratum and arm by arm; all that exact matching needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The occupied strata of a public layout, in ascending order of their place in it.

    Outcomes are whole steps. `public` counts all strata of the layout, occupied or not. Sums are exact;
    a square is the double nearest to an exact sum of squares. A prefix is the sum over an arm's first
    (size of the other arm) mod (its own size) rows, in the public order of the rows; 0 where the other arm is
    empty, None where nobody asked for it.
    """

    public: int
    place: Integers
    treated: Integers
    control: Integers
    treated_sum: Integers
    control_sum: Integers
    treated_square: Floats
    control_square: Floats
    treated_prefix: Integers | None = None
    control_prefix: Integers | None = None

    @property
    def rows(self) -> int:
        """The number of rows in all strata together."""
        return int(self.treated.sum() + self.control.sum())
