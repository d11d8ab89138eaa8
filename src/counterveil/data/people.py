"""One row for each person, from all of theirs, by the declared rules; and what orders people and their rows.

A row of the reduced table depends on the rows of one person and on public declarations alone, so that neighbours differ
in one row of it. It does not depend on where those rows stand either: equal people have equal rows, to the bit,
wherever their rows lie and in whatever order they come. Which of two rows or people comes first depends on these two
alone, whatever container holds them: what one cell holds may turn a column of numbers into one of texts, or whole
numbers into doubles. Proof: `person.proof.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import domains as encoding
from counterveil.data.cells import (
    BLANKS,
    EXACT_DOUBLES,
    LONGEST_SCIENTIFIC,
    SCIENTIFIC,
    SPELLED,
    TRUTHS,
    Coded,
    Column,
    Mask,
    Numbers,
    double_of,
)
from counterveil.data.domains import LabelIndex, index_of, number_of
from counterveil.data.outcomes import Before, earlier_name, level_name
from counterveil.data.study import Study
from counterveil.errors import CounterveilError, DataError, refusal

Places: TypeAlias = NDArray[np.intp]
# "7", "007", "7.0" and "7e0" are one person, and so are "true" and a truth value: readers make numbers of them until
# one cell of the column is another text. The same in SQL: `relations.order_of_people`.
_SPELLED = re.compile(SPELLED)
_SCIENTIFIC = re.compile(SCIENTIFIC)
_TRUTHS = [(re.compile(word), place) for word, place in zip(TRUTHS, ("1", "0"), strict=True)]


def places(column: Column, name: str) -> tuple[Places, int]:
    """Return each row's person or cluster, numbered by what identifies them, and how many there are.

    Whole numbers stand in the order of their values, negative ones behind all others. Rows that name nobody raise
    CV-D019.
    """
    if nobody(column).any():
        raise refusal("CV-D019", name=name)
    if isinstance(column, Numbers):
        whole = column.values if column.values.dtype.kind in "iu" else column.values.astype(np.int64)
        known, place = np.unique(whole, return_inverse=True)
        negative = int(np.count_nonzero(known < 0))
        place = np.where(place < negative, len(known) - 1 - place, place - negative)
        return place.astype(np.intp), len(known)
    keys = [_sorted_by(cell) for cell in column.cells]
    rank = {key: at for at, key in enumerate(sorted(set(keys)))}
    of_cell = np.array([rank[key] for key in keys], dtype=np.intp)
    present, place = np.unique(of_cell[column.codes], return_inverse=True)
    return place.astype(np.intp), len(present)


def _sorted_by(cell: object) -> tuple[bool, int, str]:
    text = identity(cell) or ""
    return text.startswith("-"), len(text), text


def nobody(column: Column) -> Mask:
    """Return which rows name no person: gaps, and floats that are no whole number or may stand for several."""
    if isinstance(column, Numbers):
        values = column.values
        if values.dtype.kind != "f":
            return column.missing
        return np.asarray(column.missing | ~((np.abs(values) < EXACT_DOUBLES) & (np.floor(values) == values)))
    unnamed = np.array([identity(cell) is None for cell in column.cells], dtype=np.bool_)
    return np.asarray(encoding.gaps(column) | column.take(unnamed, for_missing=True))


def identity(cell: object) -> str | None:
    """Return the text that identifies a person, one for all spellings of a number; None for a cell that names nobody.

    A float names somebody where it is a whole number that no other one is rounded to.
    """
    if isinstance(cell, str):
        text = cell.strip(BLANKS)
    elif isinstance(cell, float | np.floating):
        number = float(cell)
        return str(int(number)) if abs(number) < EXACT_DOUBLES and number.is_integer() else None
    else:
        exact = number_of(cell)
        if exact is None:
            return None
        try:
            text = format(cell, "f") if isinstance(cell, Decimal) else str(exact)
        except ValueError:
            # More digits than Python writes.
            return None
    if _SCIENTIFIC.fullmatch(text) and len(text) <= LONGEST_SCIENTIFIC:
        return identity(float(text)) or text
    if not _SPELLED.fullmatch(text):
        return next((place for word, place in _TRUTHS if word.fullmatch(text)), text)
    whole, _, part = text.lstrip("+-").partition(".")
    whole = whole.lstrip("0") or "0"
    part = part.rstrip("0")
    size = f"{whole}.{part}" if part else whole
    return f"-{size}" if text.startswith("-") and size != "0" else size


def first_of_each(column: Column, name: str) -> Mask:
    """Return which rows are the first of their person, as they come in the data."""
    place, _ = places(column, name)
    first = np.zeros(len(place), dtype=np.bool_)
    first[np.unique(place, return_index=True)[1]] = True
    return first


def ranks(column: Column) -> NDArray[np.intp]:
    """Return numbers that order rows: by numbers, then by texts, such as dates; then infinity, which may be a moment.

    Rows without a value come last. Numbers are those of the nearest doubles, which is what a gap elsewhere may make of
    whole numbers.
    """
    if isinstance(column, Numbers):
        known, place = np.unique(column.values.astype(np.float64), return_inverse=True)
        return np.where(column.missing, len(known), place)
    keys = [_key(cell, double_of(cell)) for cell in column.cells]
    place_of = {key: place for place, key in enumerate(sorted(set(keys)))}
    per_cell = np.array([place_of[key] for key in keys], dtype=np.intp)
    return np.where(encoding.gaps(column), len(keys), column.take(per_cell, for_missing=0))


def _key(cell: object, double: float | None) -> tuple[int, float, str]:
    return (1, 0.0, str(cell)) if double is None else (2 if double == np.inf else 0, double, "")


Columns = dict[str, Column]
_WHERE = "a source that was to put rows in the order of their people"


def whole_people(parts: Iterator[Columns], person: str) -> Iterator[Columns]:
    """Yield the same rows with all rows of a person in one part.

    Rows must come in the order of `places`: a person who came up twice would be counted as two. Rows of nobody are
    passed on, to be refused. No more is held than one part and the rows of the person at its end.
    """
    waiting: list[Columns] = []
    last: tuple[bool, int, str] | None = None
    for part in parts:
        rows = len(part[person])
        if not rows:
            continue
        if nobody(part[person]).any():
            yield part
            continue
        place, _ = places(part[person], person)
        first = _who(part[person], 0)
        if (np.diff(place) < 0).any() or (last is not None and first < last):
            raise refusal("CV-D016", kind=_WHERE)
        start = int(np.searchsorted(place, place[-1]))
        if start or (last is not None and first != last):
            ended = [*waiting, _some(part, slice(0, start))] if start else waiting
            yield joined_columns(ended)
            waiting = []
        waiting.append({name: _compact(column) for name, column in _some(part, slice(start, rows)).items()})
        last = _who(part[person], rows - 1)
    if waiting:
        yield joined_columns(waiting)


def _who(column: Column, row: int) -> tuple[bool, int, str]:
    """Return what a row's person is ordered by, as in `places`."""
    return _sorted_by(
        column.values[row].item() if isinstance(column, Numbers) else column.cells[column.codes[row]]
    )


