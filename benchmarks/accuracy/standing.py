"""What the answers add up to: a cell for every method, data, guarantee and epsilon, and which of two is closer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.entries import APPROXIMATE, EPSILONS, GUARANTEES, PURE, counts_at, is_ranked
from benchmarks.accuracy.running import Row
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Rival

# Answers whose squared error is beyond this many ranges count as this far off: one wild answer says no more.
FARTHEST = 10.0
# Methods with fewer draws are shown and not ranked.
FEWEST = 4
# Draws that a paired comparison needs.
_FEWEST_PAIRS = 3
# A lead is clear above this many standard errors of the difference in squared error.
CLEAR = 2.0


@dataclass(frozen=True)
class Cell:
    """One method on one data set at one budget; errors in parts of the outcome's range, nan where there is none.

    `relative` is the median distance to the non-private target, in parts of it. `squares` are the squared errors by
    draw, for paired comparisons. `drawn_at` is the guarantee that the answers were drawn at.
    """

    draws: int
    rmse: float
    relative: float
    coverage: float
    width: float
    seconds: float
    refusal: str
    squares: dict[int, float]
    drawn_at: str


Key = tuple[str, str, str]  # data, guarantee, epsilon
Cells = dict[Key, dict[str, Cell]]


def cell_of(rows: list[Row]) -> Cell:
    """Return the cell of one method's answers."""
    given = [row for row in rows if not row.refusal]
    refusal = " ".join(sorted({row.refusal for row in rows} - {""}))
    drawn_at = rows[0].guarantee
    if not given:
        return Cell(0, np.nan, np.nan, np.nan, np.nan, np.nan, refusal, {}, drawn_at)
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
        drawn_at,
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


def compared(found: Cells) -> Cells:
    """Return the cells with, at a delta, the better of a method's two answers: a pure guarantee is one at any delta.

    Which is the better one is known only afterwards, for every method alike.
    """
    return {
        key: {name: _better(one, found, key, name) for name, one in methods.items()}
        for key, methods in found.items()
    }


def _better(one: Cell, found: Cells, key: Key, name: str) -> Cell:
    pure = found.get((key[0], PURE, key[2]), {}).get(name) if key[1] == APPROXIMATE else None
    return pure if pure is not None and pure.draws and not one.rmse <= pure.rmse else one


@dataclass(frozen=True)
class Gap:
    """By how much one mean squared error exceeds another's, with its standard error, and both errors.

    Over the draws that both answered, in pairs; over all draws of each where they share fewer than three.
    """

    mean: float
    error: float
    mine: float
    other: float
    draws: int

    @property
    def clear(self) -> bool:
        """Whether the other's lead exceeds chance."""
        return self.mean > CLEAR * self.error

    @property
    def ratio(self) -> float:
        """One root mean square error over the other."""
        return self.mine / self.other if self.other else np.inf


def gap(mine: Cell, other: Cell) -> Gap:
    """Return by how much squared errors exceed the other's."""
    both = sorted(set(mine.squares) & set(other.squares))
    paired = len(both) >= _FEWEST_PAIRS
    one, two = (
        np.array([cell.squares[draw] for draw in (both if paired else cell.squares)])
        for cell in (mine, other)
    )
    variances = [_mean_variance(one - two)] if paired else [_mean_variance(one), _mean_variance(two)]
    means = float(one.mean()), float(two.mean())
    return Gap(
        means[0] - means[1], sqrt(sum(variances)), sqrt(means[0]), sqrt(means[1]), min(len(one), len(two))
    )


def _mean_variance(values: NDArray[np.float64]) -> float:
    return float(values.var(ddof=1)) / len(values) if len(values) > 1 else np.inf


def ranked(cell: dict[str, Cell], rivals: dict[str, Rival] = RIVALS) -> list[str]:
    """Return the private methods whose claim is not refuted, least error first; zero is a yardstick only.

    Those that answered fewer draws stand by their gap to the best of those that answered most, over common draws.
    """
    able = [name for name, one in cell.items() if is_ranked(rivals[name]) and one.draws >= FEWEST]
    if not able:
        return []
    most = max(cell[name].draws for name in able)
    anchor = min((name for name in able if cell[name].draws == most), key=lambda name: cell[name].rmse)
    return sorted(able, key=lambda name: gap(cell[name], cell[anchor]).mean)
