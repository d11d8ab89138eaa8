"""The table: a study's columns, checked, clamped and in fixed point."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from counterveil.data import domains as encoding
from counterveil.data.cells import (
    Column,
    Mask,
    Numbers,
    meaning_of,
    not_binary,
    not_events,
    strange_treatment,
    undeclared_arm,
)
from counterveil.data.conditions import only_subset
from counterveil.data.domains import Binary, Drop, Fill, Label, MissingRule, Range
from counterveil.data.follow_up import PARTS, entries, wrong_events
from counterveil.data.outcomes import earlier_name, level_name
from counterveil.data.passes import Sums, in_order, side_by_side
from counterveil.data.people import UnfitError, one_row_per_person, places, reduced, unfit
from counterveil.data.silencing import silence
from counterveil.data.sources import read, without_positions
from counterveil.data.study import Study
from counterveil.data.study_facts import SMALLEST_ARM
from counterveil.errors import CounterveilError, DataError, refusal
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.public_choices import shuffled
from counterveil.privacy import exact


class SeenArms:
    """The arms of rows that are read part by part, and whether all parts together fit the study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        # Rows of each arm; of two arms, control first.
        self.counts = np.zeros(2 if study.arms is None else len(study.arms), dtype=np.int64)
        # Labels that are not declared, by a digest, one or more of them, and how many rows have such a label.
        self._others: set[int] = set()
        self._other_rows = 0

    def facts(self) -> dict[str, Any]:
        """Return what was seen so far, in whole numbers."""
        # Two tell as much as more do.
        others = sorted(self._others)[:2]
        return {"counts": self.counts.tolist(), "others": others, "other_rows": self._other_rows}

    def join(self, facts: Mapping[str, Any]) -> None:
        """Add what was seen of other rows of the same study."""
        self.counts += np.array(facts["counts"], dtype=np.int64)
        self._others |= set(facts["others"])
        self._other_rows += facts["other_rows"]

    def add(self, column: Column, missing: Mask, weight: Integers | None = None) -> NDArray[np.intp]:
        """Return the arm of every row of a part: 1 treated and 0 control, or the place in `study.arms`.

        Rows with undeclared labels count as control. `weight` says how many rows each of these stands for.
        """
        study = self._study
        found = encoding.codes(column, missing, study.treatment_index, study.missing.get(study.treatment))
        other: Mask = found == encoding.NO_LABEL
        strangers = int(np.count_nonzero(other) if weight is None else weight[other].sum())
        if strangers and len(self._others) < 2:
            self._others |= {_digest(label) for label in _labels_in(column.keep(other & ~missing))}
        self._other_rows += strangers
        place = np.where(other, 0, found) if study.arms is not None else (found == 0)
        arm: NDArray[np.intp] = place.astype(np.intp)
        self.counts += np.bincount(arm, weight, len(self.counts)).astype(np.int64)
        return arm

    def check(self) -> None:
        """Raise what the labels of all parts together are refused for: CV-D017; of two arms CV-D004 or CV-D005."""
        study = self._study
        if not self._other_rows:
            return
        if study.arms is not None:
            raise undeclared_arm(study.treatment, study.arms)
        single = len(self._others) == 1
        if single and self._other_rows == self.counts.sum():
            raise refusal("CV-D004", name=study.treatment)
        if study.control is not None or not single or not self.counts[1]:
            raise strange_treatment(study.treatment, study.treated, study.control)


def _labels_in(column: Column) -> set[object]:
    """Return what the different labels of a column mean."""
    if isinstance(column, Numbers):
        same = len(column) > 0 and bool((column.values == column.values[0]).all())
        cells = (column.values[:1] if same else np.unique(column.values)).tolist()
    else:
        cells = [column.cells[code] for code in np.unique(column.codes)]
    return {meaning_of(cell) for cell in cells}


def _digest(label: object) -> int:
    """Return a whole number that tells what a label means from what others do."""
    text = f"{type(label).__name__} {label}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


# By how much a declared score may be outside its range: as written, not as rounded to the nearest double.
_ROUNDED = 1e-12


class Stage(IntEnum):
    """The order in which problems are reported if there are several."""

    TOGETHER = 0
    MISSING = 1
    VALUES = 2


