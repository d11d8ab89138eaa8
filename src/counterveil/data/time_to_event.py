"""Outcomes that are times until an event, or until people were lost from sight: a public grid of time cells.

The outcome is the time of follow-up, and another column says whether it ended with the event, or with which of several
competing ones. Both are private. A row becomes one entry of a table of J cells: the event of a cause in a cell,
censored in a cell, or followed to the horizon. Proof: `outcomes.proof.md`.
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
# Competing events that there may be.
MOST_CAUSES = 9


@dataclass(frozen=True, slots=True)
class TimeToEvent:
    """The column that says whether the event happened, and the ends of the time cells; the last is the horizon.

    With `causes`, the column holds 0, or the place of the cause among them: 1 for the first.
    """

    column: str
    grid: tuple[Fraction, ...]
    causes: tuple[str, ...] = ()

    KEYS: ClassVar = ("event", "horizon", "grid", "causes")

    @classmethod
    def declared(
        cls, event: object, horizon: object, grid: object, causes: object, others: Mapping[str, object]
    ) -> TimeToEvent | None:
        """Return the declaration, None where outcomes are no times to an event; raises CV-S090 for an invalid one.

        `others` are declarations that do not go with it.
        """
        if event is None:
            given = zip(cls.KEYS[1:], (horizon, grid, causes), strict=True)
            beside = [name for name, value in given if value is not None]
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
        return cls(event, _grid(horizon, grid), _causes(causes))

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

    def cut(self, parts: int) -> TimeToEvent:
        """Return the declaration with every cell cut into so many equal parts."""
        return _cut(self, parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as it stands in a study file."""
        found: dict[str, Any] = {"event": self.column}
        if self.grid == _even(self.horizon, self.cells):
            found |= {"horizon": plain_number(self.horizon), "grid": self.cells}
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
def _cut(declared: TimeToEvent, parts: int) -> TimeToEvent:
    ends = (Fraction(0), *declared.grid)
    grid = (
        early + (late - early) * Fraction(part, parts)
        for early, late in pairwise(ends)
        for part in range(1, parts + 1)
    )
    return TimeToEvent(declared.column, tuple(grid), declared.causes)


@lru_cache(maxsize=32)
def joined_entries(cells: int, parts: int, kinds: int = 1) -> Integers:
    """Return for every entry of a table by `PARTS` of cells that of the table by so many parts, a divisor of them."""
    place = np.arange(cells * PARTS) * parts // PARTS
    series = [kind * cells * parts + place for kind in range(kinds + 1)]
    found = np.concatenate([*series, [(kinds + 1) * cells * parts]])
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


def _causes(causes: object) -> tuple[str, ...]:
    if causes is None:
        return ()
    named = tuple(causes) if isinstance(causes, tuple | list) else ()
    if not (all(map(is_name, named)) and 2 <= len(named) == len(set(named)) <= MOST_CAUSES):
        expected = f"causes=: 2 to {MOST_CAUSES} different names, of 1, 2, ... in the column of events"
        raise refusal("CV-S090", expected=expected, got=f"causes={shown(causes)}")
    return named


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


def refuse_censored(event: TimeToEvent | None, question: str) -> None:
    """Raise CV-S091 where a question about outcomes is asked of times to an event, or the other way round."""
    if (event is not None) == (question == "survival"):
        return
    if event is None:
        raise refusal("CV-S091b")
    raise refusal("CV-S091", event=event.column)