def _some(part: Columns, rows: slice) -> Columns:
    chosen = np.arange(rows.start, rows.stop)
    return {name: column.keep(chosen) for name, column in part.items()}


def _compact(column: Column) -> Column:
    """Return the same rows without the cells that none of them holds."""
    if isinstance(column, Numbers):
        return column
    held, codes = np.unique(column.codes, return_inverse=True)
    gap = int(len(held) > 0 and held[0] < 0)
    return Coded(codes.astype(np.int64) - gap, tuple(column.cells[code] for code in held[gap:]))


def joined_columns(parts: list[Columns]) -> Columns:
    """Return the rows of all parts, one after the other."""
    return (
        parts[0] if len(parts) == 1 else {name: _joined([part[name] for part in parts]) for name in parts[0]}
    )


def _joined(columns: list[Column]) -> Column:
    numbers = [column for column in columns if isinstance(column, Numbers)]
    if len(numbers) == len(columns):
        texts = [np.zeros(len(one), np.bool_) if one.text is None else one.text for one in numbers]
        return Numbers(
            np.concatenate([one.values for one in numbers]),
            np.concatenate([one.missing for one in numbers]),
            None if all(one.text is None for one in numbers) else np.concatenate(texts),
        )
    cells: tuple[object, ...] = ()
    codes = []
    for column in columns:
        assert isinstance(column, Coded)
        codes.append(np.where(column.codes < 0, -1, column.codes + len(cells)))
        cells += column.cells
    return Coded(np.concatenate(codes), cells)


