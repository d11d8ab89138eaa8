"""Several rows a person: the declaration of how they become one, and the doing of it.

The unit of the guarantee is then a person with all their rows: a row of the reduced table depends on the rows of one
person and on public declarations alone, so that neighbours differ in one row of it. Proof: `person.proof.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import encoding
from counterveil.data.cells import BLANKS, Coded, Column, Mask, Numbers, double_of
from counterveil.data.domains import Range
from counterveil.data.labels import LabelIndex, index_of
from counterveil.data.outcomes import Before, earlier_name, level_name
from counterveil.data.wrong_data import no_person, staggered, varies
from counterveil.errors import Refusal, StudyError, shown

if TYPE_CHECKING:
    from counterveil.data.study import Study

Places: TypeAlias = NDArray[np.intp]

# Rules that need to know which row comes first.
_ORDERED = ("first", "last")
_OUTCOME = ("mean", "sum", "max", "min", "any", "first", "last", "constant")
_TREATMENT = ("constant", "first", "last", "ever")
_NUMBERS = ("constant", "first", "last", "mean", "max", "min")
_LABELS = ("constant", "first", "last")
# Numbers beyond every bound stay so in a sum, and never cancel to no number.
_LARGEST = 1e290


@dataclass(frozen=True, slots=True)
class Person:
    """Which rows belong to one person, and by which rule each column of theirs becomes one value.

    Attributes:
        column: the column that identifies a person.
        rules: the rule of every column of the study, by its name.
        order: the column that puts a person's rows in order; None where no rule needs one.
        most_rows: only a person's first rows count, so many of them; None for all.
        whole_cluster: whether it is a cluster of people whose rows become one.
    """

    column: str
    rules: Mapping[str, str]
    order: str | None = None
    most_rows: int | None = None
    whole_cluster: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read besides those of the study."""
        return (self.column,) if self.order is None else (self.column, self.order)

    def to_dict(self, study: Study) -> dict[str, Any]:
        """Return the declaration as it stands in a study file; rules that hold by default are left out."""
        found: dict[str, Any] = {"column": self.column}
        # Periods order rows by themselves.
        if self.order is not None and (study.before is None or study.before.time is None):
            found["order"] = self.order
        if self.most_rows is not None:
            found["most_rows"] = self.most_rows
        usual = _defaults(study, self.order, self.whole_cluster)
        rules = {name: rule for name, rule in self.rules.items() if rule != usual[name]}
        return found | ({"rules": rules} if rules else {})


def declared(
    study: Study, column: object, rules: object, order: object, most_rows: object, whole_cluster: bool = False
) -> Person | None:
    """Return the declaration, or None where no column identifies a person; raises CV-S016 for one that is invalid.

    With `whole_cluster` the column names clusters, whose rows become one.
    """
    if column is None:
        if (rules, order, most_rows) != (None, None, None):
            raise _invalid("person= beside per_person=, order= and most_rows=", "no person", _FIX)
        return None
    for name in (column, order):
        wrong = not isinstance(name, str) or not name.strip() or name in study.columns
        if wrong and name is not None:
            raise _invalid("the name of a column without another role", shown(name), _FIX)
    if column == order:
        raise _invalid("two different columns as person and order", shown(order), _FIX)
    if most_rows is not None and (
        not isinstance(most_rows, int) or isinstance(most_rows, bool) or most_rows < 1
    ):
        raise _invalid("most_rows=: a whole number from 1 on", shown(most_rows), _FIX)
    if most_rows is not None and order is None:
        raise _invalid(
            "an order beside most_rows=", "no order", "name the column that says which rows come first"
        )
    assert isinstance(column, str)
    assert order is None or isinstance(order, str)
    return Person(column, _rules(study, rules, order, whole_cluster), order, most_rows, whole_cluster)


_FIX = 'for example Study(..., person="patient_id", per_person={{"cost": "sum"}}, order="visit")'
_invalid = Refusal(
    "CV-S016",
    "the declaration of people with several rows is invalid",
    expected="{expected}",
    got="{got}",
    fix="{fix}",
)


