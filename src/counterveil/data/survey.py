"""Whether rows fit a study, found out part by part; the verdict is that of reading them all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from counterveil.data import encoding
from counterveil.data import encoding as fixed_point
from counterveil.data.cells import Column, Mask
from counterveil.data.domains import Binary, Range
from counterveil.data.facts import SMALLEST_ARM
from counterveil.data.labels import Fill, MissingRule
from counterveil.data.reduction import UnfitError, reduced, unfit
from counterveil.data.study import Study
from counterveil.data.time_to_event import wrong_events
from counterveil.data.wrong_data import (
    constant_treatment,
    empty_arm,
    empty_table,
    missing_without_rule,
    not_binary,
    not_events,
    small_arm,
    text_for_number,
    undeclared_category,
)
from counterveil.errors import CounterveilError, DataError
from counterveil.numerics.arrays import Floats
from counterveil.privacy import exact


class Stage(IntEnum):
    """The order in which problems are reported if there are several."""

    TOGETHER = 0
    MISSING = 1
    VALUES = 2


class Survey:
    """Problems in the parts read so far, by kind and column, and what can be judged at the end only.

    All of it is whole numbers, which `facts` gives: parts that were read elsewhere are joined by `join`.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self.rows = 0
        self.arms = encoding.SeenArms(study)
        self._faults: set[tuple[int, int]] = set()

    def note(self, stage: Stage, name: str) -> None:
        """Remember that something is wrong with a column."""
        self._faults.add((int(stage), self.study.columns.index(name)))

    def together(self, columns: dict[str, Column]) -> dict[str, Column] | None:
        """Return one row for each person of a part that has all their rows, None where they cannot become one."""
        if self.study.person is None:
            return columns
        try:
            return reduced(columns, self.study)
        except UnfitError as fault:
            self._faults.add((int(Stage.TOGETHER), fault.place))
            return None

    def facts(self) -> dict[str, Any]:
        """Return what was found so far, in whole numbers."""
        return {"rows": self.rows, "faults": sorted(self._faults), "arms": self.arms.facts()}

    def join(self, facts: Mapping[str, Any]) -> None:
        """Add what another survey of the same study found."""
        self.rows += facts["rows"]
        self._faults |= {(stage, place) for stage, place in facts["faults"]}
        self.arms.join(facts["arms"])

    def numbers(self, column: Column, hole: Mask, name: str) -> Floats:
        """Return a column of numbers with its missing values filled; text is noted, and the numbers are then zeros."""
        rule = self.rule(name)
        fill = float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0
        try:
            return encoding.numbers(column, hole, fill, name)
        except DataError:
            self.note(Stage.VALUES, name)
            return np.zeros(len(column))

    def events(self, values: Floats) -> Floats:
        """Return a column of events; anything but 0 and 1 is noted."""
        if self.study.event is not None and wrong_events(values):
            self.note(Stage.VALUES, self.study.event.column)
        return values

    def rule(self, name: str) -> MissingRule | None:
        """Return what the study does about missing values of a column."""
        return self.study.missing.get(name)

    def covariates(self, columns: Mapping[str, Column], holes: Mapping[str, Mask]) -> dict[str, Floats]:
        """Return all covariates: together those of few rows, where a step costs more than its numbers do."""
        domains, alike = self.study.covariates, dict[object, dict[str, Floats]]()
        for name, domain in domains.items():
            column = columns[name]
            if encoding.short_and_whole(column, holes[name]):
                kind = Range if isinstance(domain, Range) else domain
                alike.setdefault(kind, {})[name] = column.values
        found = {name: own for each in alike.values() for name, own in self._together(each).items()}
        return {
            name: found[name] if name in found else self.covariate(columns[name], holes[name], name)
            for name in domains
        }

    def _together(self, values: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return covariates of one kind: numbers inside their bounds, or codes of the same labels."""
        domains, listed, found = self.study.covariates, list(values), dict[str, Floats]()
        most = max(1, encoding.TOGETHER // max(1, len(values[listed[0]])))
        for start in range(0, len(listed), most):
            names = listed[start : start + most]
            block, first = np.array([values[name] for name in names]), domains[names[0]]
            if isinstance(first, Range):
                ranges = [each for name in names if isinstance(each := domains[name], Range)]
                found |= zip(names, encoding.clamp_each(block, ranges), strict=True)
                continue
            coded = encoding.codes_of_doubles(block, first)
            found |= zip(names, coded, strict=True)
            for place in np.flatnonzero((coded < 0).any(axis=1)):
                self.note(Stage.VALUES, names[place])
        return found

    def covariate(self, column: Column, hole: Mask, name: str) -> Floats:
        """Return a covariate's numbers inside their bounds, or the codes of its labels; others are noted."""
        domain = self.study.covariates[name]
        if isinstance(domain, Range):
            return fixed_point.clamp(self.numbers(column, hole, name), domain)
        found = encoding.domain_codes(column, hole, domain, self.study.missing.get(name))
        if (found < 0).any():
            self.note(Stage.VALUES, name)
        return found.astype(np.float64)

    @property
    def sound(self) -> bool:
        """Whether every column held what it may hold, so far."""
        return not self._faults

    def verdict(self) -> None:
        """Raise the first problem: people, missing values, no rows, arms, then values in the order of the columns."""
        first = next(iter(self.problems()), None)
        if first is not None:
            raise first

    def problems(self) -> Iterator[CounterveilError]:
        """Yield everything that does not fit, in the order in which it is reported."""
        yield from (self._fault(*found) for found in sorted(self._faults) if found[0] < Stage.VALUES)
        if self.rows:
            yield from self._arm_problem()
        else:
            yield empty_table()
        yield from (self._fault(*found) for found in sorted(self._faults) if found[0] == Stage.VALUES)

    def _fault(self, stage: int, place: int) -> CounterveilError:
        if stage == Stage.TOGETHER:
            return unfit(self.study, place)
        name = self.study.columns[place]
        domain = self.study.covariates.get(name)
        if stage == Stage.MISSING:
            return missing_without_rule(name)
        if self.study.event is not None and name == self.study.event.column:
            return not_events(name)
        if domain is None or isinstance(domain, Range):
            return text_for_number(name)
        return not_binary(name, domain.labels) if isinstance(domain, Binary) else undeclared_category(name)

    def _arm_problem(self) -> Iterator[CounterveilError]:
        try:
            self.arms.check()
        except DataError as fault:
            yield fault
            return
        name, fewest = self.study.treatment, int(self.arms.counts.min())
        if fewest == 0:
            yield constant_treatment(name) if self.study.arms is None else empty_arm(name)
        elif fewest < SMALLEST_ARM:
            yield small_arm(name)
