"""How often intervals of ratios cover, over many draws of released means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, tee

import numpy as np

from counterveil.inference.arm_means import Means
from counterveil.inference.quotient import ODDS, RATIO, Quotient

# The risk of the treated beside that of the controls.
EFFECT = 1.3
LEVEL = 0.95
# An interval that holds this has no upper end.
_ENDLESS = 1e12
# How many intervals lengths are the median of.
_MEASURED = 25

COLUMNS = ("ratio :.3f", "odds ratio :.3f", "no upper end :.1%", "median length :.2f")


@dataclass(frozen=True, slots=True)
class Covered:
    """Shares of draws whose intervals cover a ratio and an odds ratio or have no upper end, and the median length."""

    ratio: float
    odds: float
    endless: float
    length: float

    @property
    def values(self) -> list[float]:
        """The values of `COLUMNS`."""
        return [self.ratio, self.odds, self.endless, self.length]


def covered(many: Iterable[Means], risk: float) -> Covered:
    """Return how often means cover whose truth is a risk of the controls, and EFFECT times that of the treated."""
    truths = {RATIO: EFFECT, ODDS: EFFECT * (1 - risk) / (1 - EFFECT * risk)}
    first, again = tee(many)
    # A value is in the interval where its p-value is at least 1 - level.
    kept = [
        [
            _holds(means, RATIO, truths[RATIO]),
            _holds(means, ODDS, truths[ODDS]),
            _holds(means, RATIO, _ENDLESS),
        ]
        for means in first
    ]
    lengths = [np.diff(Quotient(means, RATIO).interval(LEVEL))[0] for means in islice(again, _MEASURED)]
    ratio, odds, endless = np.mean(kept, axis=0)
    return Covered(float(ratio), float(odds), float(endless), float(np.median(lengths)))


def _holds(means: Means, kind: str, value: float) -> bool:
    return Quotient(means, kind).p_value(LEVEL, value) >= 1 - LEVEL