# Numbers beyond every bound stay so in a sum, and never cancel to no number.
_LARGEST = 1e290
# Stands for the periods in the place of a column; no column is called so.
PERIODS = "\n"


class UnfitError(Exception):
    """Rows that cannot become one for each person; `place` is the smaller, the earlier the problem is reported.

    Parts of the data with different people have the places of their own first problems, and the smallest of them is
    that of all rows together.
    """

    def __init__(self, study: Study, name: str, varied: bool = False) -> None:
        names = (*_reduced_columns(study), PERIODS)
        self.place = 0 if name not in names else 1 + 2 * names.index(name) + varied


def _reduced_columns(study: Study) -> tuple[str, ...]:
    return (*study.columns, *study.cluster_columns)


def unfit(study: Study, place: int) -> CounterveilError:
    """Return the refusal for the problem at a place: rows of nobody, texts for numbers, values that vary, periods."""
    assert study.person is not None
    names = _reduced_columns(study)
    if place == 0:
        return refusal("CV-D019", name=study.person.column)
    column, varied = divmod(place - 1, 2)
    if column == len(names):
        return refusal("CV-D021", name=study.treatment)
    if varied:
        return refusal("CV-D020", name=names[column])
    row = "CV-D019" if names[column] in study.cluster_columns else "CV-D002"
    return refusal(row, name=names[column])


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

    def only(self, kept: Mask) -> _Rows:
        """Return those of the rows that are marked, person by person."""
        edges = np.append(0, np.cumsum(kept))
        return _Rows(self.rows[kept], edges[self.starts], edges[self.ends])

    def last(self, chosen: Mask, otherwise: Places) -> Places:
        """Return the place in `rows` of each person's last row among the marked ones."""
        if not len(chosen):
            return otherwise
        latest = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))[self.ends - 1]
        return np.where(~self.empty & (latest >= self.starts), latest, otherwise)

    def reduced(self, values: NDArray[np.float64], by: Callable[..., Any]) -> NDArray[np.float64]:
        """Return a ufunc's reduction of each person's values, 0 for people without any."""
        return self._reduced(values[self.rows], by)

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of each person's values, added up by size: in every order of rows it is rounded alike."""
        own = values[self.rows]
        return self._reduced(
            own[np.lexsort((own, np.repeat(np.arange(len(self.starts)), self.ends - self.starts)))],
            np.add.reduceat,
        )

    def _reduced(self, own: NDArray[np.float64], by: Callable[..., Any]) -> NDArray[np.float64]:
        found = np.zeros(len(self.starts))
        some = ~self.empty
        if some.any():
            found[some] = by(own, self.starts[some])
        return found


def one_row_per_person(columns: dict[str, Column], study: Study) -> dict[str, Column]:
    """Return the study's columns with one row for each person, in the order of what identifies them.

    Missing values are passed over; a person without any value of a column has it missing. Raises CV-D002 and CV-D019
    to CV-D021.
    """
    try:
        return reduced(columns, study)
    except UnfitError as fault:
        raise unfit(study, fault.place) from None


