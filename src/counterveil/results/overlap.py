"""The answer about balance and overlap of private arms: every number with an interval for its noise.

    standardised difference = (m1 - m0) / s,    s^2 the mean of both arms' variances,

with m1 and m0 the released means of a covariate in the arms (in its units; of a label its share). In:
released counts and sums by arm, with the standard deviation of their noise. Out: the share treated, these
differences (without unit; below 0.1 in size is usually taken for balanced), and people of both arms by cells
of a released score. Intervals are for the privacy noise alone: the numbers describe these people, not a
population. The release is proved in `rows/moments/arm_balance.proof.md`; what is here is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.inference.estimates import symmetric_interval
from counterveil.numerics.arrays import Ends
from counterveil.privacy import Budget, Guarantee
from counterveil.report import View, overlap_view
from counterveil.report.balance import drawn_facts
from counterveil.results.effect import check_level, read, write
from counterveil.results.shown import Shown

# Shares treated that are tried for an interval.
_STEPS = 2001


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """One covariate, or one label of it, in both arms.

    Attributes
    ----------
    covariate : str
        Name of the covariate, with the label where it has labels.
    treated_mean, control_mean : float
        Means as released, in the covariate's units; of a label its share.
    difference : float
        Standardised difference: treated minus control, in standard deviations.
    sd : float
        Standard deviation of the difference's noise.
    """

    covariate: str
    treated_mean: float
    control_mean: float
    difference: float
    sd: float


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """Numbers of people in one part of the score, as released.

    Attributes
    ----------
    treated : float
        Treated people, with noise: may be negative.
    control : float
        Untreated people, with noise.
    """

    treated: float
    control: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OverlapSummary(Shown):
    """Released balance and overlap of two arms: what `counterveil.overlap` returns.

    %FREE% Intervals are about these people and cover the privacy noise; there is no sampling error.

    Attributes
    ----------
    treatment : str
        Column of the treatment.
    rows : int
        Number of rows, public.
    share : float
        Share treated, as released.
    share_sd : float
        Standard deviation of its noise.
    differences : tuple of ArmDifference
        One for each covariate or label.
    cells : tuple of ScoreCell
        People by parts of a released score, from those least like the treated to those most like them.
    count_sd : float
        Standard deviation of the noise of each count.
    heavy : bool
        Whether the noise has heavier tails than a normal one, as with delta = 0.
    level : float
        Default confidence level of intervals, in (0, 1).
    guarantee : Guarantee
        What is protected, how strongly, and where that is proved.
    spent : Budget
        Exact epsilon and delta that this answer cost.
    releases : tuple of (str, str)
        Every number that noise was drawn for: its name, and its sensitivity or scale.

    Notes
    -----
    A standardised difference is (m1 - m0) / s, with s the root of the mean of both arms' variances; below 0.1
    in size is usually taken for balanced. The score is the released direction between the arms, each
    covariate by its own variance.

    Examples
    --------
    >>> import counterveil as cv
    >>> trial = cv.datasets.lalonde()
    >>> noise = cv.SeededNoise(1)
    >>> summary = cv.overlap(trial.frame, trial.study, protects="record", epsilon=1, delta=1e-6, noise=noise)
    >>> summary.rows, len(summary.differences), len(summary.cells)
    (445, 8, 8)
    >>> low, high = summary.interval()["age"]
    >>> low < high
    True
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
        """Return an interval for every standardised difference, by the name of the covariate or label.

        Parameters
        ----------
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        dict of str to tuple of (float, float)
            Lower and upper end, in standard deviations.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
        factor = self._factor(level)
        return {
            one.covariate: symmetric_interval(one.difference, factor * one.sd) for one in self.differences
        }

    def share_interval(self, cell: int, level: float | None = None) -> Ends:
        """Return an interval for the share treated in one part of the score (Fieller).

        Parameters
        ----------
        cell : int
            Position in `cells`, from 0.
        level : float, optional
            Confidence level, in (0, 1). Default: that of the result.

        Returns
        -------
        tuple of (float, float)
            Lower and upper end, in [0, 1]; (0, 1) where noise hides the share.

        Raises
        ------
        CounterveilError
            A level outside (0, 1): CV-P015.
        """
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
        """Return what a ledger keeps: numbers as released and public parameters.

        Returns
        -------
        dict
            JSON-ready facts; `from_dict` reads them back.
        """
        return write(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready facts; `from_dict` reads them back.

        Returns
        -------
        dict
            What is stored, and the intervals at the default level.
        """
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
        """Return the standardised differences as effects of a forest.

        Returns
        -------
        dict
            Facts by name; numbers may be infinite.
        """
        return drawn_facts(self.to_dict())

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> OverlapSummary:
        """Return the summary that `to_dict` or `stored` wrote.

        Parameters
        ----------
        facts : dict
            Facts of a summary of this version of the format.

        Returns
        -------
        OverlapSummary
            Equal to the one that was written.

        Raises
        ------
        CounterveilError
            Facts of another kind or version, or facts that do not fit together: CV-P661.
        """
        return read(cls, facts)

    def _check(self) -> None:
        check_level(self.level)

    def view(self, full: bool = False) -> View:
        """Return what is shown: covariates by falling difference, and the score by arms.

        Parameters
        ----------
        full : bool, default False
            True for everything, False for a summary.

        Returns
        -------
        View
            Title, tables and lines of text, as `summary`, `full` and `to_html` print them.
        """
        return overlap_view(self.to_dict(), full)

    def __repr__(self) -> str:
        largest = max(self.differences, key=lambda one: abs(one.difference))
        first = f"{largest.covariate} {largest.difference:+z.2f}"
        return f"<OverlapSummary: arms of {self.treatment}; largest difference {first}; {self.spent}>"
