"""How claims about errors are judged: lines of the tables by panel and way of pooling, and what counts as a lead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil_lab.reproduce.papers.multi_site.errors import MEAN, line
from counterveil_lab.reproduce.papers.multi_site.panels import ALPHAS, PANELS, Panel
from counterveil_lab.reproduce.protocol import Tables

# The mean of 100 absolute errors has a standard error of about a twelfth of itself, a ratio of two such means of an
# eighth: less than two of these are no difference. Errors of one draw go together, so it is rather too much.
NO_WORSE = 1.25
# What holds in general holds in this part of the cells at least.
_GENERAL = 0.75
RULES = ("AggAll", "AggLargest")
LOW, EQUAL, HIGH = ALPHAS.index(0.125), ALPHAS.index(1.0), ALPHAS.index(8.0)
TRIALS = tuple(panel for panel in PANELS if panel.figure < 6)
MATCHED = tuple(panel for panel in PANELS if panel.figure > 7)
MATCHING = tuple(f"figure-{number}" for number in (8, 9, 10, 11))
PRINTED = ("published, global", "published, smooth")


def of_figure(number: int) -> tuple[Panel, ...]:
    """Return the panels of a figure."""
    return tuple(panel for panel in PANELS if panel.figure == number)


def printed_in(panel: Panel) -> tuple[str, ...]:
    """Return the published methods that a panel has."""
    return PRINTED if panel in MATCHED else ("published",)


@dataclass(frozen=True)
class Lines:
    """The lines of all tables, an array over alphas each."""

    tables: Tables

    def of(self, panel: Panel, method: str, pooled_by: str = "MVAgg", measure: str = MEAN) -> Floats:
        """Return one line."""
        found = self.tables[f"figure-{panel.figure}"]
        return line(found, panel.study, panel.cut, method, pooled_by, measure)

    def over(
        self,
        panels: tuple[Panel, ...],
        compare: Callable[[Panel, str], NDArray[np.bool_]],
        methods: tuple[str, ...] | None = None,
    ) -> NDArray[np.bool_]:
        """Return a comparison for every panel, published method and alpha, in one array."""
        return np.concatenate([compare(p, m) for p in panels for m in methods or printed_in(p)])

    def no_worse(
        self, own: str, others: tuple[str, ...], measure: str = MEAN
    ) -> Callable[[Panel, str], NDArray[np.bool_]]:
        """Return the comparison: `own` is no worse than the best of the others."""

        def compare(panel: Panel, method: str) -> NDArray[np.bool_]:
            best = np.min([self.of(panel, method, other, measure) for other in others], axis=0)
            held: NDArray[np.bool_] = self.of(panel, method, own, measure) <= NO_WORSE * best
            return held

        return compare

    def ratio(
        self, panels: tuple[Panel, ...], own: str, others: tuple[str, ...], measure: str = MEAN
    ) -> Floats:
        """Return `own` over the best of the others, for every panel, published method and alpha."""
        return np.concatenate(
            [
                self.of(p, m, own, measure)
                / np.min([self.of(p, m, other, measure) for other in others], axis=0)
                for p in panels
                for m in printed_in(p)
            ]
        )


def leads(ratio: Floats, need: Callable[[int], int]) -> bool | None:
    """Return whether an error is clearly below the others' in enough places; None where chance may decide.

    `ratio` is the error over the least of the others. Where it is one, both ways of pooling give the same answer: these
    places are left out. `need` says how many of the places that are left are enough.
    """
    left = ratio[ratio != 1]
    if not left.size:
        return None
    if (left <= 1 / NO_WORSE).sum() >= need(left.size):
        return True
    return False if (left < NO_WORSE).sum() < need(left.size) else None


def both(first: bool | None, second: bool | None) -> bool | None:
    """Return whether both hold: not if one does not, and None where it cannot be told."""
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def counted(ratio: Floats, what: str = "cells") -> str:
    """Return in how many places an error is clearly below the others', and above them, as text."""
    ahead, behind = int((ratio <= 1 / NO_WORSE).sum()), int((ratio >= NO_WORSE).sum())
    return f"clearly smaller in {ahead}, clearly larger in {behind} of {ratio.size} {what}"


def majority(size: int) -> int:
    """Return how many of so many are more than half."""
    return size // 2 + 1


def every(size: int) -> int:
    """Return how many of so many are all."""
    return size


def of_all(held: NDArray[np.bool_], what: str = "cells") -> str:
    """Return how many comparisons held, as text."""
    return f"{int(held.sum())} of {held.size} {what}"


def most(held: NDArray[np.bool_]) -> bool:
    """Return whether more than half of the comparisons held."""
    return bool(held.mean() > 0.5)


def in_general(held: NDArray[np.bool_]) -> bool:
    """Return whether three quarters of the comparisons held or more."""
    return bool(held.mean() >= _GENERAL)