def reduced(columns: dict[str, Column], study: Study) -> dict[str, Column]:
    """Return the same for rows that hold all those of some people, or raise `UnfitError`."""
    assert study.person is not None
    person = study.person
    place, people = _identified(columns[person.column], study, person.column)
    rows = _in_order(columns, study, place)
    if person.max_rows_per_person is not None:
        first = np.searchsorted(place[rows], np.arange(people))
        rows = rows[np.arange(len(rows)) - first[place[rows]] < person.max_rows_per_person]
    found: dict[str, Column] = {}
    for name in _reduced_columns(study):
        missing = encoding.gaps(columns[name])
        own = _of_people(rows[~missing[rows]], place, people)
        if name in study.columns:
            found[name] = _one_value(columns[name], missing, own, name, study)
        else:
            # A person belongs to one cluster.
            found[name] = _one_cluster(columns[name], own, name, study)
    if study.before is not None and study.before.time is not None:
        found |= _by_period(columns, study, study.before, rows, (place, people))
    return found


def _identified(column: Column, study: Study, name: str) -> tuple[Places, int]:
    try:
        return places(column, name)
    except DataError:
        raise UnfitError(study, name) from None


# Proof: person.proof.md
def _in_order(columns: dict[str, Column], study: Study, place: Places) -> Places:
    """Return the rows person by person, each one's in their order; rows at the same place in it by what they mean.

    Outcomes count last, so that what else is taken from rows depends on no outcome.
    """
    assert study.person is not None
    order = study.person.order
    if order is None:
        # Rules that need no order take the same from rows in any.
        return np.argsort(place, kind="stable")
    rank = ranks(columns[order])
    rows = np.lexsort((rank, place))
    tied = np.zeros(len(rows), dtype=np.bool_)
    tied[1:] = (place[rows][1:] == place[rows][:-1]) & (rank[rows][1:] == rank[rows][:-1])
    if not tied.any():
        return rows
    spots = np.flatnonzero(tied | np.append(tied[1:], False))
    keys: list[NDArray[Any]] = [
        _identified(columns[name], study, name)[0][rows[spots]] for name in study.cluster_columns
    ]
    for name in (study.treatment, *study.covariates, *study.outcomes):
        keys += _meaning(columns[name].keep(rows[spots]), study._label_index(name))
    rows[spots] = rows[spots][np.lexsort((*reversed(keys), np.cumsum(~tied)[spots]))]
    return rows


def _meaning(column: Column, index: LabelIndex | None) -> tuple[NDArray[Any], ...]:
    """Return keys, the first counting most, that are equal for cells that mean the same to a study."""
    missing = encoding.gaps(column)
    if index is not None:
        return missing, *_labels(column, missing, index)
    # Texts that are no numbers are alike: some sources read no more of them.
    if isinstance(column, Numbers):
        text = np.zeros_like(missing) if column.text is None else column.text
        values = column.values.astype(np.float64)
    else:
        doubles = [double_of(cell) for cell in column.cells]
        text = column.take(np.array([each is None for each in doubles], np.bool_), for_missing=False)
        values = column.take(np.array([each or 0.0 for each in doubles], np.float64), for_missing=0.0)
    return missing, text & ~missing, np.where(missing | text, 0.0, values)


def _labels(column: Column, missing: Mask, index: LabelIndex) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the places of labels, -1 for those that are not declared, and what tells the latter apart."""
    code = encoding.codes(column, missing, index, None)
    return code, np.where((code < 0) & ~missing, ranks(column), 0)


def _one_cluster(column: Column, own: _Rows, name: str, study: Study) -> Column:
    """Return the place of each person's cluster among all of them; one who is in two is refused."""
    place = _identified(column, study, name)[0]
    _check_same(place, own, name, study)
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
    index = index_of(before.labels(study.outcome))
    name = study.outcome
    times = columns[before.time]
    period = encoding.codes(times, encoding.gaps(times), index, None)
    missing = encoding.gaps(columns[name])
    held = rows[~missing[rows]]
    _check_adoption(columns[study.treatment], study, rows, period, who)

    def over(chosen: Mask) -> Column:
        own = _of_people(held[chosen[held]], *who)
        return _one_value(columns[name], missing, own, name, study)

    found = {name: over(period >= before.earlier)}
    found[earlier_name(name)] = over((period >= 0) & (period < before.earlier))
    return found | {level_name(name, each): over(period == each) for each in range(len(index.labels))}