class Survey:
    """Problems in the parts read so far, by kind and column, and what can be judged at the end only.

    All of it is whole numbers, which `facts` gives: parts that were read elsewhere are joined by `join`.
    """

    def __init__(self, study: Study, borrow: bool = False) -> None:
        self.study = study
        self.rows = 0
        self.arms = SeenArms(study)
        self._borrow = borrow
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

    def numbers(self, column: Column, missing: Mask, name: str) -> Floats:
        """Return a column of numbers with its missing values filled; text is noted, and the numbers are then zeros."""
        rule = self.rule(name)
        fill = float(exact(rule.value, "Fill")) if isinstance(rule, Fill) else 0.0
        try:
            return encoding.numbers(column, missing, fill, name)
        except DataError:
            self.note(Stage.VALUES, name)
            return np.zeros(len(column))

    def events(self, values: Floats) -> Floats:
        """Return a column of events; anything but 0 and 1, or the numbers of causes, is noted."""
        if self.study.event is not None and wrong_events(values, self.study.event.kinds):
            self.note(Stage.VALUES, self.study.event.column)
        return values

    def rule(self, name: str) -> MissingRule | None:
        """Return what the study does about missing values of a column."""
        return self.study.missing.get(name)

    def covariate(self, column: Column, missing: Mask, name: str) -> Floats:
        """Return a covariate's numbers inside their bounds, or the codes of its labels; others are noted."""
        domain = self.study.covariates[name]
        if isinstance(domain, Range):
            values = self.numbers(column, missing, name)
            clamped = (encoding.borrowed if self._borrow else encoding.clamp)(values, domain)
            if name == self.study.score and not (np.abs(values - clamped) <= _ROUNDED).all():
                self.note(Stage.VALUES, name)
            return clamped
        found = encoding.domain_codes(column, missing, domain, self.rule(name))
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
        yield from (self.fault(*found) for found in sorted(self._faults) if found[0] < Stage.VALUES)
        if self.rows:
            yield from self._arm_problem()
        else:
            yield refusal("CV-D008")
        yield from (self.fault(*found) for found in sorted(self._faults) if found[0] == Stage.VALUES)

    def fault(self, stage: int, place: int) -> CounterveilError:
        """Return the refusal of a fault by its stage and the place of its column."""
        if stage == Stage.TOGETHER:
            return unfit(self.study, place)
        name = self.study.columns[place]
        domain = self.study.covariates.get(name)
        if stage == Stage.MISSING:
            return refusal("CV-D003", name=name)
        if self.study.event is not None and name == self.study.event.column:
            return not_events(name, self.study.event.kinds)
        if name == self.study.score:
            return refusal("CV-D022", name=name)
        if domain is None or isinstance(domain, Range):
            return refusal("CV-D002", name=name)
        return (
            not_binary(name, domain.labels) if isinstance(domain, Binary) else refusal("CV-D006", name=name)
        )

    def _arm_problem(self) -> Iterator[CounterveilError]:
        try:
            self.arms.check()
        except DataError as fault:
            yield fault
            return
        name = self.study.treatment
        fewest = int(self.arms.counts.min())
        if fewest == 0:
            yield refusal("CV-D004", name=name) if self.study.arms is None else refusal("CV-D018", name=name)
        elif fewest < SMALLEST_ARM:
            yield refusal("CV-D009", name=name)


def without_rows(rows: Backend) -> str:
    """Return declarations only: what is printed by accident shows nothing of its rows."""
    treatment, outcome = rows.study.treatment, rows.study.outcome
    return f"{type(rows).__name__}(treatment={treatment!r}, outcome={outcome!r}, rows not shown)"


