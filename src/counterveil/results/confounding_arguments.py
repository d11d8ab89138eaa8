"""What is refused of a sensitivity analysis: results without an interval, and descriptions that are none."""

from __future__ import annotations

from math import inf

from counterveil.errors import ParameterError, shown
from counterveil.privacy.caveats import Fact
from counterveil.report.caveats import target_words


def refuse_no_interval(interval_of: Fact | None) -> None:
    """Raise CV-P664 where intervals are for something else than the effect."""
    if interval_of is not None:
        raise ParameterError(
            "CV-P664",
            "this result has no interval for the effect whose sensitivity could be shown",
            expected="a result whose interval is for the effect",
            got=f"an interval for {target_words(interval_of)}",
            fix="ask with a method that adjusts for the measured confounders first",
        )


def asked_shares(treatment_r2: float | None, outcome_r2: float | None) -> tuple[float, float] | None:
    """Return the two shares of a confounder, None where neither is given, or raise CV-P665."""
    if treatment_r2 is None and outcome_r2 is None:
        return None
    return share("treatment_r2", treatment_r2), share("outcome_r2", outcome_r2, 1.0)


def share(name: str, value: float | None, most: float = 1 - 1e-9) -> float:
    """Return a share of variance, or raise CV-P665."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
        return float(value)
    raise ParameterError(
        "CV-P665",
        "a confounder is described by two shares of variance",
        expected="treatment_r2 from 0 to below 1 and outcome_r2 from 0 to 1, both of them",
        got=f"{name}={shown(value)}",
        fix="pass both, such as treatment_r2=0.1, outcome_r2=0.2",
    )


def refuse_not_positive(name: str, value: float | None) -> None:
    """Raise CV-P666 for a public number that is given and not above 0."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf):
        return
    raise ParameterError(
        "CV-P666",
        f"{name} is a public number above 0",
        expected="the mean outcome of untreated people (baseline), or the standard deviation of outcomes (outcome_sd)",
        got=f"{name}={shown(value)}",
        fix="leave it out, or pass a number from public sources",
    )
