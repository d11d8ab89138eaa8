"""How claims about errors are judged: lines of the tables by panel and way of pooling, and what counts as no worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.reproduce.papers.multi_site.errors import MEAN, line
from counterveil.reproduce.papers.multi_site.panels import ALPHAS, PANELS, Panel
from counterveil.reproduce.protocol import Judged, Verdict

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "pd.DataFrame"]
# The mean of 40 absolute errors has a standard error of about an eighth of itself: less than this is no difference.
NO_WORSE = 1.1
RULES = ("AggAll", "AggLargest")
LOW, EQUAL, HIGH = ALPHAS.index(0.125), ALPHAS.index(1.0), ALPHAS.index(8.0)
TRIALS = tuple(panel for panel in PANELS if panel.figure < 6)
MATCHED = tuple(panel for panel in PANELS if panel.figure > 7)
MATCHING = tuple(f"figure-{number}" for number in (8, 9, 10, 11))
PRINTED = ("published, global", "published, smooth")


def judged(holds: bool, number: str, why: str) -> Judged:
    """Return the verdict."""
    return Judged(Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED, number, why)


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
        self, own: str, others: tuple[str, ...], measure: str = MEAN, slack: float = NO_WORSE
    ) -> Callable[[Panel, str], NDArray[np.bool_]]:
        """Return the comparison: `own` is at most `slack` times the best of the others."""

        def compare(panel: Panel, method: str) -> NDArray[np.bool_]:
            best = np.min([self.of(panel, method, other, measure) for other in others], axis=0)
            held: NDArray[np.bool_] = self.of(panel, method, own, measure) <= slack * best
            return held

        return compare


def of_all(held: NDArray[np.bool_], what: str = "cells") -> str:
    """Return how many comparisons held, as text."""
    return f"{int(held.sum())} of {held.size} {what}"


def most(held: NDArray[np.bool_]) -> bool:
    """Return whether more than half of the comparisons held."""
    return bool(held.mean() > 0.5)
