"""What the answers add up to: a cell for every method, data, guarantee and epsilon, and who is first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import (
    AUTO,
    BOUNDED,
    EPSILONS,
    GUARANTEES,
    OUTCOME,
    UNADJUSTED,
    ZERO,
    counts_at,
    is_ranked,
)
from benchmarks.accuracy.running import Row
from counterveil.reproduce.rivals.catalogue import RIVALS
from counterveil.reproduce.rivals.protocol import Rival

# Answers whose squared error is beyond this many ranges count as this far off: one wild answer says no more.
FARTHEST = 10.0
# Methods with fewer draws are shown and not ranked.
FEWEST = 4
# A lead is due to chance if it is below this many standard errors of the paired differences.
CLEAR = 2.0


@dataclass(frozen=True)
class Cell:
    """One method on one data set at one budget; errors in parts of the outcome's range, nan where there is none.

    `relative` is the median distance to the non-private target, in parts of it. `squares` are the squared errors by
    draw, for paired comparisons.
    """

    draws: int
    rmse: float
    relative: float
    coverage: float
    width: float
    seconds: float
    refusal: str
    squares: dict[int, float]


Key = tuple[str, str, str]  # data, guarantee, epsilon
Cells = dict[Key, dict[str, Cell]]


def cell_of(rows: list[Row]) -> Cell:
    """Return the cell of one method's answers."""
    given = [row for row in rows if not row.refusal]
    refusal = " ".join(sorted({row.refusal for row in rows} - {""}))
    if not given:
        return Cell(0, np.nan, np.nan, np.nan, np.nan, np.nan, refusal, {})
    error = np.clip([row.value - row.truth for row in given], -FARTHEST, FARTHEST)
    gap = np.array([abs(row.value - row.target) / abs(row.target) for row in given])
    ends = np.array([(row.low, row.high) for row in given])
    truth = np.array([row.truth for row in given])
    with_ends = not np.isnan(ends).any()
    covered = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return Cell(
        len(given),
        float(np.sqrt((error**2).mean())),
        float(np.median(gap)),
        float(covered.mean()) if with_ends else np.nan,
        float(np.median(ends[:, 1] - ends[:, 0])) if with_ends else np.nan,
        float(np.median([row.seconds for row in given])),
        refusal,
        {row.draw: float(square) for row, square in zip(given, error**2, strict=True)},
    )


def cells(rows: Iterable[Row], rivals: dict[str, Rival] = RIVALS) -> Cells:
    """Return all cells; methods that need no budget, and pure ones at a delta, stand in every cell they may."""
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.data, row.method, row.guarantee, row.epsilon), []).append(row)
    made = {key: cell_of(group) for key, group in groups.items()}
    found: Cells = {}
    for (data, method, own, epsilon), one in made.items():
        rival = rivals[method]
        free = rival.protects == "nothing"
        budgets = [f"{each:g}" for each in EPSILONS] if free else [epsilon]
        drawn = {key[2] for key in made if key[:2] == (data, method)}
        for guarantee in GUARANTEES:
            if free or own == guarantee or (counts_at(rival, guarantee) and guarantee not in drawn):
                for each in budgets:
                    found.setdefault((data, guarantee, each), {})[method] = one
    # What needs no budget makes no cell of its own.
    return {
        key: methods
        for key, methods in found.items()
        if any(rivals[name].protects != "nothing" for name in methods)
    }


def ranked(cell: dict[str, Cell], rivals: dict[str, Rival] = RIVALS) -> list[str]:
    """Return the private methods whose claim is not refuted, least error first; zero is a yardstick only."""
    able = [name for name, one in cell.items() if is_ranked(rivals[name]) and one.draws >= FEWEST]
    return sorted(able, key=lambda name: cell[name].rmse)


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: who is first, whether auto is, also with a bound on confounding, any of ours, and why not.

    `adjusted` says whether auto is first among methods that adjust, in a trial among all.
    """

    key: Key
    first: str
    auto: bool
    bounded: bool
    ours: bool
    adjusted: bool
    beats_zero: bool
    why: str


def outcome(key: Key, cell: dict[str, Cell], rivals: dict[str, Rival] = RIVALS) -> Outcome:
    """Return how one cell ended; other methods of ours do not compete with auto."""
    auto, order = AUTO[key[1]], ranked(cell, rivals)
    others = [name for name in order if not rivals[name].ours]
    best, mine = others[0] if others else "", cell.get(auto)
    if others and mine is not None and mine.draws:
        # Draws differ in number: who leads auto by most over those of both.
        best = max(others, key=lambda name: mean_gap(mine, cell[name]))

    def leads(name: str, among: list[str]) -> bool:
        own = cell.get(name)
        return own is not None and own.draws > 0 and all(mean_gap(own, cell[one]) <= 0 for one in among)

    adjusting = others if is_trial(key[0]) else [name for name in others if name not in UNADJUSTED]
    first = leads(auto, others)
    better = leads(auto, [ZERO] if ZERO in cell else [])
    return Outcome(
        key,
        auto if first else best,
        first,
        leads(auto if key[1] == OUTCOME else BOUNDED, others),
        any(leads(name, others) for name in order if rivals[name].ours),
        leads(auto, adjusting),
        better,
        "" if first else explained(key, cell, best),
    )


def is_trial(data: str) -> bool:
    """Return whether data are a trial's."""
    return data in DATA and DATA[data].trial


def explained(key: Key, cell: dict[str, Cell], best: str) -> str:
    """Return why auto is not first."""
    auto = AUTO[key[1]]
    mine, other = cell.get(auto), cell[best]
    if mine is None or not mine.draws:
        code = "" if mine is None else f" ({mine.refusal})"
        bounded = cell.get(BOUNDED)
        beside = f"; with a bound on confounding {bounded.rmse:.3g}" if bounded and bounded.draws else ""
        return f"auto refuses{code}: no adjusted answer is affordable; {best} has {other.rmse:.3g}{beside}"
    figures = f"({other.rmse:.3g} and {mine.rmse:.3g}, {mine.draws} draws)"
    if best in UNADJUSTED and not is_trial(key[0]):
        return f"{best} does not adjust: its bias is below what adjusting costs at this budget {figures}"
    if not clear(mine, other):
        return f"{best} leads by less than chance {figures}"
    if np.isnan(other.coverage):
        return f"{best} spends everything on the value and has no interval {figures}"
    return f"{best} is more accurate {figures}"


def gaps(mine: Cell, other: Cell) -> NDArray[np.float64]:
    """Return by how much squared errors exceed the other's, over the draws that both answered."""
    both = sorted(set(mine.squares) & set(other.squares))
    return np.array([mine.squares[draw] - other.squares[draw] for draw in both])


def mean_gap(mine: Cell, other: Cell) -> float:
    """Return the mean of these; with no draw in common none leads."""
    found = gaps(mine, other)
    return float(found.mean()) if len(found) else 0.0


def clear(mine: Cell, other: Cell) -> bool:
    """Return whether the other's lead exceeds chance."""
    found = gaps(mine, other)
    return len(found) > 2 and bool(found.mean() > CLEAR * found.std(ddof=1) / np.sqrt(len(found)))


def outcomes(found: Cells, rivals: dict[str, Rival] = RIVALS) -> list[Outcome]:
    """Return how every cell ended, in the order of the tables."""
    return [outcome(key, found[key], rivals) for key in sorted(found, key=_place)]


def _place(key: Key) -> tuple[int, str, float]:
    return GUARANTEES.index(key[1]), key[0], float(key[2])