def _rules(study: Study, given: object, order: str | None, whole_cluster: bool) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        name = "per_cluster" if whole_cluster else "per_person"
        raise _invalid(f"{name}=: a rule for each column", shown(given), _FIX)
    rules = _defaults(study, order, whole_cluster)
    for name, rule in (given or {}).items():
        allowed = _allowed(study, name) if name in rules else ()
        if rule not in allowed:
            what = f"{name!r}: one of {', '.join(allowed)}" if allowed else "rules for columns of the study"
            raise _invalid(what, f"{shown(name)}: {shown(rule)}", _FIX)
        if rule in _ORDERED and order is None:
            fix = "name the column that puts a person's rows in order: order=..."
            raise _invalid("an order beside 'first' and 'last'", f"{shown(name)}: {shown(rule)}", fix)
        rules[name] = rule
    return rules


def _defaults(study: Study, order: str | None, whole_cluster: bool) -> dict[str, str]:
    """Return the rules of a study that names none: the mean outcome; treatment and covariates do not vary.

    What was measured before does not vary either. People of a cluster differ: the mean of their numbers stands for it.
    """
    others = () if study.several is None else study.several.names
    before = [name for name in study.outcomes if name not in (study.outcome, *others)]
    usual = {study.treatment: "constant", study.outcome: "mean"} | dict.fromkeys(others, "mean")
    usual |= dict.fromkeys((*before, *study.covariates), "constant" if order is None else "first")
    if whole_cluster:
        numbers = (name for name, domain in study.covariates.items() if isinstance(domain, Range))
        usual |= dict.fromkeys((*before, *numbers), "mean")
    if study.event is not None:
        # The end of a person's follow-up, and whether the event happened in it.
        return usual | dict.fromkeys(study.outcomes, "max")
    # A ratio is one of sums.
    return usual if study.per is None else usual | dict.fromkeys(study.outcomes, "sum")


def _allowed(study: Study, name: str) -> tuple[str, ...]:
    if name in study.outcomes:
        return _OUTCOME
    if name == study.treatment:
        return _TREATMENT if study.arms is None else _TREATMENT[:-1]
    return _NUMBERS if isinstance(study.covariates[name], Range) else _LABELS


# Words that end the names of columns which identify people; names are public, and no row is looked at.
_IDENTIFIERS = re.compile(
    r"(?:^|[_.\- ])(?:id|uid|uuid|guid|mrn|ssn|nhs|pid|patient|person|subject|participant|customer|user|worker|student"
    r"|household|member|account|visitor)(?:[_.\- ]?(?:id|no|nr|num|number|key|code))?$",
    re.IGNORECASE,
)


def identifiers(names: Iterable[str]) -> list[str]:
    """Return the names of columns that look as if they identified people."""
    # In camel case words are told apart by their capitals: patientId.
    return [name for name in names if _IDENTIFIERS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))]


# The doing of it.


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that hold a value of one column, person by person and in order within each."""

    rows: Places
    starts: Places  # the first of each person in `rows`
    ends: Places

    @property
    def empty(self) -> Mask:
        """Which people have no value."""
        return np.asarray(self.starts == self.ends)

    def reduced(self, values: NDArray[np.float64], by: Callable[..., Any]) -> NDArray[np.float64]:
        """Return a ufunc's reduction of each person's values, 0 for people without any."""
        found = np.zeros(len(self.starts))
        some = ~self.empty
        if some.any():
            found[some] = by(values[self.rows], self.starts[some])
        return found


def one_row_per_person(columns: dict[str, Column], study: Study) -> dict[str, Column]:
    """Return the study's columns with one row for each person, in the order of what identifies them.

    Missing values are passed over; a person without any value of a column has it missing.
    """
    assert study.person is not None
    person = study.person
    place, people = places(columns[person.column], person.column)
    rank = np.zeros(len(place)) if person.order is None else _ranks(columns[person.order])
    rows = np.lexsort((rank, place))
    if person.most_rows is not None:
        first = np.searchsorted(place[rows], np.arange(people))
        rows = rows[np.arange(len(rows)) - first[place[rows]] < person.most_rows]
    found: dict[str, Column] = {}
    for name in (*study.columns, *study.cluster_columns):
        index = _index(study, name)
        hole = encoding.gaps(columns[name], index)
        own = _of_people(rows[~hole[rows]], place, people)
        if name in study.columns:
            found[name] = _reduced(columns[name], hole, own, person.rules[name], name, index)
        else:
            # A person belongs to one cluster.
            found[name] = _one_cluster(columns[name], own, name)
    if study.before is not None and study.before.time is not None:
        found |= _by_period(columns, study, study.before, rows, (place, people))
    return found


def _one_cluster(column: Column, own: _Rows, name: str) -> Column:
    """Return the place of each person's cluster among all of them, or raise CV-D020 for one who is in two."""
    place = places(column, name)[0]
    _check_same(place, own, name)
    return Numbers(place[own.rows[own.starts]], np.zeros(len(own.starts), np.bool_))


