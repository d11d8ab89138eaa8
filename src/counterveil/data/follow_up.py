"""Outcomes that are times until an event, or until people were lost from sight: a public grid of time cells.

The outcome is the time of follow-up, and another column says whether it ended with the event, or with which of
several competing ones. Both are private. A row becomes one entry of a table of J cells: the event of a cause in a
cell, censored in a cell, or followed to the horizon. Proof: `outcomes.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import is_name, listed, plain_number
from counterveil.data.treatment import column_name
from counterveil.data.unknown_arguments import known_fields
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Number, exact, show

# Cells of a grid that is not declared, and the most there may be: noise grows with their number.
USUAL_CELLS, MOST_CELLS = 8, 200
# Equal parts of a cell by which rows are told apart; a release counts by these or by larger parts.
PARTS = 16
# Competing events that there may be.
MOST_CAUSES = 9


@known_fields
@dataclass(frozen=True, slots=True)
class TimeToEvent:
    """The time until an event, or until follow-up ended: the outcome of `cv.survival`.

    Times are looked at on a public grid of cells. What happens after the horizon does not count.

    Parameters
    ----------
    time : str
        Column of the time of follow-up, from 0 on, in the unit of `horizon`.
    event : str
        Column that is 1 where follow-up ended with the event and 0 where it was censored. With `causes` it
        holds 0, or the place of the cause: 1 for the first.
    horizon : int, float, str or Fraction, optional
        End of follow-up, above 0, in the unit of `time`. Needed unless `grid` lists the ends of the cells.
    grid : int or sequence of numbers, default 8
        Number of cells of one length, 1 to 200; or the rising ends of the cells, of which the last is the
        horizon.
    causes : sequence of str, optional
        Names of 2 to 9 competing events.

    Attributes
    ----------
    time, event, horizon, grid, causes
        As declared, numbers in the shortest form that gives them back. `grid` is the number of cells where
        they are of one length, else the ends of all cells.

    Raises
    ------
    CounterveilError
        Names of columns (CV-S004, CV-S090); a grid, horizon or causes that are invalid (CV-S090).

    Examples
    --------
    >>> import counterveil as cv
    >>> outcome = cv.TimeToEvent("days", "died", horizon=365, grid=12)
    >>> study = cv.Study("treated", outcome, assignment=cv.Trial())
    >>> study.event.cells
    12
    >>> cv.TimeToEvent("days", "died", grid=[30, 90, 365]).horizon
    365
    """

    time: str
    event: str
    horizon: Number | None = None
    grid: int | Sequence[Number] | None = None
    causes: Sequence[str] | None = None

    def __post_init__(self) -> None:
        column_name(self.time, "outcome")
        if not is_name(self.event):
            expected = "event=: the column that is 1 where the event happened and 0 where not"
            raise _no_event(expected, shown(self.event))
        ends, causes = _grid(self.horizon, self.grid), _causes(self.causes)
        even = ends == _even(ends[-1], len(ends))
        object.__setattr__(self, "horizon", plain_number(ends[-1]))
        object.__setattr__(self, "grid", len(ends) if even else tuple(map(plain_number, ends)))
        object.__setattr__(self, "causes", causes or None)

    def _attributes(self) -> dict[str, Any]:
        """Return what a study knows of its outcome, by the attributes of `Study`."""
        cells = TimeCells(self.event, _grid(self.horizon, self.grid), _causes(self.causes))
        return {
            "outcome": self.time,
            "outcome_range": (Fraction(0), cells.horizon),
            "event": cells,
        }


@dataclass(frozen=True, slots=True)
class TimeCells:
    """The column that says whether the event happened, and the ends of the time cells; the last is the horizon.

    With `causes`, the column holds 0, or the place of the cause among them: 1 for the first.
    """

    column: str
    grid: tuple[Fraction, ...]
    causes: tuple[str, ...] = ()

    @property
    def horizon(self) -> Fraction:
        """The end of the last cell: what happens later is not looked at."""
        return self.grid[-1]

    @property
    def cells(self) -> int:
        """The number of time cells."""
        return len(self.grid)

    @property
    def entries(self) -> int:
        """The number of entries of a table: events by cause and cell, censorings by cell, followed to the horizon."""
        return (self.kinds + 1) * self.cells + 1

    @property
    def kinds(self) -> int:
        """The number of causes; 1 where there is one event."""
        return max(len(self.causes), 1)

    @property
    def edges(self) -> tuple[float, ...]:
        """Time 0 and the ends of all cells."""
        return (0.0, *map(float, self.grid))

    def cut(self, parts: int) -> TimeCells:
        """Return the declaration with every cell cut into so many equal parts."""
        return _cut(self, parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        found: dict[str, Any] = {"event": self.column}
        if self.grid == _even(self.horizon, self.cells):
            found["horizon"] = plain_number(self.horizon)
            found |= {} if self.cells == USUAL_CELLS else {"grid": self.cells}
        else:
            found |= {"grid": [plain_number(end) for end in self.grid]}
        return found | ({"causes": list(self.causes)} if self.causes else {})

    def public_fact(self, outcome: str) -> str:
        """Return what is public of the times: the grid on which they are looked at."""
        ends = listed([show(end) for end in self.grid])
        return (
            f"the time cells of {outcome!r}, which end at {ends}: stated beforehand; of a row only its cell counts, "
            f"or which of up to {PARTS} equal parts of the cell it lies in, "
            f"whether {self.column!r} is {' or '.join(str(k + 1) for k in range(self.kinds))} there, "
            f"or that it was followed to {show(self.horizon)}"
        )


@lru_cache(maxsize=32)
def _cut(declared: TimeCells, parts: int) -> TimeCells:
    ends = (Fraction(0), *declared.grid)
    grid = (
        early + (late - early) * Fraction(part, parts)
        for early, late in pairwise(ends)
        for part in range(1, parts + 1)
    )
    return TimeCells(declared.column, tuple(grid), declared.causes)


@lru_cache(maxsize=32)
def joined_entries(cells: int, parts: int, kinds: int = 1) -> Integers:
    """Return for every entry of a table by `PARTS` of cells that of the table by so many parts, a divisor of them."""
    place = np.arange(cells * PARTS) * parts // PARTS
    series = [kind * cells * parts + place for kind in range(kinds + 1)]
    found = np.concatenate([*series, [(kinds + 1) * cells * parts]])
    found.setflags(write=False)
    return found


def shared_entries(fine: NDArray[Any], cells: int, parts: int, kinds: int, ends: bool) -> NDArray[Any]:
    """Return tables (B, M) by so many parts of cells, in units of 1 / (2 PARTS), of tables by `PARTS` of cells.

    Someone censored after a part u of a cell counts as u at its end and as 1 - u at its beginning, so that exposure in
    every cell is kept; the last end is the horizon. With `ends`, as one who is censored in that cell.
    """
    joined, later = joined_entries(cells, parts, kinds), np.zeros(fine.shape[1], dtype=np.int64)
    if not ends:
        each = PARTS // parts
        later[-1 - cells * PARTS : -1] = (2 * (np.arange(cells * PARTS) % each) + 1) * parts
    found = np.zeros((joined[-1] + 1, len(fine)), dtype=fine.dtype)
    np.add.at(found, joined, (fine * (2 * PARTS - later)).T)
    np.add.at(found, np.minimum(joined + 1, joined[-1]), (fine * later).T)
    return found.T


def _grid(horizon: object, grid: object) -> tuple[Fraction, ...]:
    end = None if horizon is None else _time(horizon, "horizon")
    if grid is None or (isinstance(grid, int) and not isinstance(grid, bool)):
        cells = USUAL_CELLS if grid is None else grid
        if end is None:
            raise _no_event("horizon= beside a number of cells", "no horizon=")
        if not 1 <= cells <= MOST_CELLS:
            raise _no_event(f"1 to {MOST_CELLS} cells", f"grid={shown(grid)}")
        return _even(end, cells)
    if not isinstance(grid, tuple | list) or not 1 <= len(grid) <= MOST_CELLS:
        raise _no_event(f"grid=: the ends of 1 to {MOST_CELLS} cells, or their number", f"grid={shown(grid)}")
    found = tuple(_time(one, "grid") for one in grid)
    if any(later <= earlier for earlier, later in pairwise(found)):
        raise _no_event("grid=: times that rise", f"grid={shown(grid)}")
    if end is not None and end != found[-1]:
        raise _no_event("the last time of grid= as the horizon, or no horizon=", f"horizon={shown(horizon)}")
    return found


def _causes(causes: object) -> tuple[str, ...]:
    if causes is None:
        return ()
    named = tuple(causes) if isinstance(causes, tuple | list) else ()
    if not (all(map(is_name, named)) and 2 <= len(named) == len(set(named)) <= MOST_CAUSES):
        expected = f"causes=: 2 to {MOST_CAUSES} different names, of 1, 2, ... in the column of events"
        raise _no_event(expected, f"causes={shown(causes)}")
    return named


def _even(horizon: Fraction, cells: int) -> tuple[Fraction, ...]:
    """Return the ends of so many cells of one length, whole numbers where the horizon is one and has so many."""
    ends = (horizon * Fraction(place, cells) for place in range(1, cells + 1))
    return tuple(map(Fraction, map(round, ends) if horizon.denominator == 1 and horizon >= cells else ends))


def _time(value: object, name: str) -> Fraction:
    try:
        found = exact(value, name)  # type: ignore[arg-type]
    except ParameterError:
        found = Fraction(0)
    if found <= 0:
        raise _no_event(f"{name}=: times above 0", shown(value))
    return found


# Proof: outcomes.proof.md
def entries(times: Floats, events: Floats, declared: TimeCells) -> Integers:
    """Return the entry of every row of a table of J cells and K causes.

    It is (k - 1) J plus its cell for an event of cause k, K J plus its cell where it was censored, else (K + 1) J.

    Cells hold their right end. Whoever was followed beyond the horizon, or to it without the event, has no cell.
    """
    cells, kinds = declared.cells, declared.kinds
    place = np.searchsorted(np.array(declared.edges[1:]), times, side="left")
    happened = events > 0
    last = (place >= cells) | (~happened & (times >= declared.edges[-1]))
    found = place + cells * np.where(happened, np.clip(events, 1, kinds) - 1, kinds)
    return np.where(last, (kinds + 1) * cells, found).astype(np.int64)


def wrong_events(events: Floats, kinds: int) -> bool:
    """Return whether a column of events holds anything but 0 and the numbers of its causes."""
    return not np.isin(events, np.arange(kinds + 1)).all()


def refuse_censored(event: TimeCells | None, question: str) -> None:
    """Raise CV-S091 where a question about outcomes is asked of times to an event, or the other way round."""
    if (event is not None) == (question == "survival"):
        return
    if event is None:
        raise refusal("CV-S091b")
    raise refusal("CV-S091", event=event.column)


def _no_event(expected: str, got: str) -> CounterveilError:
    return refusal("CV-S090", expected=expected, got=got)
