"""Outcomes that are times until an event, or until people were lost from sight: a public grid of time cells.

The outcome is the time of follow-up, and another column says whether it ended with the event. Both are private. A row
becomes one entry of a table of J cells: the event in a cell, censored in a cell, or followed to the horizon. Proof:
`outcomes.proof.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from counterveil.data.domains import is_name, listed
from counterveil.data.labels import plain_number
from counterveil.errors import ParameterError, refusal, shown
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import exact, show

# Cells of a grid that is not declared, and the most there may be: noise grows with their number.
USUAL_CELLS, MOST_CELLS = 12, 200
# Equal parts of a cell by which rows are told apart; a release counts by these or by larger parts.
PARTS = 16


@dataclass(frozen=True, slots=True)
class TimeToEvent:
    """The column that says whether the event happened, and the ends of the time cells; the last is the horizon."""

    column: str
    grid: tuple[Fraction, ...]

    KEYS: ClassVar = ("event", "horizon", "grid")

    @classmethod
    def declared(
        cls, event: object, horizon: object, grid: object, others: Mapping[str, object]
    ) -> TimeToEvent | None:
        """Return the declaration, None where outcomes are no times to an event; raises CV-S090 for an invalid one.

        `others` are declarations that do not go with it.
        """
        if event is None:
            beside = [name for name, value in (("horizon", horizon), ("grid", grid)) if value is not None]
            if beside:
                raise refusal("CV-S090", expected=f"event= beside {' and '.join(beside)}", got="no event=")
            return None
        if not is_name(event):
            expected = "event=: the column that is 1 where the event happened and 0 where not"
            raise refusal("CV-S090", expected=expected, got=shown(event))
        for name, value in others.items():
            if value is not None:
                raise refusal(
                    "CV-S090",
                    expected=f"a study of two arms with event= and without {name}",
                    got=f"{name}={shown(value)}",
                )
        return cls(event, _grid(horizon, grid))

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
        """The number of entries of a table: events by cell, censorings by cell, followed to the horizon."""
        return 2 * self.cells + 1

    @property
    def edges(self) -> tuple[float, ...]:
        """Time 0 and the ends of all cells."""
        return (0.0, *map(float, self.grid))

    def cut(self, parts: int) -> TimeToEvent:
        """Return the declaration with every cell cut into so many equal parts."""
        return _cut(self, parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        if self.grid == _even(self.horizon, self.cells):
            return {"event": self.column, "horizon": plain_number(self.horizon), "grid": self.cells}
        return {"event": self.column, "grid": [plain_number(end) for end in self.grid]}

    def public_fact(self, outcome: str) -> str:
        """Return what is public of the times: the grid on which they are looked at."""
        ends = listed([show(end) for end in self.grid])
        return (
            f"the time cells of {outcome!r}, which end at {ends}: stated beforehand; of a row only its cell counts, "
            f"or which of up to {PARTS} equal parts of the cell it lies in, "
            f"whether {self.column!r} is 1 there, or that it was followed to {show(self.horizon)}"
        )


@lru_cache(maxsize=32)
def _cut(declared: TimeToEvent, parts: int) -> TimeToEvent:
    ends = (Fraction(0), *declared.grid)
    grid = (
        early + (late - early) * Fraction(part, parts)
        for early, late in pairwise(ends)
        for part in range(1, parts + 1)
    )
    return TimeToEvent(declared.column, tuple(grid))


@lru_cache(maxsize=32)
def joined_entries(cells: int, parts: int) -> Integers:
    """Return for every entry of a table by `PARTS` of cells that of the table by so many parts, a divisor of them."""
    place = np.arange(cells * PARTS) * parts // PARTS
    found = np.concatenate([place, cells * parts + place, [2 * cells * parts]])
    found.setflags(write=False)
    return found


def _grid(horizon: object, grid: object) -> tuple[Fraction, ...]:
    end = None if horizon is None else _time(horizon, "horizon")
    if grid is None or (isinstance(grid, int) and not isinstance(grid, bool)):
        cells = USUAL_CELLS if grid is None else grid
        if end is None:
            raise refusal("CV-S090", expected="horizon= beside a number of cells", got="no horizon=")
        if not 1 <= cells <= MOST_CELLS:
            raise refusal("CV-S090", expected=f"1 to {MOST_CELLS} cells", got=f"grid={shown(grid)}")
        return _even(end, cells)
    if not isinstance(grid, tuple | list) or not 1 <= len(grid) <= MOST_CELLS:
        raise refusal(
            "CV-S090",
            expected=f"grid=: the ends of 1 to {MOST_CELLS} cells, or their number",
            got=f"grid={shown(grid)}",
        )
    found = tuple(_time(one, "grid") for one in grid)
    if any(later <= earlier for earlier, later in pairwise(found)):
        raise refusal("CV-S090", expected="grid=: times that rise", got=f"grid={shown(grid)}")
    if end is not None and end != found[-1]:
        raise refusal(
            "CV-S090",
            expected="the last time of grid= as the horizon, or no horizon=",
            got=f"horizon={shown(horizon)}",
        )
    return found


def _even(horizon: Fraction, cells: int) -> tuple[Fraction, ...]:
    """Return the ends of so many cells of one length."""
    return tuple(horizon * Fraction(place, cells) for place in range(1, cells + 1))


def _time(value: object, name: str) -> Fraction:
    try:
        found = exact(value, name)  # type: ignore[arg-type]
    except ParameterError:
        found = Fraction(0)
    if found <= 0:
        raise refusal("CV-S090", expected=f"{name}=: times above 0", got=shown(value))
    return found


# Proof: outcomes.proof.md
def entries(times: Floats, events: Floats, declared: TimeToEvent) -> Integers:
    """Return the entry of every row: its cell for an event, J plus its cell where it was censored, else 2 J.

    Cells hold their right end. Whoever was followed beyond the horizon, or to it without the event, has no cell.
    """
    cells = declared.cells
    place = np.searchsorted(np.array(declared.edges[1:]), times, side="left")
    happened = events > 0
    last = (place >= cells) | (~happened & (times >= declared.edges[-1]))
    found = np.where(happened, place, place + cells)
    return np.where(last, 2 * cells, found).astype(np.int64)


def wrong_events(events: Floats) -> bool:
    """Return whether a column of events holds anything but 0 and 1."""
    return bool(((events != 0) & (events != 1)).any())


def refuse_censored(event: TimeToEvent | None, question: str) -> None:
    """Raise CV-S091 where a question about outcomes is asked of times to an event, or the other way round."""
    if (event is not None) == (question == "survival"):
        return
    if event is None:
        raise refusal("CV-S091b")
    raise refusal("CV-S091", event=event.column)