# Rows of a block of a table in memory: a multiple of the blocks in which kernels add rows up, and so few that all cores
# are done at about the same time.
TABLE_ROWS = 1 << 14

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table:
    """Rows that fit a study; made by `Table.attach`.

    All arrays have one entry for each row and cannot be written to. Printing a table shows names of columns only.

    Attributes
    ----------
    study : Study
        The study that the rows fit.
    arm : ndarray of int
        Place of each row's arm; 0 is the reference or control.
    treated : ndarray of bool
        Whether a row is in another arm than that.
    outcome : ndarray of int64
        Outcomes in whole steps of the range, in [0, `OUTCOME_STEPS`]; with `study.event` a row's entry of the
        table of times.
    covariates : mapping of str to ndarray of float64
        By name: values inside their bounds, or codes of labels in the order of their declaration.
    measures : tuple of ndarray of int64
        Other private numbers of a row, in whole steps of their ranges. With `study.several`: the other outcomes, and
        what was before. With `study.denominator`: that. With `study.before`: every measurement in the order of time,
        -1 where there is none.
    cluster : ndarray of int, or None
        Place of each row's cluster; None where the study has none.

    Notes
    -----
    An outcome y in the range [lo, hi] becomes floor((clamp(y) - lo) 2^24 / (hi - lo)), so that sums are exact and one
    person moves a sum by at most 2^24 steps. `outcome_unit` is the length of a step.
    """

    study: Study
    arm: NDArray[np.intp]
    treated: NDArray[np.bool_]
    outcome: NDArray[np.int64]
    covariates: Mapping[str, NDArray[np.float64]]
    measures: tuple[NDArray[np.int64], ...] = ()
    cluster: NDArray[np.intp] | None = None
    # What was made of these rows before and is the same for every question: rows cannot change.
    _known: dict[str, Any] = field(default_factory=dict, init=False)

    @classmethod
    @silence()
    def attach(cls, source: object, study: Study, borrow: bool = False) -> Table:
        """Return the rows of a source as the study declares them.

        Parameters
        ----------
        source : frame, mapping, path or relation
            The rows. Only the columns that the study names are read.
        study : Study
            What the columns are.
        borrow : bool, default False
            Read covariates that need no clamping where they are, without a copy: for one question about public ones.

        Returns
        -------
        Table
            The rows that belong to the study; where people have several, one row for each person.

        Raises
        ------
        DataError
            Rows that do not fit the study (CV-D). The message may depend on rows: it is for the holder of the data.
        """
        check_study(study)
        refuse_clusters(source, study)
        order = None if study.person is None else study.person.order
        read_columns = read(source, study.read_columns, numeric_columns(study), order)
        columns = only_subset(read_columns, study.where)
        together = columns if study.person is None else one_row_per_person(columns, study)
        return cls.of_columns(together, study, borrow=borrow)

    @classmethod
    def of_columns(
        cls, columns: dict[str, Column], study: Study, survey: Survey | None = None, borrow: bool = False
    ) -> Table:
        """Return the rows of columns as they were read, or say why they do not fit the study.

        With a survey, what does not fit is noted there and raised by its `verdict`, after all parts were read.
        """
        noted = Survey(study, borrow) if survey is None else survey
        kept, missing_masks = _apply_rules(columns, study, noted)
        arm = noted.arms.add(kept[study.treatment], missing_masks[study.treatment])
        steps, measures = _outcomes(kept, missing_masks, study, noted)
        covariates = {
            name: noted.covariate(kept[name], missing_masks[name], name) for name in study.covariates
        }
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

    def cached(self, name: str, make: Callable[[], Made]) -> Made:
        """Return what `make` returned when these rows were asked for it first."""
        if name not in self._known:
            self._known[name] = make()
        return cast("Made", self._known[name])

    def take(self, rows: slice | NDArray[np.intp]) -> Table:
        """Return the table of these rows; a slice of it is not copied."""
        covariates = {name: values[rows] for name, values in self.covariates.items()}
        measures = tuple(values[rows] for values in self.measures)
        cluster = None if self.cluster is None else self.cluster[rows]
        private = (self.outcome[rows], covariates, measures)
        return Table(self.study, self.arm[rows], self.treated[rows], *private, cluster)

    def run(self, passed: Pass, sequential: bool = False) -> Sums:
        """Return a pass's sums over all rows; blocks of a large table are worked on by all cores."""
        if sequential:
            # One block, for passes that remember what they saw of it.
            return in_order(passed, [self], self.rows)
        return side_by_side(passed, self._block, -(-self.rows // TABLE_ROWS), self.rows)

    def _block(self, number: int) -> Table:
        if self.rows <= TABLE_ROWS:
            return self
        part = slice(number * TABLE_ROWS, (number + 1) * TABLE_ROWS)
        return self.cached(f"block {number}", lambda: self.take(part))

    @property
    def rows(self) -> int:
        """The number of rows, public by declaration."""
        return len(self.outcome)

    @property
    def score(self) -> Floats | None:
        """Every row's declared probability of treatment, None where the study declares none."""
        return None if self.study.score is None else self.covariates[self.study.score]

    @property
    def outcome_unit(self) -> Fraction:
        """The exact width of one step of the outcome: a value is about lo + unit * steps."""
        return encoding.outcome_unit(self.study.outcome_bounds)

    __repr__ = without_rows


# Sums over the rows of one block; knows public and released numbers only, and can be pickled.
Pass: TypeAlias = Callable[[Table], Sums]


def arm_sizes(block: Table, arms: int) -> Sums:
    """Return how many rows of a block every arm has."""
    return (np.bincount(block.arm, minlength=arms),)


class Backend(Protocol):
    """Rows that fit a study, wherever they lie, over which passes run."""

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        ...

    @property
    def rows(self) -> int:
        """The number of rows, public by declaration."""
        ...

    def run(self, passed: Pass, sequential: bool = False) -> Sums:
        """Return a pass's sums over all rows; `sequential` asks for one block at a time, where there is a choice."""
        ...


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
        raise refusal("CV-S015", got=type(study).__name__)


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
            raise refusal("CV-D020", name=study.treatment)
    return found


def numeric_columns(study: Study) -> frozenset[str]:
    """Return the names of the columns that must be numbers."""
    numbers = (name for name, domain in study.covariates.items() if isinstance(domain, Range))
    return frozenset((*study.outcomes, *numbers)) - {study.treatment}


def refuse_clusters(source: object, study: Study) -> None:
    """Raise CV-S017 where rows of Spark or of another database would have to be numbered by cluster."""
    if without_positions(source) and study.cluster is not None and study.clustered:
        raise refusal("CV-S017", cluster=study.cluster.column)


def _apply_rules(
    columns: dict[str, Column], study: Study, survey: Survey
) -> tuple[dict[str, Column], dict[str, Mask]]:
    """Return the columns and their gaps without the rows that a rule drops."""
    made = _made(study)
    read_here = {*study.columns, *made}
    missing_masks = {name: encoding.gaps(columns[name]) for name in columns if name in read_here}
    keep = np.ones(len(columns[study.outcome]), dtype=np.bool_)
    for name, missing in missing_masks.items():
        said = study.outcome if name in made else name
        rule = study.missing.get(said)
        if rule is None and np.count_nonzero(missing):
            survey.note(Stage.MISSING, said)
        # Someone without a value in one of several periods has a change all the same.
        if isinstance(rule, Drop) and name not in made[1:]:
            keep &= ~missing
    survey.rows += int(np.count_nonzero(keep))
    if keep.all():
        return columns, missing_masks
    return (
        {name: column.keep(keep) for name, column in columns.items()},
        {name: missing[keep] for name, missing in missing_masks.items()},
    )


def _made(study: Study) -> tuple[str, ...]:
    """Return the names of the columns that rows of periods became: the outcome before, then that of every period."""
    if study.before is None or study.before.time is None:
        return ()
    periods = range(len(study.before.labels(study.outcome)))
    return (earlier_name(study.outcome), *(level_name(study.outcome, place) for place in periods))


# Proof: outcomes.proof.md
def _outcomes(
    columns: dict[str, Column], missing_masks: dict[str, Mask], study: Study, survey: Survey
) -> tuple[Integers, tuple[Integers, ...]]:
    """Return everyone's outcome in steps, and the numbers that it is made of where there are several."""

    def numbers(name: str) -> Floats:
        return survey.numbers(columns[name], missing_masks[name], study.outcome if name in made else name)

    made = _made(study)
    before = study.before
    own = numbers(study.outcome)
    if study.event is not None:
        return entries(own, survey.events(numbers(study.event.column)), study.event.cut(PARTS)), ()
    if study.denominator is not None:
        below = encoding.to_steps(numbers(study.denominator.column), Range(*study.denominator.range))
        return encoding.to_steps(own, study.outcome_bounds), (below,)
    if study.several is not None:
        rest = study.several.columns[1:]
        more = (encoding.to_steps(numbers(name), study.several.bounds(name)) for name in rest)
        return encoding.to_steps(own, study.outcome_bounds), tuple(more)
    if before is None:
        return encoding.to_steps(own, study.outcome_bounds), ()
    names = made[:1] or before.columns
    earlier = [encoding.clamp(numbers(name), Range(*before.range)) for name in names]
    change = encoding.clamp(own, Range(*before.outcome_range)) - sum(earlier) / len(earlier)
    bounds = Range(*before.levels)
    levels = []
    for name in made[1:] or (*before.columns, study.outcome):
        steps = encoding.to_steps(numbers(name), bounds)
        gap = (
            missing_masks[name]
            if isinstance(survey.rule(study.outcome if name in made else name), Drop)
            else False
        )
        levels.append(np.where(gap, -1, steps))
    return encoding.to_steps(change, study.outcome_bounds), tuple(levels)


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