def _of_people(held: Places, place: Places, people: int) -> _Rows:
    edges = np.searchsorted(place[held], np.arange(people + 1))
    return _Rows(held, edges[:-1], edges[1:])


def _by_period(
    columns: dict[str, Column], study: Study, before: Before, rows: Places, who: tuple[Places, int]
) -> dict[str, Column]:
    """Return everyone's outcome after treatment and before it, and that of every period, by the outcome's rule."""
    assert study.person is not None
    assert before.time is not None
    index, name = index_of(before.labels(study.outcome)), study.outcome
    times = columns[before.time]
    period = encoding.codes(times, encoding.gaps(times, index), index, None)
    hole = encoding.gaps(columns[name], None)
    held, rule = rows[~hole[rows]], study.person.rules[name]
    _check_adoption(columns[study.treatment], study, rows, period, who)

    def over(chosen: Mask) -> Column:
        own = _of_people(held[chosen[held]], *who)
        return _reduced(columns[name], hole, own, rule, name, None)

    found = {name: over(period >= before.earlier)}
    found[earlier_name(name)] = over((period >= 0) & (period < before.earlier))
    return found | {level_name(name, each): over(period == each) for each in range(len(index.labels))}


def _check_adoption(
    column: Column, study: Study, rows: Places, period: NDArray[np.int64], who: tuple[Places, int]
) -> None:
    """Raise CV-D021 where treatment that varies over time does not start for all at the end of the first periods."""
    assert study.person is not None
    assert study.before is not None
    if study.person.rules[study.treatment] != "ever":
        return
    index, (place, people) = index_of(study.treatment_labels), who
    treated = encoding.codes(column, encoding.gaps(column, index), index, None) == 0
    ever = np.zeros(people, dtype=np.bool_)
    ever[place[rows[treated[rows]]]] = True
    inside = rows[period[rows] >= 0]
    # Someone who is ever treated is so in each later period, and in no earlier one.
    wanted = ever[place[inside]] & (period[inside] >= study.before.earlier)
    if (treated[inside] != wanted).any():
        raise staggered(study.treatment)


def _reduced(
    column: Column, hole: Mask, own: _Rows, rule: str, name: str, index: LabelIndex | None
) -> Column:
    """Return one value a person."""
    if rule in ("first", "constant"):
        picked = own.starts
        if rule == "constant":
            _check_constant(column, hole, own, name, index)
    elif rule == "last":
        picked = own.ends - 1
    elif rule == "ever":
        assert index is not None
        # A row in the treated arm, which has the first label, where the person has one.
        treated = encoding.codes(column, hole, index, None)[own.rows] == 0
        last = np.maximum.accumulate(np.where(treated, np.arange(len(treated)), -1))
        found = last[own.ends - 1] if len(last) else own.starts
        picked = np.where(~own.empty & (found >= own.starts), found, own.starts)
    else:
        values = np.clip(encoding.numbers(column, hole, 0.0, name), -_LARGEST, _LARGEST)
        return Numbers(_summary(values, own, rule), own.empty)
    safe = np.where(own.empty, 0, picked)
    return _taken(column, own.rows[safe] if len(own.rows) else safe, own.empty)


