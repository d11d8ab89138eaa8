"""The table: a study's columns, checked, clamped and in fixed point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from counterveil.data import encoding as fixed_point
from counterveil.data.cells import Column, Mask, Numbers
from counterveil.data.cluster import cluster_in_spark
from counterveil.data.domains import Range
from counterveil.data.encoding import gaps
from counterveil.data.forks import side_by_side
from counterveil.data.labels import Drop, LabelIndex, index_of
from counterveil.data.outcomes import earlier_name, level_name
from counterveil.data.passes import Pass, Sums, in_order
from counterveil.data.people import places
from counterveil.data.reduction import one_row_per_person
from counterveil.data.silence import silence
from counterveil.data.sources import in_spark, read
from counterveil.data.study import Study
from counterveil.data.survey import Stage, Survey
from counterveil.data.time_to_event import PARTS, entries
from counterveil.data.where import only_subset
from counterveil.data.wrong_data import (
    varies,
)
from counterveil.errors import StudyError
from counterveil.numerics.arrays import Floats, Integers

# Rows of a block of a table in memory: a multiple of the blocks in which kernels add rows up, and so few that all cores
# are done at about the same time.
TABLE_ROWS = 1 << 14

Made = TypeVar("Made")


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
    in another arm than that; `outcome` holds whole steps in [0, OUTCOME_STEPS], with `event` a row's entry of the table
    of times; `covariates` maps
    each name to float64 values inside its bounds, or to the codes of its labels. `measures` are the other private
    numbers of a row, in whole steps of their ranges: with `several` the other outcomes, and what was before; with `per`
    the denominator; with `before` every measurement in
    the order of time, -1 where there is none. `cluster` holds the place of each row's cluster, None where the study has
    none. All arrays have `rows` entries and cannot be written to.
    """

    study: Study
    arm: NDArray[np.intp]
    treated: NDArray[np.bool_]
    outcome: NDArray[np.int64]
    covariates: dict[str, NDArray[np.float64]]
    measures: tuple[NDArray[np.int64], ...] = ()
    cluster: NDArray[np.intp] | None = None
    # What was made of these rows before and is the same for every question: rows cannot change.
    _known: dict[str, Any] = field(default_factory=dict, init=False)

    @classmethod
    @silence()
    def attach(cls, source: object, study: Study) -> Table:
        """Return the columns of `source` that the study names, or say why they do not fit it."""
        check_study(study)
        refuse_in_spark(source, study)
        order = None if study.person is None else study.person.order
        read_columns = read(source, study.read_columns, numeric_columns(study), order)
        columns = only_subset(read_columns, study.where)
        return cls.of_columns(columns if study.person is None else one_row_per_person(columns, study), study)

    @classmethod
    def of_columns(cls, columns: dict[str, Column], study: Study, survey: Survey | None = None) -> Table:
        """Return the rows of columns as they were read, or say why they do not fit the study.

        With a survey, what does not fit is noted there and raised by its `verdict`, after all parts were read.
        """
        noted = Survey(study) if survey is None else survey
        kept, holes = _apply_rules(columns, study, noted)
        arm = noted.arms.add(kept[study.treatment], holes[study.treatment])
        steps, measures = _outcomes(kept, holes, study, noted)
        covariates = noted.covariates(kept, holes)
        if survey is None:
            noted.verdict()
        clusters = _clusters(kept, study, arm)
        return cls(study, arm, arm > 0, steps, covariates, measures, clusters).sealed()

    def sealed(self) -> Table:
        """Return the same table, whose arrays cannot be written to from here on."""
        for array in (self.arm, self.treated, self.outcome, *self.covariates.values(), *self.measures):
            array.setflags(write=False)
        if self.cluster is not None:
            self.cluster.setflags(write=False)
        return self

    def once(self, name: str, make: Callable[[Table], Made]) -> Made:
        """Return what `make` returned when these rows were asked for it first; not to be written to."""
        if name not in self._known:
            self._known[name] = make(self)
        return cast("Made", self._known[name])

    def take(self, rows: slice | NDArray[np.intp]) -> Table:
        """Return the table of these rows; a slice of it is not copied."""
        covariates = {name: values[rows] for name, values in self.covariates.items()}
        measures = tuple(values[rows] for values in self.measures)
        cluster = None if self.cluster is None else self.cluster[rows]
        private = (self.outcome[rows], covariates, measures)
        return Table(self.study, self.arm[rows], self.treated[rows], *private, cluster)

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:
        """Return a pass's sums over all rows; blocks of a large table are worked on by all cores."""
        if in_turn:
            # One block, for passes that remember what they saw of it.
            return in_order(passed, [self], self.rows)
        return side_by_side(passed, self._block, -(-self.rows // TABLE_ROWS), self.rows)

    def _block(self, number: int) -> Table:
        if self.rows <= TABLE_ROWS:
            return self
        return self.take(slice(number * TABLE_ROWS, (number + 1) * TABLE_ROWS))

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


def joined_tables(tables: list[Table]) -> Table:
    """Return the rows of all tables, one after the other."""
    first = tables[0]
    if len(tables) == 1:
        return first
    joined = Table(
        first.study,
        np.concatenate([table.arm for table in tables]),
        np.concatenate([table.treated for table in tables]),
        np.concatenate([table.outcome for table in tables]),
        {name: np.concatenate([table.covariates[name] for table in tables]) for name in first.covariates},
        tuple(np.concatenate(parts) for parts in zip(*(table.measures for table in tables), strict=True)),
    )
    return joined.sealed()


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
    return frozenset((*study.outcomes, *numbers)) - {study.treatment}


def refuse_in_spark(source: object, study: Study) -> None:
    """Raise CV-S017 where rows in Spark would have to be numbered by cluster."""
    if in_spark(source) and study.cluster is not None and study.clustered:
        raise cluster_in_spark(study.cluster)


def _apply_rules(
    columns: dict[str, Column], study: Study, survey: Survey
) -> tuple[dict[str, Column], dict[str, Mask]]:
    """Return the columns and their gaps without the rows that a rule drops."""
    made = _made(study)
    read_here = {*study.columns, *made}
    holes = {
        # Numbers are not compared with labels to know whether they are missing.
        name: gaps(columns[name], None if isinstance(columns[name], Numbers) else label_index(name, study))
        for name in columns
        if name in read_here
    }
    keep = np.ones(len(columns[study.outcome]), dtype=np.bool_)
    for name, hole in holes.items():
        said = study.outcome if name in made else name
        rule = study.missing.get(said)
        if rule is None and np.count_nonzero(hole):
            survey.note(Stage.MISSING, said)
        # Someone without a value in one of several periods has a change all the same.
        if isinstance(rule, Drop) and name not in made[1:]:
            keep &= ~hole
    survey.rows += int(np.count_nonzero(keep))
    if keep.all():
        return columns, holes
    return (
        {name: column.keep(keep) for name, column in columns.items()},
        {name: hole[keep] for name, hole in holes.items()},
    )


# Outcomes of several private numbers. Proof: outcomes.proof.md.


def _made(study: Study) -> tuple[str, ...]:
    """Return the names of the columns that rows of periods became: the outcome before, then that of every period."""
    if study.before is None or study.before.time is None:
        return ()
    periods = range(len(study.before.labels(study.outcome)))
    return (earlier_name(study.outcome), *(level_name(study.outcome, place) for place in periods))


# Proof: outcomes.proof.md
def _outcomes(
    columns: dict[str, Column], holes: dict[str, Mask], study: Study, survey: Survey
) -> tuple[Integers, tuple[Integers, ...]]:
    """Return everyone's outcome in steps, and the numbers that it is made of where there are several."""

    def numbers(name: str) -> Floats:
        return survey.numbers(columns[name], holes[name], study.outcome if name in made else name)

    made, before = _made(study), study.before
    own = numbers(study.outcome)
    if study.event is not None:
        return entries(own, survey.events(numbers(study.event.column)), study.event.cut(PARTS)), ()
    if study.per is not None:
        below = fixed_point.to_steps(numbers(study.per.column), Range(*study.per.range))
        return fixed_point.to_steps(own, study.outcome_bounds), (below,)
    if study.several is not None:
        rest = study.several.columns[1:]
        more = (fixed_point.to_steps(numbers(name), study.several.bounds(name)) for name in rest)
        return fixed_point.to_steps(own, study.outcome_bounds), tuple(more)
    if before is None:
        return fixed_point.to_steps(own, study.outcome_bounds), ()
    names = made[:1] or before.columns
    earlier = [fixed_point.clamp(numbers(name), Range(*before.range)) for name in names]
    change = fixed_point.clamp(own, Range(*before.outcome_range)) - sum(earlier) / len(earlier)
    bounds = Range(*before.levels)
    levels = []
    for name in made[1:] or (*before.columns, study.outcome):
        steps = fixed_point.to_steps(numbers(name), bounds)
        gap = holes[name] if isinstance(survey.rule(study.outcome if name in made else name), Drop) else False
        levels.append(np.where(gap, -1, steps))
    return fixed_point.to_steps(change, study.outcome_bounds), tuple(levels)
