"""Whether rows fit a study, found out part by part; the verdict is that of reading them all at once."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from counterveil.data import encoding, fixed_point
from counterveil.data.cells import Column, Mask
from counterveil.data.domains import Binary, Range
from counterveil.data.facts import SMALLEST_ARM
from counterveil.data.labels import LabelIndex, index_of
from counterveil.data.missing import Fill
from counterveil.data.study import Study
from counterveil.data.wrong_data import (
    constant_treatment,
    empty_arm,
    empty_table,
    not_binary,
    small_arm,
    undeclared_category,
)
from counterveil.errors import DataError
from counterveil.privacy import exact


class Stage(IntEnum):
    """The order in which faults are named where there are several."""

    MISSING = 0
    VALUES = 1


class Survey:
    """Faults of the parts read so far, the first of each kind and column, and what can be judged at the end only."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.rows = 0
        self.arms = encoding.SeenArms(study)
        self._faults: dict[tuple[Stage, int], DataError] = {}

    def note(self, stage: Stage, name: str, fault: DataError) -> None:
        """Remember what is wrong with a column."""
        self._faults.setdefault((stage, self.study.columns.index(name)), fault)

    def numbers(self, column: Column, hole: Mask, name: str) -> NDArray[np.float64]:
        """Return a column of numbers with its gaps filled; text is noted, and the numbers are then zeros."""
        rule = self.study.missing.get(name)
        fill = float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0
        try:
            return encoding.numbers(column, hole, fill, name)
        except DataError as fault:
            self.note(Stage.VALUES, name, fault)
            return np.zeros(len(column))

    def covariate(self, column: Column, hole: Mask, name: str) -> NDArray[np.float64]:
        """Return a covariate's numbers inside their bounds, or the codes of its labels; others are noted."""
        domain = self.study.covariates[name]
        if isinstance(domain, Range):
            return fixed_point.clamp(self.numbers(column, hole, name), domain)
        found = encoding.codes(column, hole, index_of(domain.labels), self.study.missing.get(name))
        if (found < 0).any():
            binary = isinstance(domain, Binary)
            fault = not_binary(name, domain.labels) if binary else undeclared_category(name)
            self.note(Stage.VALUES, name, fault)
        return found.astype(np.float64)

    @property
    def sound(self) -> bool:
        """Whether every column held what it may hold, so far."""
        return not self._faults

    def verdict(self) -> None:
        """Raise the first fault: missing values, no rows, arms, then values in the order of the columns."""
        missing = [place for place in self._faults if place[0] is Stage.MISSING]
        if missing:
            raise self._faults[min(missing)]
        if not self.rows:
            raise empty_table()
        self.arms.check()
        self._check_sizes()
        if self._faults:
            raise self._faults[min(self._faults)]

    def _check_sizes(self) -> None:
        name, fewest = self.study.treatment, int(self.arms.counts.min())
        if fewest == 0:
            raise constant_treatment(name) if self.study.arms is None else empty_arm(name)
        if fewest < SMALLEST_ARM:
            raise small_arm(name)


def label_index(name: str, study: Study) -> LabelIndex | None:
    """Return the labels a column is compared with, None for a column of numbers."""
    if name == study.treatment:
        return index_of(study.treatment_labels)
    domain = study.covariates.get(name)
    return None if domain is None or isinstance(domain, Range) else index_of(domain.labels)
