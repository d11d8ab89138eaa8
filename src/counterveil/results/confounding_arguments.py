"""What is refused of a sensitivity analysis: results without an interval, and descriptions that are none."""

from __future__ import annotations

from math import inf

from counterveil.errors import refusal
from counterveil.privacy.caveats import Fact
from counterveil.report.caveats import target_words


def refuse_no_interval(interval_of: Fact | None) -> None:
    """Raise CV-P664 where intervals are for something else than the effect."""
    if interval_of is not None:
        raise refusal("CV-P664", interval_of=target_words(interval_of))


def asked_shares(treatment_r2: float | None, outcome_r2: float | None) -> tuple[float, float] | None:
    """Return the two shares of a confounder, None where neither is given, or raise CV-P665."""
    if treatment_r2 is None and outcome_r2 is None:
        return None
    return share("treatment_r2", treatment_r2), share("outcome_r2", outcome_r2, 1.0)


def share(name: str, value: float | None, most: float = 1 - 1e-9) -> float:
    """Return a share of variance, or raise CV-P665."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
        return float(value)
    raise refusal("CV-P665", name=name, value=value)


def refuse_not_positive(name: str, value: float | None) -> None:
    """Raise CV-P666 for a public number that is given and not above 0."""
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf):
        return
    raise refusal("CV-P666", name=name, value=value)