def _check_adoption(
    column: Column, study: Study, rows: Places, period: NDArray[np.int64], who: tuple[Places, int]
) -> None:
    """Refuse data where treatment that varies over time does not start for all at the end of the first periods."""
    assert study.person is not None
    assert study.before is not None
    if study.person.rules[study.treatment] != "ever":
        return
    index, (place, people) = study.treatment_index, who
    treated = encoding.codes(column, encoding.gaps(column), index, None) == 0
    ever = np.zeros(people, dtype=np.bool_)
    ever[place[rows[treated[rows]]]] = True
    inside = rows[period[rows] >= 0]
    # Someone who is ever treated is so in each later period, and in no earlier one.
    wanted = ever[place[inside]] & (period[inside] >= study.before.earlier)
    if (treated[inside] != wanted).any():
        raise UnfitError(study, PERIODS)


def _one_value(column: Column, missing: Mask, own: _Rows, name: str, study: Study) -> Column:
    """Return one value a person, by the column's rule."""
    assert study.person is not None
    rule = study.person.rules[name]
    index = study._label_index(name)
    if rule in ("first", "constant"):
        picked = own.starts
        if rule == "constant":
            _check_constant(column, missing, own, name, study)
    elif rule == "last":
        picked = own.ends - 1
    elif rule == "ever":
        assert index is not None
        picked = _ever(_labels(column, missing, index), own, name, study)
    else:
        values = np.clip(_numbers(column, missing, name, study), -_LARGEST, _LARGEST)
        return Numbers(_summary(values, own, rule), own.empty)
    safe = np.where(own.empty, 0, picked)
    return _taken(column, own.rows[safe] if len(own.rows) else safe, own.empty)


def _ever(labels: tuple[NDArray[Any], NDArray[Any]], own: _Rows, name: str, study: Study) -> Places:
    """Return a treated row of each person who has one, and of the others any row, which all have the same label.

    Where the control's label is declared, a row with another label stands for whoever has one, and is refused.
    """
    code, other = labels
    strange = code[own.rows] < 0
    _check_same(other, own.only(strange), name, study)
    found = own.last(code[own.rows] == 0, own.starts)
    return found if study.control is None else own.last(strange, found)


def _summary(values: NDArray[np.float64], own: _Rows, rule: str) -> NDArray[np.float64]:
    if rule == "any":
        return own.reduced((values != 0).astype(np.float64), np.maximum.reduceat)
    if rule in ("max", "min"):
        return own.reduced(values, np.maximum.reduceat if rule == "max" else np.minimum.reduceat)
    total = own.total(values)
    return total if rule == "sum" else total / np.maximum(own.ends - own.starts, 1)


def _numbers(column: Column, missing: Mask, name: str, study: Study) -> NDArray[np.float64]:
    try:
        return encoding.numbers(column, missing, 0.0, name)
    except DataError:
        raise UnfitError(study, name) from None


def _check_constant(column: Column, missing: Mask, own: _Rows, name: str, study: Study) -> None:
    """Refuse data where a person has two values."""
    index = study._label_index(name)
    if index is None:
        _check_same(_numbers(column, missing, name, study), own, name, study)
        return
    code, other = _labels(column, missing, index)
    _check_same(code, own, name, study)
    if name == study.treatment:
        # Labels of a covariate that are not declared may all mean one; those of a treatment are two.
        _check_same(other, own, name, study)


def _check_same(values: NDArray[Any], own: _Rows, name: str, study: Study) -> None:
    ordered = values[own.rows]
    changed = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if not np.isin(changed, own.starts).all():
        raise UnfitError(study, name, varied=True)


def _taken(column: Column, rows: Places, empty: Mask) -> Column:
    if isinstance(column, Coded):
        return Coded(np.where(empty, -1, column.codes[rows]) if len(column) else column.codes, column.cells)
    text = None if column.text is None else column.text[rows] & ~empty
    return Numbers(column.values[rows], empty, text)
