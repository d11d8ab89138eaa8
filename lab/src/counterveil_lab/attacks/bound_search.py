"""A search for data sets that refute the declared bound of a statistic.

Data sets of few rows have private columns at the ends of their ranges or in between. The first person of each takes
every extreme value in turn; how far a statistic moves, in units of its bound, is climbed by changing one other row at a
time. More than one is a counterexample. One or less proves nothing: a bound needs a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Range, Table
from counterveil.methods import Statistic
from counterveil.privacy import Budget, Unit
from counterveil.rows.made_up import made_up_rows
from counterveil.rows.public import PublicData
from counterveil.rows.statistic import length_on_made_up_rows, values_or_zero
from counterveil_lab.audit import LowerBound, Mechanism, Quantity
from counterveil_lab.audit.report import FloatArray, Pair

# Data sets that a search starts from, and changes that it tries from each: some seconds for a method of two sums.
STARTS = 12
CHANGES = 60
# Rows that each arm has at least: data sets with fewer are refused, and are no neighbours.
LEAST_ARM = 2


@dataclass(frozen=True, slots=True)
class Person:
    """Private values of one row: an outcome in steps, an arm and codes of covariates where they are private."""

    outcome: int
    arm: int | None
    covariates: Mapping[str, float]

    def put_into(self, rows: Table, place: int) -> Table | None:
        """Return the rows with this person at a place, None where an arm would become too small."""
        outcome = rows.outcome.copy()
        outcome[place] = self.outcome
        arm = rows.arm.copy()
        if self.arm is not None:
            arm[place] = self.arm
        if min(np.bincount(arm, minlength=2)) < LEAST_ARM:
            return None
        covariates = dict(rows.covariates)
        for name, value in self.covariates.items():
            covariates[name] = covariates[name].copy()
            covariates[name][place] = value
        return replace(rows, outcome=outcome, arm=arm, treated=arm > 0, covariates=covariates)


def extreme_people(rows: Table, unit: Unit) -> list[Person]:
    """Return people at the ends of all private columns, and in the middle of the outcome; covariates move together."""
    arms = (None,) if unit.treatment_public else (0, 1)
    ends = (None,) if unit.covariates_public else (0, 1)
    outcomes = (0, OUTCOME_STEPS // 2, OUTCOME_STEPS)
    return [
        Person(
            outcome, arm, {} if end is None else {name: _ends(rows, name)[end] for name in rows.covariates}
        )
        for outcome, arm, end in product(outcomes, arms, ends)
    ]


def _ends(rows: Table, name: str) -> tuple[float, float]:
    domain = rows.study.covariates[name]
    return domain.floats() if isinstance(domain, Range) else (0.0, float(len(domain.labels) - 1))


@dataclass(frozen=True)
class DeclaredBounds:
    """The statistics of a method on a small study, with their bounds divided by `divisor`."""

    statistics: Mapping[str, Statistic]
    public: PublicData
    divisor: int = 1

    def sample(self, dataset: object, count: int, rng: np.random.Generator) -> FloatArray:
        """Raise NotImplementedError: bounds are searched, nothing is drawn."""
        raise NotImplementedError

    def largest_change(self, rng: np.random.Generator) -> tuple[float, str]:
        """Return the largest change that is found, in units of the bound, and the name of its statistic."""
        found = (
            (self._climbed(each, rng), name) for name, each in self.statistics.items() for _ in range(STARTS)
        )
        return max(found)

    def _climbed(self, statistic: Statistic, rng: np.random.Generator) -> float:
        length = length_on_made_up_rows(statistic, self.public)
        people = extreme_people(made_up_rows(self.public), self.public.unit)

        def changed(rows: Table, place: int) -> Table:
            """Return the rows with somebody else at a place."""
            return people[int(rng.integers(len(people)))].put_into(rows, place) or rows

        rows = made_up_rows(self.public)
        for place in range(rows.rows):
            # Some data sets are all extremes, others hardly.
            if rng.random() < rng.random():
                rows = changed(rows, place)
        largest = self._change(statistic, rows, people, length)
        for _ in range(CHANGES):
            tried = changed(rows, int(rng.integers(1, rows.rows)))
            change = self._change(statistic, tried, people, length)
            if change >= largest:
                rows = tried
                largest = change
        return largest

    def _change(self, statistic: Statistic, rows: Table, people: list[Person], length: int) -> float:
        """Return the largest change while the first person is each of some people, in units of the bound."""
        neighbours: Iterator[Table | None] = (person.put_into(rows, 0) for person in people)
        values = [values_or_zero(statistic, each, length) for each in neighbours if each is not None]
        bound = float(statistic.declared_bound() / self.divisor)
        return max((_size(statistic.norm, *pair) / bound for pair in combinations(values, 2)), default=0.0)


def _size(norm: str, one: list[Fraction], other: list[Fraction]) -> float:
    gaps = [abs(first - second) for first, second in zip(one, other, strict=True)]
    return sqrt(sum(gap**2 for gap in gaps)) if norm == "l2" else float(sum(gaps))


@dataclass(frozen=True, slots=True)
class BoundTester:
    """The largest change of a statistic that a search finds, beside its declared bound."""

    name: str = "bounds"

    def examine(
        self,
        mechanism: Mechanism,
        pair: Pair,  # noqa: ARG002
        claim: Budget,  # noqa: ARG002
        *,
        error: float,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> LowerBound:
        """Return the change in units of the bound, which must not exceed one."""
        assert isinstance(mechanism, DeclaredBounds)
        change, statistic = mechanism.largest_change(rng)
        return LowerBound(
            tester=self.name,
            quantity=Quantity.CHANGE,
            found=change,
            claimed=1.0,
            confidence=1.0,
            witness=f"one person moves {statistic!r} by {change:.4g} times its bound",
        )
