"""The table: a study's columns, checked, clamped and in fixed point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import encoding
from counterveil.data import encoding as fixed_point
from counterveil.data.cells import Column, Mask, Numbers
from counterveil.data.cluster import cluster_in_database
from counterveil.data.domains import Binary, Range
from counterveil.data.encoding import gaps
from counterveil.data.facts import SMALLEST_ARM
from counterveil.data.labels import Drop, Fill, Label, LabelIndex, index_of
from counterveil.data.person import not_in_database, one_row_per_person, places
from counterveil.data.silence import silence
from counterveil.data.sources import read, source_in_database
from counterveil.data.study import Study
from counterveil.data.wrong_data import (
    constant_treatment,
    empty_arm,
    empty_table,
    missing_without_rule,
    not_binary,
    small_arm,
    undeclared_category,
    varies,
)
from counterveil.errors import CounterveilError, DataError, StudyError
from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import shuffled
from counterveil.privacy import exact

# Whether rows fit a study, found out part by part; the verdict is that of reading them all at once.


class Stage(IntEnum):
    """The order in which problems are reported if there are several."""

    MISSING = 0
    VALUES = 1


class Survey:
    """Problems in the parts read so far, the first of each kind and column, and what can be judged at the end only."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.rows = 0
        self.arms = encoding.SeenArms(study)
        self._faults: dict[tuple[Stage, int], CounterveilError] = {}

    def note(self, stage: Stage, name: str, fault: CounterveilError) -> None:
        """Remember what is wrong with a column."""
        self._faults.setdefault((stage, self.study.columns.index(name)), fault)

    def numbers(self, column: Column, hole: Mask, name: str) -> NDArray[np.float64]:
        """Return a column of numbers with its missing values filled; text is noted, and the numbers are then zeros."""
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
        """Raise the first problem: missing values, no rows, arms, then values in the order of the columns."""
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table:
    """Rows that fit a study; made by `Table.attach`.

    `arm` holds the place of each row's arm, 0 being the reference or control; `treated` says which rows are
    in another arm than that; `outcome` holds whole steps in [0, OUTCOME_STEPS]; `covariates` maps
    each name to float64 values inside its bounds, or to the codes of its labels; `cluster` holds the place of
    each row's cluster, None where the study has none. All arrays have `rows` entries and cannot be written to.
    """

    study: Study
    arm: NDArray[np.intp]
    treated: NDArray[np.bool_]
    outcome: NDArray[np.int64]
    covariates: dict[str, NDArray[np.float64]]
    cluster: NDArray[np.intp] | None = None

    @classmethod
    @silence()
    def attach(cls, source: object, study: Study) -> Table:
        """Return the columns of `source` that the study names, or say why they do not fit it."""
        check_study(study)
        refuse_database(source, study)
        order = None if study.person is None else study.person.order
        columns = read(source, study.read_columns, numeric_columns(study), order)
        return cls.of_columns(columns if study.person is None else one_row_per_person(columns, study), study)

    @classmethod
    def of_columns(cls, columns: dict[str, Column], study: Study, survey: Survey | None = None) -> Table:
        """Return the rows of columns as they were read, or say why they do not fit the study.

        With a survey, what does not fit is noted there and raised by its `verdict`, after all parts were read.
        """
        noted = Survey(study) if survey is None else survey
        kept, holes = _apply_rules(columns, study, noted)
        arm = noted.arms.add(kept[study.treatment], holes[study.treatment])
        outcome = noted.numbers(kept[study.outcome], holes[study.outcome], study.outcome)
        steps = fixed_point.to_steps(outcome, study.outcome_bounds)
        covariates = {name: noted.covariate(kept[name], holes[name], name) for name in study.covariates}
        if survey is None:
            noted.verdict()
        return cls(study, arm, arm > 0, steps, covariates, _clusters(kept, study, arm)).sealed()

    def sealed(self) -> Table:
        """Return the same table, whose arrays cannot be written to from here on."""
        for array in (self.arm, self.treated, self.outcome, *self.covariates.values()):
            array.setflags(write=False)
        if self.cluster is not None:
            self.cluster.setflags(write=False)
        return self

    def take(self, rows: slice | NDArray[np.intp]) -> Table:
        """Return the table of these rows; a slice of it is not copied."""
        covariates = {name: values[rows] for name, values in self.covariates.items()}
        cluster = None if self.cluster is None else self.cluster[rows]
        return Table(self.study, self.arm[rows], self.treated[rows], self.outcome[rows], covariates, cluster)

    def batches(self) -> Iterator[Table]:
        """Yield all rows: a table is one batch."""
        yield self

    @property
    def rows(self) -> int:
        """The number of rows, public by declaration."""
        return len(self.outcome)

    @property
    def outcome_unit(self) -> Fraction:
        """The exact width of one step of the outcome: a value is about lo + unit * steps."""
        return fixed_point.outcome_unit(self.study.outcome_bounds)

    def __repr__(self) -> str:
        # Declarations only: a table that is printed by accident shows nothing of its rows.
        return f"Table(treatment={self.study.treatment!r}, outcome={self.study.outcome!r}, rows not shown)"


