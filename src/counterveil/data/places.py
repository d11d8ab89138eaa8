"""Rows divided into two parts by their public places; each part is a carrier of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterveil.data.passes import Pass, PlacedBlock, PlacedCarrier, Sums
from counterveil.data.study import Study
from counterveil.numerics.public_choices import in_first_part, last_of_first_part


@dataclass(frozen=True, slots=True, eq=False)
class PartByPlace:
    """The rows of one of two parts, in which a row is by its place alone; made by `two_parts_by_place`."""

    whole: PlacedCarrier
    rows: int
    last: int  # the largest mixed bits of a place in the first part
    first_part: bool

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        return self.whole.study

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:  # noqa: ARG002
        """Return a pass's sums over the part's rows; all rows are read."""

        def own(block: PlacedBlock) -> Sums | None:
            first = in_first_part(block.first, block.rows, self.last)
            chosen = np.flatnonzero(first == self.first_part)
            return passed(block.table.take(chosen)) if len(chosen) else None

        return self.whole.run_placed(own)


def two_parts_by_place(whole: PlacedCarrier, first: int) -> tuple[PartByPlace, PartByPlace]:
    """Return the parts that `public_choices.two_parts` makes, the first with `first` rows; both have some."""
    last = last_of_first_part(whole.rows, first)
    return PartByPlace(whole, first, last, True), PartByPlace(whole, whole.rows - first, last, False)
