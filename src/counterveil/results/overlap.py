"""The answer about balance and overlap of private arms: every number with an interval for its noise."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.numerics.arrays import Ends
from counterveil.privacy import Budget, Guarantee
from counterveil.report import View, overlap_view
from counterveil.report.balance import drawn_facts
from counterveil.results.effect import check_level, read, symmetric_interval, write
from counterveil.results.shown import Shown

# Shares treated that are tried for an interval.
_STEPS = 2001


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """One covariate, or one label of it, in both arms: means as released, and the standardised difference.

    `sd` is the standard deviation of the difference's noise.
    """

    covariate: str
    treated_mean: float
    control_mean: float
    difference: float
    sd: float


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """How many treated and untreated people, as released, are in one part of the score."""

    treated: float
    control: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OverlapSummary(Shown):
    """Released balance and overlap of two arms; nothing it does spends budget.

    Attributes:
        treatment: name of the column.
        rows: number of rows, public.
        share: share treated, as released, and `share_sd` the standard deviation of its noise.
        differences: one for each covariate or label.
        cells: people by parts of a released score, from those least like the treated to those most like them.
        count_sd: standard deviation of the noise of each count.
        heavy: whether the noise has heavier tails than a normal one, as with a pure guarantee.
        level: of the intervals. They are about these people and cover the privacy noise; there is no sampling error.
        guarantee, spent, releases: as in every result.
    """

    treatment: str
    rows: int
    share: float
    share_sd: float
    differences: tuple[ArmDifference, ...]
    cells: tuple[ScoreCell, ...]
    count_sd: float
    heavy: bool
    level: float
    guarantee: Guarantee
    spent: Budget
    releases: tuple[tuple[str, str], ...]

    def interval(self, level: float | None = None) -> dict[str, Ends]:
        """Return an interval for the standardised difference of every covariate or label, by its name."""
        factor = self._factor(level)
        return {
            one.covariate: symmetric_interval(one.difference, factor * one.sd) for one in self.differences
        }

    def share_interval(self, cell: int, level: float | None = None) -> Ends:
        """Return an interval for the share treated in one part of the score (Fieller); (0, 1) where it is unknown."""
        one, p = self.cells[cell], np.linspace(0.0, 1.0, _STEPS)
        reach = self._factor(level) * self.count_sd * np.hypot(1 - p, p)
        kept = p[np.abs(one.treated * (1 - p) - one.control * p) <= reach]
        return (float(kept[0]), float(kept[-1])) if len(kept) else (0.0, 1.0)

    def _factor(self, level: float | None) -> float:
        chosen = self.level if level is None else check_level(level)
        normal = -float(ndtri((1 - chosen) / 2))
        return max(normal, -log(1 - chosen) / sqrt(2)) if self.heavy else normal

    def _rows(self) -> list[dict[str, Any]]:
        """Return one dictionary a covariate or label."""
        return [
            self._row(one, ends) for one, ends in zip(self.differences, self.interval().values(), strict=True)
        ]

    def _row(self, one: ArmDifference, ends: Ends) -> dict[str, Any]:
        return {
            "term": self.treatment,
            "covariate": one.covariate,
            "treated_mean": one.treated_mean,
            "control_mean": one.control_mean,
            "difference": one.difference,
            "se_noise": one.sd,
            "conf_low": ends[0],
            "conf_high": ends[1],
            "level": self.level,
            "epsilon": float(self.spent.epsilon),
            "delta": float(self.spent.delta),
        }

    def stored(self) -> dict[str, Any]:
        """Return what the ledger keeps: numbers as released and public parameters."""
        return write(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `from_dict` reads them back."""
        warning = self.guarantee.warning
        shares = [self.share_interval(k) for k in range(len(self.cells))]
        return (
            ({"guarantee_warning": warning} if warning else {})
            | self.stored()
            | {
                "intervals": [list(ends) for ends in self.interval().values()],
                "share_intervals": [list(ends) for ends in shares],
            }
        )

    def drawn_facts(self) -> dict[str, Any]:
        """Return the standardised differences as effects of a forest."""
        return drawn_facts(self.to_dict())

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> OverlapSummary:
        """Return what `to_dict` or `stored` wrote; other facts are CV-P661."""
        return read(cls, facts)

    def _check(self) -> None:
        check_level(self.level)

    def view(self, full: bool = False) -> View:
        """Return what is shown: covariates by falling difference, the score by arms; in full, the guarantee too."""
        return overlap_view(self.to_dict(), full)

    def __repr__(self) -> str:
        largest = max(self.differences, key=lambda one: abs(one.difference))
        first = f"{largest.covariate} {largest.difference:+z.2f}"
        return f"<OverlapSummary: arms of {self.treatment}; largest difference {first}; {self.spent}>"
