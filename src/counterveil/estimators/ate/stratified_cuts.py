"""Cut points of numeric covariates that are not known in public: private quantiles, paid for.

A noisy histogram on an even public grid over the covariate's range is released; the cut points are the
grid's points nearest to the quantiles of its running sum. All that follows is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study
from counterveil.errors import StudyError
from counterveil.estimators.ate.stratified_settings import StratifiedSettings

PAGE = "sensitivity/histogram.proof.md"
# Cells of the grid on which cut points can lie.
GRID = 64
# What the cut points of one covariate cost, in parts of the budget.
SHARE = Fraction(1, 20)
MOST_BOUGHT = 19


@dataclass(frozen=True, slots=True)
class BoughtCuts:
    """A numeric covariate whose cut points are to be found from the data."""

    name: str
    domain: Range
    bins: int

    @property
    def release(self) -> str:
        """The name of the release that pays for them."""
        return f"cut points of {self.name}"

    @property
    def points(self) -> tuple[Fraction, ...]:
        """The inner points of the even public grid on which they lie."""
        return tuple(self.domain.lo + self.domain.width * Fraction(k, GRID) for k in range(1, GRID))

    def nearest(self, counts: NDArray[Any]) -> tuple[Fraction, ...]:
        """Return at most bins - 1 grid points, those nearest to the quantiles of the counts, without repeats."""
        running = np.cumsum(counts)[:-1]
        aims = np.arange(1, self.bins) / self.bins * float(np.sum(counts))
        places = np.unique(np.abs(running[:, None] - aims).argmin(axis=0))
        return tuple(self.points[int(place)] for place in places)


def bought_cuts(study: Study, settings: StratifiedSettings) -> tuple[BoughtCuts, ...]:
    """Return the covariates whose cut points are bought, or raise CV-S080."""
    found = []
    for name, bins in (settings.cuts or {}).items():
        domain = study.covariates.get(name)
        wanted = settings.strata is None or name in settings.strata
        if not isinstance(domain, Range) or domain.cuts or not wanted:
            raise StudyError(
                "CV-S080",
                f"cut points cannot be bought for {name!r}",
                expected="a covariate declared as Range(lo, hi) without cut points, which makes strata",
                got="no such covariate" if domain is None else repr(domain),
                fix="leave it out of cuts=, or declare the covariate as a plain Range",
            )
        found.append(BoughtCuts(name, domain, bins))
    return tuple(found)
