"""The figures of one estimate, as rows of data frames and as facts of files show them.

In: an estimate, its standard errors from sampling and from noise, ends of its intervals (all in units of the
estimate) and p-values. Out: a row with the names of R's `broom` with underscores for dots, or JSON-ready
facts with None for what is infinite or missing. Every answer's table is made here: effects of arms, groups,
periods, outcomes, quantiles and sites, coefficients of regressions and effects of queries. Nothing is
computed but the statistic, estimate over standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from counterveil.numerics.arrays import Ends


def finite(value: float) -> float | None:
    """Return a number, None for one that is infinite: JSON knows no infinity."""
    return value if isfinite(value) else None


def ends_facts(ends: Ends) -> dict[str, float | None]:
    """Return both ends of an interval as JSON-ready facts; an end that is missing is None."""
    return {"low": finite(ends[0]), "high": finite(ends[1])}


def interval_facts(level: float, ends: Ends, gap: Ends | None = None) -> dict[str, Any]:
    """Return an interval as JSON-ready facts: an end that is missing is None, and so is one of a `gap` inside it."""
    facts: dict[str, Any] = {"level": level} | ends_facts(ends)
    return facts if gap is None else facts | {"gap": list(ends_facts(gap).values())}


def error_facts(errors: tuple[float, float, float], *, open_ended: bool = False) -> dict[str, float | None]:
    """Return a standard error with its sampling part and its noise part as facts.

    Where numbers are `open_ended`, infinite ones are None.
    """
    shown = [finite(sd) if open_ended else sd for sd in errors]
    return dict(zip(("total", "sampling", "noise"), shown, strict=True))


@dataclass(frozen=True, slots=True)
class Figures:
    """An estimate with its errors, interval and p-value, all on the scale that is shown.

    Attributes
    ----------
    estimate : float
        The number.
    errors : tuple of (float, float, float)
        Standard error, its sampling part and its noise part.
    level : float
        Confidence level of the interval, in (0, 1).
    ends : tuple of (float, float)
        The interval.
    p_value : float or None
        Two-sided p-value; None where nothing is tested.
    statistic : float or None
        Estimate over standard error; None where it has none.
    together : tuple of (float, float) or None
        Interval that holds together with those of the numbers beside it.
    adjusted_p_value : float or None
        P-value adjusted for them.
    gap : tuple of (float, float) or None
        What an interval of two parts leaves out between them.
    """

    estimate: float
    errors: tuple[float, float, float]
    level: float
    ends: Ends
    p_value: float | None = None
    statistic: float | None = None
    together: Ends | None = None
    adjusted_p_value: float | None = None
    gap: Ends | None = None

    def row(self) -> dict[str, Any]:
        """Return the figures as columns of a data frame; tests and other intervals where there are some.

        Returns
        -------
        dict
            ``estimate``, ``std_error``, ``se_sampling``, ``se_noise``, ``statistic``, ``p_value``, ``conf_low``,
            ``conf_high``, ``adj_p_value``, ``conf_low_simultaneous``, ``conf_high_simultaneous``,
            ``conf_gap_low``, ``conf_gap_high``, ``level``.
        """
        total, sampling, noise = self.errors
        row: dict[str, Any] = {
            "estimate": self.estimate,
            "std_error": total,
            "se_sampling": sampling,
            "se_noise": noise,
        }
        if self.p_value is not None:
            row |= {"statistic": self.statistic, "p_value": self.p_value}
        row |= {"conf_low": self.ends[0], "conf_high": self.ends[1]}
        if self.adjusted_p_value is not None:
            row["adj_p_value"] = self.adjusted_p_value
        if self.together is not None:
            row |= {"conf_low_simultaneous": self.together[0], "conf_high_simultaneous": self.together[1]}
        if self.gap is not None:
            row |= {"conf_gap_low": self.gap[0], "conf_gap_high": self.gap[1]}
        return row | {"level": self.level}