def _summary(values: NDArray[np.float64], own: _Rows, rule: str) -> NDArray[np.float64]:
    if rule == "any":
        return own.reduced((values != 0).astype(np.float64), np.maximum.reduceat)
    if rule in ("max", "min"):
        return own.reduced(values, np.maximum.reduceat if rule == "max" else np.minimum.reduceat)
    total = own.reduced(values, np.add.reduceat)
    return total if rule == "sum" else total / np.maximum(own.ends - own.starts, 1)


def _check_constant(column: Column, hole: Mask, own: _Rows, name: str, index: LabelIndex | None) -> None:
    """Raise CV-D020 where a person has two values."""
    if index is not None:
        values: NDArray[Any] = encoding.codes(column, hole, index, None)
    else:
        values = encoding.numbers(column, hole, 0.0, name)
    _check_same(values, own, name)


def _check_same(values: NDArray[Any], own: _Rows, name: str) -> None:
    ordered = values[own.rows]
    changed = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if not np.isin(changed, own.starts).all():
        raise varies(name)


def _taken(column: Column, rows: Places, empty: Mask) -> Column:
    if isinstance(column, Coded):
        return Coded(np.where(empty, -1, column.codes[rows]) if len(column) else column.codes, column.cells)
    text = None if column.text is None else column.text[rows] & ~empty
    return Numbers(column.values[rows], empty, text)


def _index(study: Study, name: str) -> LabelIndex | None:
    if name == study.treatment:
        return index_of(study.treatment_labels)
    domain = study.covariates.get(name)
    return None if domain is None or isinstance(domain, Range) else index_of(domain.labels)


def places(column: Column, name: str) -> tuple[Places, int]:
    """Return each row's person or cluster, numbered by what identifies them, and how many there are.

    Rows that name none raise CV-D019.
    """
    if np.count_nonzero(encoding.gaps(column, None)):
        raise no_person(name)
    if isinstance(column, Numbers):
        known, place = np.unique(column.values, return_inverse=True)
        return place.astype(np.intp), len(known)
    # By what is written: the number 7 and the text "7" are one person.
    texts = [str(cell).strip(BLANKS) for cell in column.cells]
    # Shorter texts first, so that whole numbers stand in the same order as text and as numbers.
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts), key=lambda text: (len(text), text)))}
    of_cell = np.array([ranks[text] for text in texts], dtype=np.intp)
    present, place = np.unique(of_cell[column.codes], return_inverse=True)
    return place.astype(np.intp), len(present)


def first_of_each(column: Column, name: str) -> Mask:
    """Return which rows are the first of their person, as they come in the data."""
    place, _ = places(column, name)
    first = np.zeros(len(place), dtype=np.bool_)
    first[np.unique(place, return_index=True)[1]] = True
    return first


def _ranks(column: Column) -> NDArray[np.float64]:
    """Return numbers that order rows: those with numbers by their value, then those with texts, such as dates.

    Which of two rows comes first depends on these two alone: what others hold must not turn numbers into texts. Rows
    without a value come last.
    """
    if isinstance(column, Numbers):
        values = column.values.astype(np.float64)
        return np.where(column.missing, np.inf, values)
    numbers = [double_of(cell) for cell in column.cells]
    keys = [
        (1, 0.0, str(cell)) if number is None else (0, number, "")
        for cell, number in zip(column.cells, numbers, strict=True)
    ]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    per_cell = np.array([places[key] for key in keys], dtype=np.float64)
    return column.take(per_cell, for_missing=np.inf)


def not_in_spark(person: Person) -> StudyError:
    """Return CV-S017, for rows that stay where they are."""
    return StudyError(
        "CV-S017",
        "people with several rows are not reduced to one row each in Spark",
        expected="a file, a frame, a DuckDB relation or a PostgreSQL table; or a table with one row per person",
        got=f"person={person.column!r} with rows in Spark",
        fix="make a view with one row per person and leave person= out: a row of it is then all that one person "
        "can change",
    )