def check_study(study: object) -> None:
    """Raise CV-S015 for what is not a study."""
    if not isinstance(study, Study):
        raise StudyError(
            "CV-S015",
            "the second argument is not a study",
            expected="a Study, which names the roles and the public bounds",
            got=type(study).__name__,
            fix="declare a Study(treatment=..., outcome=..., outcome_range=(lo, hi)) or read one with "
            "Study.from_toml(path)",
        )


def refuse_database(source: object, study: Study) -> None:
    """Raise CV-S017 for a table in a database whose rows would have to be put together."""
    if not source_in_database(source):
        return
    if study.cluster is not None:
        raise cluster_in_database(study.cluster)
    if study.person is not None:
        raise not_in_database(study.person)


def _clusters(columns: dict[str, Column], study: Study, arm: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Return the place of each row's cluster; one that was assigned as a whole and has two arms raises CV-D020."""
    if study.cluster is None or study.cluster.whole:
        return None
    name = study.cluster.column
    found, count = places(columns[name], name)
    if study.cluster.assigned:
        last = np.zeros(count, dtype=np.intp)
        last[found] = arm
        if not np.array_equal(last[found], arm):
            raise varies(study.treatment)
    return found


def numeric_columns(study: Study) -> frozenset[str]:
    """Return the names of the columns that must be numbers."""
    numbers = (name for name, domain in study.covariates.items() if isinstance(domain, Range))
    return frozenset((study.outcome, *numbers)) - {study.treatment}


def _apply_rules(
    columns: dict[str, Column], study: Study, survey: Survey
) -> tuple[dict[str, Column], dict[str, Mask]]:
    """Return the columns and their gaps without the rows that a rule drops."""
    holes = {
        # Numbers are not compared with labels to know whether they are missing.
        name: gaps(columns[name], None if isinstance(columns[name], Numbers) else label_index(name, study))
        for name in study.columns
    }
    keep = np.ones(len(columns[study.outcome]), dtype=np.bool_)
    for name in study.columns:
        rule = study.missing.get(name)
        if rule is None and np.count_nonzero(holes[name]):
            survey.note(Stage.MISSING, name, missing_without_rule(name))
        if isinstance(rule, Drop):
            keep &= ~holes[name]
    survey.rows += int(np.count_nonzero(keep))
    if keep.all():
        return columns, holes
    return (
        {name: column.keep(keep) for name, column in columns.items()},
        {name: hole[keep] for name, hole in holes.items()},
    )


# The covariates of a table as people wrote them, and public points that cover their domains.


def covariate_columns(table: Table, part: slice | NDArray[np.intp] | None = None) -> dict[str, NDArray[Any]]:
    """Return every covariate by name: float64 numbers after clamping, or the declared labels as objects.

    `part` picks rows. A row of what is returned depends on that row and on public declarations alone.
    """
    rows = slice(None) if part is None else part
    coded = {name: table.covariates[name][rows] for name in table.study.covariates}
    return columns_as_written(coded, table.study)


def columns_as_written(coded: Mapping[str, Floats], study: Study) -> dict[str, NDArray[Any]]:
    """Return columns of numbers and of codes with the codes turned into the declared labels."""
    found: dict[str, NDArray[Any]] = {}
    for name, domain in study.covariates.items():
        values = coded[name]
        found[name] = values if isinstance(domain, Range) else _labels(domain.labels)[values.astype(np.intp)]
    return found


def public_points(study: Study, count: int) -> dict[str, Floats]:
    """Return evenly spaced points in the covariates' domains, numbers and codes, the same in every process.

    A Latin square: every covariate takes evenly spaced values, each in a fixed order of its own.
    """
    names = list(study.covariates)
    order = shuffled(count * len(names))
    found: dict[str, Floats] = {}
    for place, name in enumerate(names):
        part = (order[order // count == place] % count + 0.5) / count
        domain = study.covariates[name]
        if isinstance(domain, Range):
            low, high = domain.floats()
            found[name] = np.clip(low + (high - low) * part, low, high)
        else:
            found[name] = np.minimum(np.floor(part * len(domain.labels)), len(domain.labels) - 1.0)
    return found


def _labels(labels: tuple[Label, ...]) -> NDArray[np.object_]:
    """Return the labels as an array of objects, whatever their types."""
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found
